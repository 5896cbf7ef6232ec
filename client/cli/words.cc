#include "client/cli/words.h"

#include <array>
#include <iterator>
#include <utility>

#include "absl/time/time.h"
#include "client/cli/input_file.h"
#include "proto/text/node_list.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

template <class Enum, size_t N>
using Words = std::array<std::pair<Enum, const char*>, N>;

constexpr Words<v1::Operation, 4> kOperations = {{{v1::OPERATION_ALLREDUCE, "allreduce"},
                                                  {v1::OPERATION_BARRIER, "barrier"},
                                                  {v1::OPERATION_BCAST, "bcast"},
                                                  {v1::OPERATION_REDUCE, "reduce"}}};
constexpr Words<v1::TreeType, 3> kTypes = {
    {{v1::TREE_TYPE_UNSPECIFIED, "auto"}, {v1::TREE_TYPE_I, "I"}, {v1::TREE_TYPE_II, "II"}}};
constexpr Words<v1::TreeType, 3> kTypeOptions = {
    {{v1::TREE_TYPE_UNSPECIFIED, "auto"}, {v1::TREE_TYPE_I, "1"}, {v1::TREE_TYPE_II, "2"}}};
constexpr Words<v1::TreeBuilder, 6> kBuilders = {{{v1::TREE_BUILDER_UNSPECIFIED, "auto"},
                                                  {v1::TREE_BUILDER_KARY, "kary"},
                                                  {v1::TREE_BUILDER_KNOMIAL, "knomial"},
                                                  {v1::TREE_BUILDER_HIERARCHICAL, "hierarchical"},
                                                  {v1::TREE_BUILDER_MINIMUM_COST, "minimum-cost"},
                                                  {v1::TREE_BUILDER_POSTAL, "postal"}}};
constexpr Words<v1::RouteKind, 3> kRoutes = {
    {{v1::ROUTE_KIND_FORWARDING_TABLES, "forwarding tables"},
     {v1::ROUTE_KIND_SHORTEST_PATH, "shortest path"},
     {v1::ROUTE_KIND_DIMENSION_ORDER, "dimension order"}}};
constexpr Words<v1::JobState, 3> kStates = {{{v1::JOB_STATE_ACTIVE, "active"},
                                             {v1::JOB_STATE_ENDED, "ended"},
                                             {v1::JOB_STATE_EXPIRED, "expired"}}};

template <class Enum, size_t N>
std::string Find(const Words<Enum, N>& words, Enum value) {
  for (const auto& [known, word] : words) {
    if (known == value) return word;
  }
  return "?";
}

template <class Enum, size_t N>
std::optional<Enum> Find(const Words<Enum, N>& words, const std::string& wanted) {
  for (const auto& [value, word] : words) {
    if (word == wanted) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string Word(v1::Operation operation) { return Find(kOperations, operation); }
std::string Word(v1::TreeType type) { return Find(kTypes, type); }
std::string Word(v1::TreeBuilder builder) { return Find(kBuilders, builder); }
std::string Word(v1::RouteKind kind) { return Find(kRoutes, kind); }
std::string Word(v1::JobState state) { return Find(kStates, state); }

std::optional<v1::Operation> OperationNamed(const std::string& word) {
  return Find(kOperations, word);
}
std::optional<v1::TreeType> TypeNamed(const std::string& word) { return Find(kTypeOptions, word); }
std::optional<v1::TreeBuilder> BuilderNamed(const std::string& word) {
  return Find(kBuilders, word);
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0 && time.nanos() == 0) return "never";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

absl::StatusOr<std::vector<std::string>> ExpandNodeWords(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const std::string& word : words) {
    if (!LooksLikeNodeList(word)) {
      names.push_back(word);
      continue;
    }
    auto list = ParseNodeList(word);
    if (!list.ok()) return list.status();
    std::move(list->begin(), list->end(), std::back_inserter(names));
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> ReadNodeWords(const std::string& text) {
  if (IsFileOfNodes(text)) return ReadMemberFile(text);
  return std::vector<std::string>{text};
}

}  // namespace coppice
