#include "client/cli/words.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/input_file.h"
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

namespace {

constexpr size_t kMaxDigits = 18, kMaxBrackets = 8, kMaxNameBytes = 256;  // as the daemon

using Names = std::vector<std::string>;

absl::Status Wrong(absl::string_view name, absl::string_view what) {
  constexpr size_t kMaxTold = 64;
  return absl::InvalidArgumentError(
      absl::StrCat("nodes \"", name.substr(0, kMaxTold), "\": ", what));
}

bool AreDigits(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

// "001" or "001-128".
absl::Status AddRange(absl::string_view name, absl::string_view range, Names& numbers) {
  const std::vector<absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
  const absl::string_view first_text = ends.front(), last_text = ends.back();
  uint64_t first = 0, last = 0;
  if (!AreDigits(first_text) || !AreDigits(last_text) || !absl::SimpleAtoi(first_text, &first) ||
      !absl::SimpleAtoi(last_text, &last)) {
    return Wrong(name, "brackets hold numbers and ranges of them, like [001-128,130]");
  }
  if (last < first) return Wrong(name, "a range ends before it begins");
  if (last_text.size() != first_text.size() && last_text[0] == '0' && last_text.size() > 1) {
    return Wrong(name, "the ends of a range have zeros in front of different widths");
  }
  if (last - first >= kMaxNodes || numbers.size() + (last - first) >= kMaxNodes) {
    return Wrong(name, absl::StrCat("more than ", kMaxNodes, " names"));
  }
  for (uint64_t n = first; n <= last; ++n) {
    std::string digits = absl::StrCat(n);
    if (digits.size() < first_text.size()) digits.insert(0, first_text.size() - digits.size(), '0');
    numbers.push_back(std::move(digits));
  }
  return absl::OkStatus();
}

// One name of the list, all brackets of which pair: every name with each of what a bracket holds.
absl::Status AddName(absl::string_view name, Names& names) {
  Names made = {""};
  absl::string_view rest = name;
  for (size_t brackets = 0; !rest.empty();) {
    const size_t open = std::min(rest.find('['), rest.size());
    for (std::string& one : made) absl::StrAppend(&one, rest.substr(0, open));
    rest.remove_prefix(open);
    if (rest.empty()) break;
    if (++brackets > kMaxBrackets) return Wrong(name, "more than 8 brackets in one name");
    const size_t close = rest.find(']');
    Names numbers, longer;
    for (const absl::string_view range : absl::StrSplit(rest.substr(1, close - 1), ',')) {
      if (const absl::Status status = AddRange(name, range, numbers); !status.ok()) return status;
    }
    if (made.size() * numbers.size() + names.size() > kMaxNodes) {
      return Wrong(name, absl::StrCat("more than ", kMaxNodes, " names"));
    }
    for (const std::string& one : made) {
      for (const std::string& number : numbers) longer.push_back(absl::StrCat(one, number));
    }
    made = std::move(longer);
    rest.remove_prefix(close + 1);
  }
  for (std::string& one : made) {
    if (one.size() > kMaxNameBytes) return Wrong(name, "a name is longer than 256 letters");
    names.push_back(std::move(one));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Names> ExpandNodeList(absl::string_view text) {
  Names names;
  if (absl::StripAsciiWhitespace(text).empty()) return names;
  bool is_open = false;
  for (size_t begin = 0, i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : '\0';
    if ((c == '[' && is_open) || (c == ']' && !is_open) || (i == text.size() && is_open)) {
      return Wrong(text.substr(begin), "brackets do not pair; write it like n[001-128,130]");
    }
    is_open = c == '[' || (is_open && c != ']');
    if (i < text.size() && (c != ',' || is_open)) continue;
    const absl::string_view name = absl::StripAsciiWhitespace(text.substr(begin, i - begin));
    if (name.empty()) return Wrong(text, "no name between commas");
    if (const absl::Status status = AddName(name, names); !status.ok()) return status;
    begin = i + 1;
  }
  return names;
}

absl::StatusOr<Names> ExpandNodeWords(const Names& words) {
  Names names;
  for (const std::string& word : words) {
    if (!MayBeNodeList(word)) {
      names.push_back(word);
      continue;
    }
    auto list = ExpandNodeList(word);
    if (!list.ok()) return list.status();
    std::move(list->begin(), list->end(), std::back_inserter(names));
  }
  return names;
}

absl::StatusOr<Names> ReadNodeWords(const std::string& text) {
  if (IsFileOfNodes(text)) return ReadMemberFile(text);
  return Names{text};
}

}  // namespace coppice
