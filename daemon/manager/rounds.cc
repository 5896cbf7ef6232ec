#include "daemon/manager/rounds.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

// The port is not the one that was swept, or it does not answer any more; a full sweep chooses
// again where the choice is free.
bool NeedsFull(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsUnavailable(status);
}

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
    if (since != absl::InfiniteDuration() && now - since < kUnseenPatience) {
      left = std::min(left, since + kUnseenPatience - now);
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

absl::Duration Rounds::UpdateMembers(const FabricView* before) {
  const std::shared_ptr<const FabricView> view = tables_->Published();
  std::vector<std::shared_ptr<Job>> jobs;
  {
    std::lock_guard lock(tables_->mu);
    jobs = tables_->jobs.List(JobId(), tables_->jobs.size());
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
    const std::tuple<const char*, const char*, std::vector<uint32_t>> changes[] = {
        {"job.member_lost", "lost ", Without(lost, was)},
        {"job.member_back", "back: ", Without(was, lost)}};
    for (const auto& [kind, word, ranks] : changes) {
      if (ranks.empty()) continue;
      events_->Append(
          kind, absl::StrCat("job:", job->record->id.value()),
          absl::StrCat(word, NameRanks(*job->record, ranks, *view, before), "; ", lost.size(),
                       " of ", job->record->endpoints.size(), " ranks are lost now"));
    }
  }
  return left;
}

Sweeper::Duties Rounds::Duties() {
  return {
      [this](bool in_haste, absl::Duration light_period) { return Full(in_haste, light_period); },
      [this] { return Light(); },
      [this](absl::Duration light_period) { return Counters(light_period); },
      [this] { return Mend(); },
      [this](SweepKind kind, const absl::Status& status) { Tell(kind, status); }};
}

Sweeper::FullSweep Rounds::Full(bool in_haste, absl::Duration light_period) {
  LookAhead(light_period);
  const std::shared_ptr<const FabricView> before = tables_->Published();
  absl::StatusOr<Topology::Outcome> swept =
      topology_->Sweep(in_haste, [&] { LookAhead(light_period); });
  Sweeper::FullSweep result;
  if (swept.ok()) damper_.ReadAll();
  if (swept.ok()) result.outcome.patience = UpdateMembers(before.get());
  result.outcome.is_repaired = repair_->Run(swept.ok());
  if (swept.ok()) repair_->Replan();
  topology_->EndFlapping();
  if (!swept.ok()) {
    result.view = swept.status();
    return result;
  }
  const FabricView& view = *swept->view;
  result.outcome.is_ok = true;
  result.outcome.patience = std::min(result.outcome.patience, repair_->PatienceLeft());
  result.outcome.fabric_changed = swept->fabric_changed;
  result.outcome.tables_changed = swept->tables_changed;
  result.outcome.is_settled = view.routes_settled;
  result.outcome.are_tables_kept = swept->are_tables_kept;
  result.outcome.is_complete = view.unseen.silent.empty();
  result.mads = {view.mads_sent, view.mads_resent, view.mads_timed_out};
  result.view = std::move(swept->view);
  return result;
}

bool Rounds::LookAhead(absl::Duration light_period) {
  if (has_failed_look_ || clock_->Monotonic() - last_look_ < light_period / 2) return true;
  bool is_mended = true;
  Look(is_mended).IgnoreError();  // a light sweep will tell
  return is_mended;
}

bool Rounds::Mend() {
  const bool is_repaired = repair_->Run(/*swept=*/false);
  repair_->Replan();
  return is_repaired;
}

Sweeper::OtherSweep Rounds::Light() {
  topology_->EndFlapping();
  bool is_mended = true;
  const absl::StatusOr<LightSweepResult> light = Look(is_mended);
  if (!light.ok()) return {light.status(), false, {}, NeedsFull(light.status())};
  const bool is_worth_it = damper_.IsWorthASweep(light->links, clock_->Monotonic());
  // Other links than those that say so have changed only their rate, or what is told of them.
  const bool has_changed =
      light->has_changed && (is_worth_it || light->links.empty() || !light->has_only_links);
  return {absl::OkStatus(),
          has_changed,
          {light->mads_sent, light->mads_resent, light->mads_timed_out},
          !is_mended};
}

// A link that is lost breaks trees; one that is new mends none, and waits for a full sweep.
absl::StatusOr<LightSweepResult> Rounds::Look(bool& is_mended) {
  last_look_ = clock_->Monotonic();
  absl::StatusOr<LightSweepResult> light = port_->LightSweep();
  has_failed_look_ = !light.ok();
  if (!light.ok()) return light;
  if (light->has_changed) spdlog::debug("a light sweep saw a change: {}", light->what);
  const std::shared_ptr<const FabricView> before = tables_->Published();
  const absl::StatusOr<bool> dropped = topology_->DropLinks(light->links);
  if (!dropped.ok()) {
    spdlog::warn("links that are lost stay in the fabric: {}", dropped.status().ToString());
    is_mended = false;
  } else if (*dropped) {
    UpdateMembers(before.get());
    is_mended = repair_->Run(/*swept=*/false);
    if (const absl::Status kept = topology_->KeepDropped(*before); !kept.ok()) {
      spdlog::warn("when links were last seen is not kept: {}", kept.ToString());
    }
  }
  return light;
}

Sweeper::OtherSweep Rounds::Counters(absl::Duration light_period) {
  const bool is_mended = LookAhead(light_period);
  absl::StatusOr<CounterSweep> read = port_->ReadCounters();
  if (!read.ok()) return {read.status(), false, {}, NeedsFull(read.status()) || !is_mended};
  const SweepMads mads{read->mads_sent, read->mads_resent, read->mads_timed_out};
  const std::shared_ptr<const FabricView> view = tables_->Published();
  if (view == nullptr) return {NoFabricError(), false, mads, !is_mended};
  std::vector<EventRecord> told;
  unread_.Take(*read, clock_->Now(), told);
  absl::Status status = load_->TakeReadings(*read, view, clock_->Now(), told);
  events_->Append(std::move(told));
  return {std::move(status), false, mads, !is_mended};
}

void Rounds::Tell(SweepKind kind, const absl::Status& status) {
  if (status.ok()) {
    spdlog::info("{} of {} is well again", ObjectOf(kind), port_->Describe());
    events_->Append("sweep.recovered", ObjectOf(kind), "it went well again");
  } else {
    spdlog::error("{} of {} fails: {}", ObjectOf(kind), port_->Describe(), status.ToString());
    events_->Append("sweep.failed", ObjectOf(kind), status.ToString());
  }
}

}  // namespace coppice
