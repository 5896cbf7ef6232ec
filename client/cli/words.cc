#include "client/cli/words.h"

#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "google/protobuf/util/time_util.h"
#include "proto/text/names.h"
#include "proto/text/node_list.h"
#include "proto/text/option_words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

// 16 digits, or up to 16 after "switch:" or "0x".
std::optional<uint64_t> ParseGuid(absl::string_view text) {
  const bool is_switch = absl::ConsumePrefix(&text, "switch:");
  const bool is_marked = absl::ConsumePrefix(&text, "0x") || is_switch;
  uint64_t guid = 0;
  if (text.size() > 16 || (text.size() < 16 && !is_marked)) return std::nullopt;
  if (!absl::SimpleHexAtoi(absl::StrCat("0x", text), &guid)) return std::nullopt;
  return guid;
}

}  // namespace

std::string WordOf(const google::protobuf::EnumDescriptor& type, int number,
                   const std::string& unspecified) {
  const google::protobuf::EnumValueDescriptor* const value = type.FindValueByNumber(number);
  if (value == nullptr) return "?";
  if (number == 0) return unspecified;
  // All begin as JOB_STATE_UNSPECIFIED does.
  std::string prefix = type.FindValueByNumber(0)->name();
  prefix.resize(prefix.size() - sizeof("UNSPECIFIED") + 1);
  const std::string word = absl::AsciiStrToLower(absl::StripPrefix(value->name(), prefix));
  return absl::StrReplaceAll(word, {{"_", " "}});
}

std::string Word(v1::TreeType type) {
  if (type == v1::TREE_TYPE_UNSPECIFIED) return "auto";
  return absl::AsciiStrToUpper(WordOf(*v1::TreeType_descriptor(), type));
}

std::string Word(v1::TreeBuilder builder) {
  return absl::StrReplaceAll(WordOf(*v1::TreeBuilder_descriptor(), builder, "auto"), {{" ", "-"}});
}

v1::Operation OperationNamed(const std::string& word) {
  v1::Operation operation = v1::OPERATION_UNSPECIFIED;
  v1::Operation_Parse("OPERATION_" + absl::AsciiStrToUpper(word), &operation);
  return operation;
}

v1::TreeBuilder BuilderNamed(const std::string& word) {
  v1::TreeBuilder builder = v1::TREE_BUILDER_UNSPECIFIED;
  v1::TreeBuilder_Parse("TREE_BUILDER_" + absl::AsciiStrToUpper(word), &builder);
  return builder;
}

void AddOperationOptions(CLI::App& command, const std::string& names, std::string& operation,
                         std::string& bytes) {
  command.add_option(names, operation, "What the communicator runs")
      ->check(CLI::IsMember(ListOf(kOperationNames)))
      ->capture_default_str();
  command.add_option("--bytes", bytes, "Sizes, such as 8 or 8,4K,1M: an equal mix")
      ->check(Understood(ParseByteSizes, kByteSizesMeant))
      ->capture_default_str();
}

void FillSizes(const std::string& bytes, google::protobuf::RepeatedPtrField<v1::SizeShare>& sizes) {
  const std::vector<uint64_t> all = *ParseByteSizes(bytes);
  for (const uint64_t size : all) sizes.Add()->set_bytes(size);
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0 && time.nanos() == 0) return "never";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

uint64_t RefusedBy(const v1::SwitchCounters& counters) {
  uint64_t refused = 0;
  for (const auto& [reason, count] : counters.refusals()) refused += count;
  return refused;
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

absl::StatusOr<std::vector<std::string>> ReadMemberFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  std::vector<std::string> lines;
  for (const TextLine& line : LinesOf(*text)) lines.emplace_back(WithoutComment(line.text));
  return lines;
}

absl::StatusOr<std::vector<std::string>> ReadMemberWords(const std::string& members) {
  auto words = ReadNodeWords(members);
  if (!words.ok() || !words->empty()) return words;
  return absl::InvalidArgumentError(
      absl::StrCat(members, ": no members; write one endpoint a line"));
}

