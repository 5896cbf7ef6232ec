// Placements::Start and the distances of nodes: what a job's launcher asks. Split from
// placements.cc for length.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/fingerprint.h"
#include "daemon/manager/placement/placement_task.h"
#include "daemon/manager/placement/placements.h"
#include "daemon/manager/tree_request.h"

namespace coppice {
namespace {

constexpr size_t kMostNodesTold = 8;
constexpr uint32_t kNoPath = UINT32_MAX;

uint64_t FingerprintOf(const StartPlacementArgs& args) {
  Fingerprint fingerprint;
  fingerprint.Add("placement").Add(static_cast<uint64_t>(args.id.value()));
  fingerprint.Add(args.display_name).Add(uint64_t{args.ranks_per_node});
  fingerprint.Add(args.lease ? absl::ToDoubleSeconds(*args.lease) : 0.0);
  return fingerprint.Add(uint64_t{args.arrange_ranks}).value();
}

// The first ports of the nodes. FAILED_PRECONDITION names those that are not there.
absl::StatusOr<std::vector<Guid>> PortsOf(const Fabric& fabric, const PlacementRecord& placement) {
  std::vector<Guid> ports;
  std::vector<absl::string_view> gone;
  for (const std::string& node : placement.nodes) {
    const std::optional<HostIndex> host = fabric.FindHost(node);
    const auto endpoints =
        host ? fabric.endpoints_of_host(*host) : absl::Span<const EndpointIndex>();
    if (endpoints.empty()) {
      gone.push_back(node);
    } else {
      ports.push_back(fabric.endpoint(endpoints.front()).port_guid);
    }
  }
  if (gone.empty()) return ports;
  const size_t told = std::min(gone.size(), kMostNodesTold);
  return absl::FailedPreconditionError(absl::StrCat(
      "placement ", placement.id.value(), ": node ",
      absl::StrJoin(gone.begin(), gone.begin() + told, ", "),
      gone.size() > told ? absl::StrCat(" and ", gone.size() - told, " more") : "",
      " left the fabric or stopped answering since it was made; start it when they are back, or "
      "release it and make another"));
}

NodeDistancesView DistancesBetween(const PlacementIndex& index, absl::Span<const HostIndex> hosts) {
  NodeDistancesView view;
  const size_t n = hosts.size();
  view.hops.reserve(n * n);
  view.levels.reserve(n * n);
  for (const HostIndex a : hosts) {
    view.nodes.emplace_back(index.fabric().host_name(a));
    const uint32_t from = index.leaf_of(a);
    for (const HostIndex b : hosts) {
      const uint32_t to = index.leaf_of(b);
      const bool is_cabled = from != PlacementIndex::kNone && to != PlacementIndex::kNone;
      const uint32_t hops = a == b ? 0 : is_cabled ? index.Hops(from, to) : kNoPath;
      view.hops.push_back(a != b && hops >= PlacementIndex::kUnreachable ? kNoPath : hops);
      const bool same_pod = is_cabled && index.pod_of(from) == index.pod_of(to);
      view.levels.push_back(a == b ? 0 : is_cabled && from == to ? 1 : same_pod ? 2 : 3);
    }
  }
  return view;
}

absl::Status CheckCount(size_t nodes) {
  if (nodes >= 1 && nodes <= Placements::kMostDistanceNodes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("nodes: distances between ", nodes,
                                                 " nodes; ask for those of 1 to ",
                                                 Placements::kMostDistanceNodes));
}

}  // namespace

absl::StatusOr<JobRecord> Placements::JobOf(const PlacementRecord& placement,
                                            const StartPlacementArgs& args) {
  RETURN_IF_ERROR(CheckLength("request_id", args.request_id, kMaxRequestIdBytes));
  RETURN_IF_ERROR(CheckLength("display_name", args.display_name, kMaxNameBytes));
  const std::shared_ptr<const ManagerOptions> options = options_.Get();
  JobRecord job;
  job.owner = placement.owner;
  job.by_administrator = placement.by_administrator;
  job.placed_nodes = static_cast<uint32_t>(placement.nodes.size());
  ASSIGN_OR_RETURN(job.lease, jobs_->LeaseOf(AccountOf(job), args.lease));
  const uint32_t per_node =
      args.ranks_per_node == 0 ? placement.ranks_per_node : args.ranks_per_node;
  const uint64_t positions = uint64_t{per_node} * placement.nodes.size();
  if (positions > options->max_job_ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("ranks_per_node: ", positions,
                     " ranks are over the daemon's limits.job_ranks of ", options->max_job_ranks));
  }
  if (args.arrange_ranks && placement.permutation.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("placement ", placement.id.value(),
                     " has no order of ranks: make it with a pattern, or start without arranging"));
  }
  if (args.arrange_ranks && per_node != placement.ranks_per_node) {
    return absl::InvalidArgumentError(absl::StrCat("ranks_per_node: ", per_node,
                                                   ", but the order of ranks is for ",
                                                   placement.ranks_per_node));
  }
  std::shared_ptr<const FabricView> view;
  {
    std::lock_guard lock(tables_->mu);
    view = tables_->view;
  }
  if (view == nullptr) return NoFabricError();
  ASSIGN_OR_RETURN(const std::vector<Guid> ports, PortsOf(*view->snapshot->fabric, placement));
  if (args.arrange_ranks) {
    for (const uint32_t position : placement.permutation) {
      job.endpoints.push_back(ports[position / per_node]);
    }
  } else {
    for (uint64_t p = 0; p < positions; ++p) job.endpoints.push_back(ports[p / per_node]);
  }
  job.request_id = args.request_id;
  job.request_fingerprint = FingerprintOf(args);
  job.name = args.display_name.empty() ? placement.name : args.display_name;
  job.created = clock_->Now();
  job.ended = absl::InfiniteFuture();
  return job;
}

