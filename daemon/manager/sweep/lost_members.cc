#include "daemon/manager/sweep/lost_members.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr size_t kMaxRanksNamed = 16;  // ranks in one event; the rest is a number

// `left` becomes at most the time until another one is lost.
std::vector<uint32_t> LostRanks(const JobRecord& job, const FabricView& view, absl::Duration now,
                                absl::Duration& left) {
  std::vector<uint32_t> lost;
  const Fabric& fabric = *view.snapshot->fabric;
  for (uint32_t rank = 0; rank < job.endpoints.size(); ++rank) {
    const Guid port = job.endpoints[rank];
    if (fabric.FindEndpoint(port)) continue;
    const absl::Duration since = HiddenSince(view.unseen, port);
    if (since != absl::InfiniteDuration() && now - since < LostMembers::kPatience) {
      left = std::min(left, since + LostMembers::kPatience - now);
      continue;
    }
    lost.push_back(rank);
  }
  return lost;
}

std::vector<uint32_t> Without(const std::vector<uint32_t>& from, const std::vector<uint32_t>& of) {
  std::vector<uint32_t> rest;
  std::set_difference(from.begin(), from.end(), of.begin(), of.end(), std::back_inserter(rest));
  return rest;
}

// "n0003 (port 0000000000005003)", of whichever fabric has it.
std::string PlaceOf(Guid port, const FabricView& view, const FabricView* before) {
  const std::string name = absl::StrCat("port ", ToString(port));
  for (const FabricView* of : {&view, before}) {
    if (of == nullptr) continue;
    const Fabric& fabric = *of->snapshot->fabric;
    const std::optional<EndpointIndex> endpoint = fabric.FindEndpoint(port);
    if (!endpoint || fabric.host(*endpoint).value() >= fabric.host_count()) continue;
    return absl::StrCat("host ", fabric.host_name(fabric.host(*endpoint)), ", ", name);
  }
  return name;
}

std::string NameRanks(const JobRecord& job, const std::vector<uint32_t>& ranks,
                      const FabricView& view, const FabricView* before) {
  std::string names;
  for (size_t i = 0; i < ranks.size() && i < kMaxRanksNamed; ++i) {
    absl::StrAppend(&names, i > 0 ? "; " : "", "rank ", ranks[i], " (",
                    PlaceOf(job.endpoints[ranks[i]], view, before), ")");
  }
  if (ranks.size() > kMaxRanksNamed) {
    absl::StrAppend(&names, "; and ", ranks.size() - kMaxRanksNamed, " more");
  }
  return names;
}

}  // namespace

absl::Duration LostMembers::Update(const FabricView* before) {
  std::vector<std::shared_ptr<Job>> jobs;
  std::shared_ptr<const FabricView> view;
  {
    std::lock_guard lock(tables_->mu);
    jobs = tables_->jobs.List(JobId(), tables_->jobs.size());
    view = tables_->view;
  }
  absl::Duration left = absl::InfiniteDuration();
  if (view == nullptr) return left;
  const absl::Duration now = clock_->Monotonic();
  for (const std::shared_ptr<Job>& job : jobs) {
    std::vector<uint32_t> lost = LostRanks(*job->record, *view, now, left);
    std::vector<uint32_t> was;
    {
      std::lock_guard lock(tables_->mu);
      if (job->lost_ranks == lost) continue;
      was = std::exchange(job->lost_ranks, lost);
    }
    Tell(*job, was, lost, before, *view);
  }
  return left;
}

void LostMembers::Tell(const Job& job, const std::vector<uint32_t>& was,
                       const std::vector<uint32_t>& now, const FabricView* before,
                       const FabricView& view) {
  const std::string object = absl::StrCat("job:", job.record->id.value());
  if (const std::vector<uint32_t> lost = Without(now, was); !lost.empty()) {
    events_->Append(
        "job.member_lost", object,
        absl::StrCat("lost ", NameRanks(*job.record, lost, view, before), "; ", now.size(), " of ",
                     job.record->endpoints.size(), " ranks are lost now"));
  }
  if (const std::vector<uint32_t> back = Without(was, now); !back.empty()) {
    events_->Append(
        "job.member_back", object,
        absl::StrCat("back: ", NameRanks(*job.record, back, view, before), "; ", now.size(), " of ",
                     job.record->endpoints.size(), " ranks are lost now"));
  }
}

}  // namespace coppice