absl::StatusOr<std::string> RegisterMembers(Connection& connection, const std::string& members) {
  v1::RegisterJobRequest job;
  job.set_all_endpoints(members.empty());
  if (!members.empty()) {
    const auto words = ReadMemberWords(members);
    if (!words.ok()) return words.status();
    job.mutable_endpoints()->Add(words->begin(), words->end());
  }
  const auto registered = connection.Call(&JobsStub::RegisterJob, job);
  if (registered.ok()) return registered->id();
  return absl::Status(
      registered.status().code(),
      absl::StrCat(members.empty() ? "job" : members, ": ", registered.status().message()));
}

absl::StatusOr<std::vector<uint32_t>> RanksOfMembers(const v1::Job& job,
                                                     const std::vector<std::string>& members) {
  absl::flat_hash_map<std::string, std::deque<uint32_t>> by_port, by_host;
  for (int rank = 0; rank < job.endpoints_size(); ++rank) {
    const std::string& endpoint = job.endpoints(rank);
    by_port[endpoint].push_back(static_cast<uint32_t>(rank));
    by_host[endpoint.substr(0, endpoint.rfind('/'))].push_back(static_cast<uint32_t>(rank));
  }
  std::vector<bool> used(static_cast<size_t>(job.endpoints_size()), false);
  std::vector<uint32_t> ranks;
  for (const std::string& member : members) {
    const auto port = by_port.find(member);
    const auto host = by_host.find(member);
    if (port == by_port.end() && host == by_host.end()) {
      return absl::NotFoundError(
          absl::StrCat("member ", member, ": job ", job.id(), " has no rank there"));
    }
    std::deque<uint32_t>& waiting = port != by_port.end() ? port->second : host->second;
    while (!waiting.empty() && used[waiting.front()]) waiting.pop_front();
    if (waiting.empty()) {
      return absl::NotFoundError(absl::StrCat("member ", member, ": named more often than job ",
                                              job.id(), " has ranks there"));
    }
    used[waiting.front()] = true;
    ranks.push_back(waiting.front());
    waiting.pop_front();
  }
  return ranks;
}

void AddRanges(const std::vector<RankRange>& ranges,
               google::protobuf::RepeatedPtrField<v1::RankRange>& to) {
  for (const RankRange& range : ranges) {
    v1::RankRange& added = *to.Add();
    added.set_first(range.first);
    added.set_count(range.count());
    added.set_stride(range.stride);
  }
}

absl::StatusOr<std::string> FindSwitch(Connection& connection, const std::string& name) {
  if (const std::optional<uint64_t> guid = ParseGuid(name)) return absl::StrFormat("%016x", *guid);
  const auto all = ListAll(connection, &FabricStub::ListSwitches);
  if (!all.ok()) return all.status();
  std::string guid;
  for (const v1::Switch& s : all->switches()) {
    if (s.description() != name) continue;
    if (!guid.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("several switches are called \"", name, "\": give the GUID"));
    }
    guid = s.guid();
  }
  if (!guid.empty()) return guid;
  return absl::NotFoundError(
      absl::StrCat("no switch is called \"", name, "\": see fabric switches"));
}

SwitchNames NamesOfSwitches(Connection& connection) {
  SwitchNames names;
  const auto all = ListAll(connection, &FabricStub::ListSwitches);
  if (!all.ok()) return names;
  for (const v1::Switch& one : all->switches()) {
    if (const std::optional<uint64_t> guid = ParseGuid(one.guid())) {
      names[*guid] = one.description();
    }
  }
  return names;
}

absl::Status FillInputFile(const std::string& path, v1::InputFile& file) {
  absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  file.set_origin(path);
  file.set_text(*std::move(text));
  return absl::OkStatus();
}

absl::Status ReadDurationOption(const std::string& option, const std::string& text,
                                google::protobuf::Duration& to) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", text, ": write a duration such as 90s, 10m or 24h"));
  }
  to = google::protobuf::util::TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(duration));
  return absl::OkStatus();
}

std::string HostOfMember(absl::string_view member) {
  return std::string(member.substr(0, member.find('/')));
}

absl::Status FillNodes(const std::string& text,
                       google::protobuf::RepeatedPtrField<std::string>& nodes) {
  if (text.empty()) return absl::OkStatus();
  const auto words = ReadNodeWords(text);
  if (words.ok()) nodes.Add(words->begin(), words->end());
  return words.status();
}

}  // namespace coppice
