#include "daemon/manager/tree_draft.h"

#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/tree_record.h"
#include "daemon/manager/tree_request.h"
#include "daemon/tree/planner.h"

namespace coppice {
absl::StatusOr<PlanBasis> TakeBasis(Tables& tables, Job& job,
                                    std::vector<SwitchCapacity>& capacity) {
  PlanBasis basis;
  {
    std::lock_guard lock(tables.mu);
    if (tables.view == nullptr) return NoFabricError();
    basis.view = tables.view;
    basis.snapshot.load = tables.load.CurrentFor(job.record->id);
    basis.endpoints = job.resolved;
    basis.profile = tables.profile;
    basis.promised_duty = tables.promised_duty;
    const absl::Span<const SwitchCapacity> free = tables.entries.capacity();
    capacity.assign(free.begin(), free.end());
  }
  std::shared_ptr<const LinkLoad> load = std::move(basis.snapshot.load);
  basis.snapshot = *basis.view->snapshot;
  basis.snapshot.load = std::move(load);
  const Fabric& fabric = *basis.snapshot.fabric;
  if (basis.endpoints == nullptr || basis.endpoints->fabric_version != fabric.version()) {
    basis.endpoints = ResolveAll(fabric, *job.record);
    std::lock_guard lock(tables.mu);
    job.resolved = basis.endpoints;
  }
  return basis;
}

bool AreTablesBehind(const PlanBasis& basis) {
  return basis.snapshot.routes->kind() == RouteKind::kForwardingTables &&
         !basis.view->routes_settled;
}

bool MayLackRoutes(const absl::Status& refusal) {
  return absl::IsFailedPrecondition(refusal) || absl::IsNotFound(refusal);
}

PlanBasis OverLinks(Tables& tables, PlanBasis basis) {
  basis.snapshot.routes = ShortestPathsOf(tables, basis.snapshot.fabric);
  return basis;
}

std::shared_ptr<const Routes> ShortestPathsOf(Tables& tables,
                                              const std::shared_ptr<const Fabric>& fabric) {
  {
    std::lock_guard lock(tables.mu);
    const std::shared_ptr<const Routes>& kept = tables.shortest_paths;
    if (kept != nullptr && &kept->fabric() == fabric.get()) return kept;
  }
  std::shared_ptr<const Routes> routes = Routes::ShortestPaths(fabric);
  std::lock_guard lock(tables.mu);
  tables.shortest_paths = routes;
  return routes;
}

namespace {

absl::Status FillMembers(const JobRecord& job, const ResolvedEndpoints& endpoints,
                         const CreateTreeArgs& args, std::vector<EndpointIndex>& members) {
  const size_t count = args.ranks.empty() ? endpoints.endpoints.size() : args.ranks.size();
  members.clear();
  members.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t rank = args.ranks.empty() ? static_cast<uint32_t>(i) : args.ranks[i];
    const EndpointIndex endpoint = endpoints.endpoints[rank];
    if (endpoint == ResolvedEndpoints::kGone) {
      return MemberIsGone(job, rank);
    }
    members.push_back(endpoint);
  }
  return absl::OkStatus();
}

absl::Status FillRequest(const JobRecord& job, const ResolvedEndpoints& endpoints,
                         const CreateTreeArgs& args, DraftScratch& scratch) {
  RETURN_IF_ERROR(
      CheckRanks(args.ranks, static_cast<uint32_t>(job.endpoints.size()), scratch.rank_marks));
  TreeRequest& request = scratch.request;
  RETURN_IF_ERROR(FillMembers(job, endpoints, args, request.members));
  static_cast<TreeSpec&>(request) = args;
  if (request.sizes.empty()) request.sizes.assign(1, {8, 1});
  return absl::OkStatus();
}

// Type II was demanded and refused. Without that demand the planner returns a plan that says which
// switches stood in the way; only an answer that is an error anyway pays for this.
absl::Status WithFullSwitches(const Snapshot& snapshot, const CostProfile& profile,
                              absl::Status status, DraftScratch& scratch,
                              std::vector<RefusedSwitch>& full) {
  TreeRequest& request = scratch.request;
  request.type.reset();
  request.width.reset();
  request.nic_degree.reset();
  request.policy.reset();
  request.list_tradeoffs = false;
  const absl::StatusOr<TreePlan> plan = PlanTree(snapshot, profile, scratch.capacity, request);
  if (!plan.ok()) return status;
  std::string lines;
  for (const FullSwitch& entry : plan->full_switches) {
    const SwitchInfo& info = snapshot.fabric->switch_info(entry.index);
    const SwitchCapacity& capacity = scratch.capacity[entry.index.value()];
    absl::StrAppend(&lines, FullSwitchLine(info, capacity));
    full.push_back({info.guid, capacity.entries_total});
  }
  if (!lines.empty()) status.SetPayload(kFullSwitchesPayload, absl::Cord(lines));
  return status;
}

}  // namespace

