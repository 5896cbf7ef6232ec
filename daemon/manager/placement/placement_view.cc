#include "daemon/manager/placement/placement_view.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/manager/placement/placements.h"
#include "daemon/manager/requests.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

constexpr size_t kMaxNamesTold = 5;
constexpr uint32_t kMaxRanksPerNode = 1u << 16;
constexpr absl::Duration kDefaultBudget = absl::Seconds(1);  // placements.proto

void Add(const std::vector<std::string>& names, Fingerprint& fingerprint) {
  fingerprint.Add(uint64_t{names.size()});
  for (const std::string& name : names) fingerprint.Add(name);
}

constexpr size_t kMaxNodesTold = 8;
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
  std::vector<std::string> gone;
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
  return absl::FailedPreconditionError(absl::StrCat(
      "placement ", placement.id.value(), ": node ", FirstOf(gone, kMaxNodesTold),
      " left the fabric or stopped answering since it was made; start it when they are back, or "
      "release it and make another"));
}

absl::StatusOr<NodeDistancesView> DistancesBetween(const PlacementIndex& index,
                                                   absl::Span<const HostIndex> hosts) {
  const size_t n = hosts.size();
  if (n < 1 || n > Placements::kMaxDistanceNodes) {
    return absl::InvalidArgumentError(absl::StrCat("nodes: distances between ", n,
                                                   " nodes; ask for those of 1 to ",
                                                   Placements::kMaxDistanceNodes));
  }
  NodeDistancesView view;
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

}  // namespace

absl::Status CheckTask(const PlacementTask& task) {
  if (task.constraints.host_count == 0) {
    return absl::InvalidArgumentError("nodes: ask for at least one");
  }
  if (task.ranks_per_node == 0 || task.ranks_per_node > kMaxRanksPerNode) {
    return absl::InvalidArgumentError(
        absl::StrCat("ranks per node: ", task.ranks_per_node, "; give 1 to ", kMaxRanksPerNode));
  }
  if (task.budget < absl::ZeroDuration() || task.budget > kMaxBudget) {
    return absl::InvalidArgumentError(absl::StrCat("budget: ", absl::FormatDuration(task.budget),
                                                   "; give 1ms to ",
                                                   absl::FormatDuration(kMaxBudget)));
  }
  return absl::OkStatus();
}

absl::Duration CallBudget::NextOf(const PlacementTask& task) {
  const absl::Duration wanted = task.budget == absl::ZeroDuration() ? kDefaultBudget : task.budget;
  if (task.pattern == nullptr) return wanted;  // nothing to search for
  const absl::Duration left = std::max(end_ - clock_->Monotonic(), absl::ZeroDuration());
  const absl::Duration share = left / static_cast<double>(std::max<size_t>(searches_, 1));
  if (searches_ > 0) --searches_;
  return std::min(wanted, share);
}

absl::Status CallBudget::Check() const {
  if (IsCancelled()) return absl::CancelledError("the client went away");
  if (clock_->Monotonic() < latest_) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("requests: planned for ",
                                                  absl::FormatDuration(2 * kMaxBudget),
                                                  " without an end; ask for fewer at once"));
}

absl::StatusOr<std::vector<HostIndex>> ReadNodes(const Fabric& fabric,
                                                 const std::vector<std::string>& names,
                                                 absl::string_view field) {
  ASSIGN_OR_RETURN(const std::vector<std::string> nodes,
                   ExpandEndpointNames(fabric, names, kMaxListedNodes, field));
  if (const std::optional<size_t> twice = FindRepeated(nodes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": node ", nodes[*twice], " is named twice; name it once"));
  }
  std::vector<HostIndex> hosts;
  std::vector<std::string> unknown;
  for (const std::string& node : nodes) {
    const std::optional<HostIndex> host = fabric.FindHost(node);
    if (host) {
      hosts.push_back(*host);
    } else {
      unknown.push_back(node);
    }
  }
  if (unknown.empty()) return hosts;
  return absl::NotFoundError(absl::StrCat(field, ": the fabric has no node ",
                                          FirstOf(unknown, kMaxNamesTold),
                                          "; `fabric nodes` lists those that it has"));
}

absl::StatusOr<PlacementRequest> ReadTask(const Fabric& fabric, const PlacementTask& task,
                                          const PlacementObjective& weights) {
  PlacementRequest request;
  request.constraints = task.constraints;
  ASSIGN_OR_RETURN(request.constraints.candidates,
                   ReadNodes(fabric, task.candidates, "candidates"));
  ASSIGN_OR_RETURN(request.constraints.include, ReadNodes(fabric, task.include, "include"));
  ASSIGN_OR_RETURN(request.constraints.avoid, ReadNodes(fabric, task.avoid, "avoid"));
  request.objective = task.objective == PlacementObjective{} ? weights : task.objective;
  request.pattern = task.pattern;
  request.ranks_per_host = task.ranks_per_node;
  request.trees = task.trees;
  request.seed = task.seed;
  return request;
}