// Of a placement that is not held.
void Placements::AnswerStarted(PlacementId id, Callback<JobView> done) {
  const absl::StatusOr<PlacementRecord> record = FromStore(id);
  if (!record.ok()) return done(record.status());
  if (record->state == PlacementState::kStarted) return done(jobs_->Get(record->job));
  const bool is_expired = record->state == PlacementState::kExpired;
  done(absl::FailedPreconditionError(
      absl::StrCat("placement ", id.value(), is_expired ? "'s term has run out" : " is released",
                   "; make a new one")));
}

void Placements::Start(StartPlacementArgs args, Callback<JobView> done) {
  const PlacementId id = args.id;
  std::unique_lock lock(mu_);
  const std::shared_ptr<Held> held = Find(id);
  if (held == nullptr) {
    lock.unlock();
    return AnswerStarted(id, std::move(done));
  }
  if (held->phase == Phase::kEnding) {
    lock.unlock();
    return done(absl::FailedPreconditionError(
        absl::StrCat("placement ", id.value(), " is being released; make a new one")));
  }
  held->start_waiters.push_back(std::move(done));
  if (held->phase == Phase::kStarting) return;  // answered together with the one that came first
  held->phase = Phase::kStarting;
  const std::shared_ptr<const PlacementRecord> record = held->record;
  lock.unlock();
  absl::StatusOr<JobRecord> job = JobOf(*record, args);
  const std::string by = NameOf(args.actor);
  if (!job.ok()) return OnStarted(id, by, job.status());
  jobs_->RegisterBy(
      *std::move(job),
      [this, record, &args](const std::shared_ptr<const JobRecord>& made) -> Mutation {
        if (record->is_exclusive) keeper_.MarkExclusive(made->id);
        const std::string object =
            absl::StrCat("placement:", record->id.value(), " job:", made->id.value());
        return StartPlacement{record->id, made, DeedOf(args.actor, object, clock_->Now())};
      },
      args.actor,
      [this, id, by](absl::StatusOr<JobView> view) { OnStarted(id, by, std::move(view)); });
}

void Placements::OnStarted(PlacementId id, const std::string& by, absl::StatusOr<JobView> job) {
  std::vector<Callback<JobView>> waiters;
  std::vector<Callback<PlacementId>> end_waiters;
  bool ends = false;
  {
    std::lock_guard lock(mu_);
    const std::shared_ptr<Held> held = Find(id);
    waiters = std::exchange(held->start_waiters, {});
    if (job.ok()) {
      end_waiters = std::exchange(held->end_waiters, {});
      TakeOut(*held);  // the job is in its table by now
    } else {
      ends = !held->end_waiters.empty();
      held->phase = ends ? Phase::kEnding : Phase::kHeld;
      Requeue(*held, held->deadline);
    }
  }
  if (job.ok()) {
    events_->Append("info", "placement.started", absl::StrCat("placement:", id.value()),
                    absl::StrCat("as job ", job->record->id.value()), {by, job->record->owner});
  } else {
    on_deadline_();
  }
  if (ends) SubmitEnd(id, PlacementState::kReleased);
  for (Callback<JobView>& waiter : waiters) waiter(job);
  for (Callback<PlacementId>& waiter : end_waiters) {
    waiter(absl::FailedPreconditionError(
        absl::StrCat("placement ", id.value(), " was started as job ", job->record->id.value(),
                     " before it could be released; end the job")));
  }
}

absl::StatusOr<NodeDistancesView> Placements::Distances(const std::vector<std::string>& nodes) {
  ASSIGN_OR_RETURN(const auto ground, keeper_.Index());
  ASSIGN_OR_RETURN(const std::vector<HostIndex> hosts,
                   ReadNodes(*ground.first->snapshot->fabric, nodes, "nodes"));
  RETURN_IF_ERROR(CheckCount(hosts.size()));
  return DistancesBetween(*ground.second, hosts);
}

absl::StatusOr<NodeDistancesView> Placements::DistancesOfJob(JobId id) {
  ASSIGN_OR_RETURN(const JobView job, jobs_->Get(id));
  ASSIGN_OR_RETURN(const auto ground, keeper_.Index());
  const std::vector<HostIndex> hosts = HostsOfJob(*ground.first->snapshot->fabric, *job.record);
  RETURN_IF_ERROR(CheckCount(hosts.size()));
  return DistancesBetween(*ground.second, hosts);
}

absl::StatusOr<NodeDistancesView> Placements::DistancesOfPlacement(PlacementId id) {
  ASSIGN_OR_RETURN(const PlacementView placement, Get(id));
  ASSIGN_OR_RETURN(const auto ground, keeper_.Index());
  const std::vector<HostIndex> hosts =
      HostsOfPlacement(*ground.first->snapshot->fabric, *placement.record);
  RETURN_IF_ERROR(CheckCount(hosts.size()));
  return DistancesBetween(*ground.second, hosts);
}

}  // namespace coppice