std::unique_ptr<DraftScratch> ScratchPool::Take() {
  std::lock_guard lock(mu_);
  if (idle_.empty()) return std::make_unique<DraftScratch>();
  std::unique_ptr<DraftScratch> scratch = std::move(idle_.back());
  idle_.pop_back();
  return scratch;
}

void ScratchPool::Return(std::unique_ptr<DraftScratch> scratch) {
  std::lock_guard lock(mu_);
  idle_.push_back(std::move(scratch));
}

std::shared_ptr<const ResolvedEndpoints> ResolveAll(const Fabric& fabric, const JobRecord& job) {
  auto resolved = std::make_shared<ResolvedEndpoints>();
  resolved->fabric_version = fabric.version();
  resolved->endpoints.reserve(job.endpoints.size());
  for (const Guid guid : job.endpoints) {
    resolved->endpoints.push_back(fabric.FindEndpoint(guid).value_or(ResolvedEndpoints::kGone));
  }
  return resolved;
}

absl::StatusOr<TreeDraft> DraftTree(const PlanBasis& basis, const JobRecord& job,
                                    const CreateTreeArgs& args, DraftScratch& scratch,
                                    std::vector<RefusedSwitch>& full) {
  const Snapshot& snapshot = basis.snapshot;
  const CostProfile& profile = *basis.profile;
  full.clear();
  RETURN_IF_ERROR(FillRequest(job, *basis.endpoints, args, scratch));
  absl::StatusOr<TreePlan> plan = PlanTree(snapshot, profile, scratch.capacity, scratch.request);
  if (absl::IsResourceExhausted(plan.status()) && args.type == TreeType::kTypeII) {
    return WithFullSwitches(snapshot, profile, plan.status(), scratch, full);
  }
  RETURN_IF_ERROR(plan.status());
  return DraftOfPlan(basis, job, args, *std::move(plan), scratch);
}

std::string FullSwitchLine(const SwitchInfo& info, const SwitchCapacity& capacity) {
  return absl::StrCat(ToString(info.guid), " ", capacity.entries_total, " ",
                      capacity.entries_total - capacity.entries_free, " ", info.description, "\n");
}

absl::Status MemberIsGone(const JobRecord& job, uint32_t rank) {
  return absl::FailedPreconditionError(absl::StrCat(
      "rank ", rank, " of job ", job.id.value(), ": its port ", ToString(job.endpoints[rank]),
      " is not in the fabric any more; leave the rank out or bring the port back"));
}

absl::StatusOr<TreeDraft> DraftOfPlan(const PlanBasis& basis, const JobRecord& job,
                                      const CreateTreeArgs& args, TreePlan plan,
                                      DraftScratch& scratch) {
  const Snapshot& snapshot = basis.snapshot;
  RETURN_IF_ERROR(MeasureLinks(snapshot, *basis.profile, scratch.request, scratch.links, plan));
  TreeDraft draft;
  for (uint32_t node = plan.tree.rank_count; node < plan.tree.node_count(); ++node) {
    draft.switches.push_back(snapshot.fabric->AsSwitch(plan.tree.vertices[node]));
  }
  TreeRecord& record = draft.record;
  record.job = job.id;
  record.spec = args;
  record.spec.sizes = scratch.request.sizes;
  record.spec.list_tradeoffs = false;
  record.ranks = args.ranks;
  if (args.ranks.empty()) {
    record.ranks.resize(job.endpoints.size());
    std::iota(record.ranks.begin(), record.ranks.end(), 0u);
  }
  const std::vector<ChannelUse> uses = std::move(plan.uses);
  draft.tradeoffs = std::move(plan.tradeoffs);
  FillFromPlan(snapshot, *basis.view->link_ids, uses, std::move(plan), record);
  draft.promise = PromiseOfPlan(snapshot, *basis.profile, basis.promised_duty, record, uses);
  return draft;
}

}  // namespace coppice