uint64_t FingerprintOf(const CreatePlacementArgs& args) {
  const PlacementTask& task = args.task;
  const PlacementConstraints& c = task.constraints;
  Fingerprint fingerprint;
  fingerprint.Add(args.display_name).Add(args.owner);
  fingerprint.Add(args.term ? absl::ToDoubleSeconds(*args.term) : 0.0);
  for (const auto* names : {&task.candidates, &task.include, &task.avoid}) Add(*names, fingerprint);
  for (const uint32_t number :
       {c.host_count, c.hosts_per_leaf, c.max_hosts_per_leaf, c.max_leaf_switches,
        c.min_leaf_switches, c.min_pods, task.ranks_per_node, task.trees}) {
    fingerprint.Add(uint64_t{number});
  }
  fingerprint.Add(uint64_t{c.same_pod}).Add(uint64_t{c.exclusive_switches});
  for (const PlacementTerm& term : kPlacementTerms) fingerprint.Add(task.objective.*term.weight);
  fingerprint.Add(task.pattern_name).Add(task.seed);
  fingerprint.Add(absl::ToDoubleSeconds(task.budget));
  if (task.pattern != nullptr && task.pattern_name.empty()) {
    fingerprint.Add(uint64_t{task.pattern->rank_count()}).Add(uint64_t{task.pattern->pair_count()});
    fingerprint.Add(task.pattern->total_bytes());
  }
  // Came later: says nothing where it is not set.
  if (task.partition != PartitionNum()) {
    fingerprint.Add("partition").Add(uint64_t{task.partition.value()});
  }
  if (!task.account.empty()) fingerprint.Add("account").Add(task.account);
  return fingerprint.value();
}

// Placements::Start and the distances of nodes: what a job's launcher asks.

absl::StatusOr<JobRecord> Placements::JobOf(const PlacementRecord& placement,
                                            const StartPlacementArgs& args) {
  RETURN_IF_ERROR(CheckLength("request_id", args.request_id, kMaxRequestIdBytes));
  RETURN_IF_ERROR(CheckLength("display_name", args.display_name, kMaxNameBytes));
  const std::shared_ptr<const ManagerOptions> options = options_.Get();
  JobRecord job;
  job.owner = placement.owner;
  job.by_administrator = placement.by_administrator;
  job.account = placement.account;
  job.placed_nodes = static_cast<uint32_t>(placement.nodes.size());
  const uint32_t per_node =
      args.ranks_per_node == 0 ? placement.ranks_per_node : args.ranks_per_node;
  const uint64_t positions = uint64_t{per_node} * placement.nodes.size();
  if (positions > options->max_job_ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("ranks per node: ", positions,
                     " ranks are over the daemon's limits.job_ranks of ", options->max_job_ranks));
  }
  if (args.arrange_ranks && placement.permutation.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("placement ", placement.id.value(),
                     " has no order of ranks: make it with a pattern, or start without arranging"));
  }
  if (args.arrange_ranks && per_node != placement.ranks_per_node) {
    return absl::InvalidArgumentError(absl::StrCat("ranks per node: ", per_node,
                                                   ", but the order of ranks is for ",
                                                   placement.ranks_per_node));
  }
  const std::shared_ptr<const FabricView> view = tables_->Published();
  if (view == nullptr) return NoFabricError();
  ASSIGN_OR_RETURN(const std::vector<Guid> ports, PortsOf(*view->snapshot->fabric, placement));
  if (args.arrange_ranks) {
    for (const uint32_t position : placement.permutation) {
      job.endpoints.push_back(ports[position / per_node]);
    }
  } else {
    for (uint64_t p = 0; p < positions; ++p) job.endpoints.push_back(ports[p / per_node]);
  }
  ASSIGN_OR_RETURN(job.partition, ChoosePartition(*view->snapshot, ports, placement.partition));
  ASSIGN_OR_RETURN(job.lease, jobs_->LeaseOf(PayerOf(job), args.lease));
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
    events_->Append("placement.started", absl::StrCat("placement:", id.value()),
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
  ASSIGN_OR_RETURN(const auto index, keeper_.Index());
  ASSIGN_OR_RETURN(const std::vector<HostIndex> hosts, ReadNodes(index->fabric(), nodes, "nodes"));
  return DistancesBetween(*index, hosts);
}

absl::StatusOr<NodeDistancesView> Placements::DistancesOfJob(JobId id) {
  ASSIGN_OR_RETURN(const JobView job, jobs_->Get(id));
  ASSIGN_OR_RETURN(const auto index, keeper_.Index());
  return DistancesBetween(*index, HostsOfJob(index->fabric(), *job.record));
}

absl::StatusOr<NodeDistancesView> Placements::DistancesOfPlacement(PlacementId id) {
  ASSIGN_OR_RETURN(const PlacementView placement, Get(id));
  ASSIGN_OR_RETURN(const auto index, keeper_.Index());
  return DistancesBetween(*index, HostsOfPlacement(index->fabric(), *placement.record));
}

}  // namespace coppice
