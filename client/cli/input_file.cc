#include "client/cli/input_file.h"

#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "client/cli/words.h"
#include "proto/text/text_file.h"

namespace coppice {

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
  const auto registered =
      connection.Call(connection.jobs(), &v1::Jobs::StubInterface::RegisterJob, job);
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

}  // namespace coppice
