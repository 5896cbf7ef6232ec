#include "daemon/manager/tree_draft.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/tree_record.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/forest/forest.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/tree.h"

namespace coppice {
namespace {

// What partition and quotas have made of a tree, as a part of its reason or refusal.
std::string BoundWords(const PlanBasis& basis, const TreeRequest& request, TreeType type) {
  std::string words = PartitionWords(*basis.ports, basis.barred_switches, request, type);
  if (!basis.spent_switches.empty() && request.type != TreeType::kTypeI) {
    absl::StrAppend(&words, "; of ", basis.spent_switches.size(),
                    basis.spent_switches.size() == 1 ? " switch" : " switches",
                    " all entries that the job may have are taken (quota switch_entries)");
  }
  if (request.type != TreeType::kTypeI) {
    words += basis.kept->WordsOf(basis.tenant, *basis.snapshot.fabric, basis.kept_switches);
  }
  return words;
}

absl::Status FillRequest(const PlanBasis& basis, const JobRecord& job, const CreateTreeArgs& args,
                         DraftScratch& scratch) {
  RETURN_IF_ERROR(
      CheckRanks(args.ranks, static_cast<uint32_t>(job.endpoints.size()), scratch.rank_marks));
  TreeRequest& request = scratch.request;
  RETURN_IF_ERROR(FillMembers(basis.snapshot, job, *basis.ports, args.ranks, request));
  static_cast<TreeSpec&>(request) = args;
  if (request.sizes.empty()) request.sizes.assign(1, {8, 1});
  return absl::OkStatus();
}

// Type II was demanded and refused. Without that demand the planner returns a plan that says which
// switches stood in the way; only an answer that is an error anyway pays for this.
absl::Status WithFullSwitches(const PlanBasis& basis, const absl::Status& refusal,
                              DraftScratch& scratch, std::vector<RefusedSwitch>& full) {
  absl::Status status(
      refusal.code(),
      absl::StrCat(refusal.message(), BoundWords(basis, scratch.request, TreeType::kTypeII)));
  const Snapshot& snapshot = basis.snapshot;
  TreeRequest& request = scratch.request;
  request.type.reset();
  request.width.reset();
  request.nic_degree.reset();
  request.policy.reset();
  request.list_tradeoffs = false;
  CostProfile measured = *basis.profile;
  measured.switch_is_measured = true;  // else one that is to be carried is not tried as type II
  const absl::StatusOr<TreePlan> plan = PlanTree(snapshot, measured, scratch.capacity, request);
  if (!plan.ok()) return status;
  std::string lines;
  for (const FullSwitch& entry : plan->full_switches) {
    const SwitchInfo& info = snapshot.fabric->switch_info(entry.index);
    const SwitchCapacity& capacity = scratch.capacity[entry.index.value()];
    if (request.carried && !capacity.speaks) continue;  // it is silent, which is not full
    if (entry.is_barred) continue;
    absl::StrAppend(&lines, FullSwitchLine(info, capacity));
    full.push_back({info.guid, capacity.entries_total});
  }
  if (!lines.empty()) status.SetPayload(kFullSwitchesPayload, absl::Cord(lines));
  return status;
}

void FillFromRequest(const JobRecord& job, const CreateTreeArgs& args, const TreeRequest& request,
                     TreeRecord& record) {
  record.job = job.id;
  record.spec = args;
  record.spec.sizes = request.sizes;
  record.spec.list_tradeoffs = false;
  record.ranks = args.ranks;
  if (!args.ranks.empty()) return;
  record.ranks.resize(job.endpoints.size());
  std::iota(record.ranks.begin(), record.ranks.end(), 0u);
}

// The record of all trees as one. Its predicted time is of both ways at once, which are not told
// apart. NOT_FOUND: an edge without a route.
absl::StatusOr<TreeDraft> DraftOfForest(const PlanBasis& basis, const JobRecord& job,
                                        const CreateTreeArgs& args, ForestPlan forest,
                                        DraftScratch& scratch) {
  const Snapshot& snapshot = basis.snapshot;
  TreeDraft draft;
  FillFromRequest(job, args, scratch.request, draft.record);
  TreePlan plan;
  scratch.links.Begin(snapshot);
  for (size_t t = 0; t < forest.trees.size(); ++t) {
    ForestTree& one = forest.trees[t];
    RETURN_IF_ERROR(scratch.links.AddTree(one.tree, nullptr));
    ASSIGN_OR_RETURN(std::vector<EdgeCost> edges, EdgeCosts(snapshot, *basis.profile, one.tree));
    plan.height = std::max(plan.height, Height(one.tree));
    plan.radius = std::max(plan.radius, Radius(one.tree, edges));
    if (forest.trees.size() > 1) draft.record.forest.push_back({one.share, one.tree.parents});
    if (t == 0) plan.edges = std::move(edges);
  }
  std::vector<ChannelUse> uses;
  scratch.links.Take(uses);
  RETURN_IF_ERROR(CheckPassage(snapshot, basis.ports->partition, uses));
  plan.tree = std::move(forest.trees[0].tree);
  plan.predicted.total_us = forest.total_us;
  plan.reason = std::move(forest.reason);
  FillFromPlan(snapshot, *basis.view->link_ids, uses, std::move(plan), draft.record);
  draft.record.builder = kForestBuilder;
  draft.promise = PromiseOfRecord(snapshot, *basis.view->link_ids, *basis.profile,
                                  basis.promised_duty, job, draft.record, scratch.links);
  return draft;
}

// What kept type II away, if that was for want of entries.
void NoteFull(const PlanBasis& basis, const TreePlan& plan, const DraftScratch& scratch,
              std::vector<RefusedSwitch>& full) {
  const bool has_type2 = absl::c_any_of(plan.alternatives, [](const Alternative& one) {
    return one.type == TreeType::kTypeII && one.total_us.has_value();
  });
  if (has_type2) return;
  for (const FullSwitch& entry : plan.full_switches) {
    if (entry.is_barred || scratch.capacity[entry.index.value()].entries_total == 0) continue;
    full.push_back({basis.snapshot.fabric->switch_info(entry.index).guid, entry.entries_total});
  }
}

// Of the plan for scratch.request, or of one of the other type if a switch on its way keeps the
// partition out and either type will do.
absl::StatusOr<TreeDraft> DraftOfOne(const PlanBasis& basis, const JobRecord& job,
                                     const CreateTreeArgs& args, absl::StatusOr<TreePlan> plan,
                                     DraftScratch& scratch, std::vector<RefusedSwitch>& full) {
  if (absl::IsResourceExhausted(plan.status()) && args.type == TreeType::kTypeII) {
    return WithFullSwitches(basis, plan.status(), scratch, full);
  }
  RETURN_IF_ERROR(plan.status());
  const bool is_type2 = plan->tree.type == TreeType::kTypeII;
  if (!args.type && !is_type2) NoteFull(basis, *plan, scratch, full);
  absl::StatusOr<TreeDraft> draft = DraftOfPlan(basis, job, args, *std::move(plan), scratch);
  if (args.type || !IsOfPartition(draft.status())) return draft;
  scratch.request.type = is_type2 ? TreeType::kTypeI : TreeType::kTypeII;
  absl::StatusOr<TreePlan> other =
      PlanTree(basis.snapshot, *basis.profile, scratch.capacity, scratch.request);
  if (!other.ok()) return draft;
  absl::StrAppend(&other->reason, "; no type ", is_type2 ? "II" : "I",
                  " tree: ", draft.status().message());
  absl::StatusOr<TreeDraft> instead = DraftOfPlan(basis, job, args, *std::move(other), scratch);
  return instead.ok() ? std::move(instead) : std::move(draft);
}

constexpr size_t kMaxNamedRefusals = 3;  // refused communicators in the message of an error
constexpr size_t kMaxSwitches = 16;      // full ones in its payload, which travels in a header

class Drafter {
 public:
  Drafter(const PlanBasis& basis, const JobRecord& job, const CreateBatchArgs& args,
          absl::Span<const SwitchCapacity> capacity, const BatchRoom& room, const BatchWatch& watch,
          std::vector<RefusedSwitch>& full_switches)
      : basis_(basis),
        snapshot_(basis.snapshot),
        job_(job),
        args_(args),
        capacity_(capacity),
        room_(room),
        watch_(watch),
        full_switches_(full_switches) {
    alike_.job = args.job;
    static_cast<CollectiveMix&>(alike_) = args;
    alike_.type = TreeType::kTypeII;
    scratch_.request.operation = args.operation;
    if (!args.sizes.empty()) scratch_.request.sizes = args.sizes;
    draft_.view.communicators = static_cast<uint32_t>(args.communicators.size());
    draft_.view.fabric_version = snapshot_.fabric->version();
  }

  absl::StatusOr<BatchDraft> Draft() {
    RETURN_IF_ERROR(FindMembers());
    ASSIGN_OR_RETURN(BatchPlan plan, Plan());
    if (args_.compare) RETURN_IF_ERROR(Compare(plan.totals));
    StayWithinRoom(plan);
    draft_.view.most_packets = plan.totals.most_packets;
    draft_.view.most_loaded = DescribeChannel(plan.totals.most_loaded);
    for (uint32_t i = 0; i < batch_.size(); ++i) {
      if (watch_.IsCancelled()) return BatchIsCancelled();
      Tell(BatchWatch::Phase::kHangingRanks, i);
      RETURN_IF_ERROR(Hang(i, plan.communicators[i]));
    }
    if (!draft_.view.refusals.empty() && !args_.largest_part) return RefuseAll();
    std::sort(draft_.view.refusals.begin(), draft_.view.refusals.end(),
              [](const auto& a, const auto& b) { return a.communicator < b.communicator; });
    return std::move(draft_);
  }

 private:
  void Tell(BatchWatch::Phase phase, uint32_t done) const {
    if (watch_.progress) watch_.progress(phase, done, static_cast<uint32_t>(batch_.size()));
  }

  // Ranks become endpoints. Whose cannot is refused alone if that is allowed.
  absl::Status FindMembers() {
    for (uint32_t c = 0; c < args_.communicators.size(); ++c) {
      const absl::Status status = FindMembersOf(c);
      if (status.ok()) {
        batch_.push_back({scratch_.request.members, args_.accept_type1});
        numbers_.push_back(c);
      } else if (args_.largest_part) {
        draft_.view.refusals.push_back({c, std::string(status.message())});
      } else {
        return Annotate(status, absl::StrCat("communicator ", c));
      }
    }
    return absl::OkStatus();
  }

  absl::Status FindMembersOf(uint32_t communicator) {
    return FillMembers(snapshot_, job_, *basis_.ports, args_.communicators[communicator],
                       scratch_.request);
  }

  BatchOptions Options() const {
    BatchOptions options;
    options.goal = args_.goal;
    return options;
  }

  absl::StatusOr<BatchPlan> Plan() const {
    if (batch_.empty()) return BatchPlan();
    const uint64_t size = batch_.size();
    return PlanBatch(snapshot_, capacity_, batch_, Options(),
                     [this, size](BatchPhase phase, uint64_t done, uint32_t total) {
                       // Improvements count their own work: told as a share of the communicators.
                       Tell(phase == BatchPhase::kImproving ? BatchWatch::Phase::kImproving
                                                            : BatchWatch::Phase::kPlanning,
                            static_cast<uint32_t>(total == 0 ? 0 : done * size / total));
                     });
  }

  absl::Status Compare(const BatchTotals& totals) {
    BatchComparison& comparison = draft_.view.comparison.emplace();
    comparison.batch = InWords(totals);
    if (batch_.empty()) return absl::OkStatus();
    const auto one_by_one = [&](BaselineMethod method) {
      return PlanOneByOne(snapshot_, capacity_, batch_, method, Options());
    };
    ASSIGN_OR_RETURN(const BatchTotals least, one_by_one(BaselineMethod::kMinimumCost));
    ASSIGN_OR_RETURN(const BatchTotals unreduced, one_by_one(BaselineMethod::kUnreduced));
    comparison.one_by_one = InWords(least);
    comparison.unreduced = InWords(unreduced);
    ASSIGN_OR_RETURN(comparison.bounds, BoundBatch(snapshot_, capacity_, batch_));
    return absl::OkStatus();
  }

  BatchComparison::Totals InWords(const BatchTotals& totals) const {
    return {totals, DescribeChannel(totals.most_loaded)};
  }

  // Takes trees from the plan, or all of a communicator (left_out_), that there is no room for.
  void StayWithinRoom(BatchPlan& plan) {
    left_out_.resize(batch_.size());
    if (!args_.largest_part && !args_.accept_type1) return;
    const auto entries_of = [&](uint32_t i) {
      const CommunicatorResult& result = plan.communicators[i];
      return result.tree ? static_cast<int64_t>(result.tree->serving.size())
                         : std::numeric_limits<int64_t>::max();
    };
    std::vector<uint32_t> order(batch_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return entries_of(a) < entries_of(b); });
    int64_t trees = 0, ranks = 0, entries = 0;
    for (const uint32_t i : order) {
      CommunicatorResult& result = plan.communicators[i];
      if (!result.tree && !args_.accept_type1) continue;
      if (args_.largest_part && trees >= room_.left[Quota::kTrees]) {
        left_out_[i] = room_.why_not(Quota::kTrees, trees + 1);
        continue;
      }
      const auto members = static_cast<int64_t>(batch_[i].members.size());
      if (args_.largest_part && members > room_.left[Quota::kTreeRanks] - ranks) {
        left_out_[i] = room_.why_not(Quota::kTreeRanks, ranks + members);
        continue;
      }
      if (result.tree && entries_of(i) > room_.left[Quota::kEntries] - entries) {
        result.why_not = room_.why_not(Quota::kEntries, entries + entries_of(i));
        result.tree.reset();
        if (!args_.accept_type1) continue;
      }
      if (result.tree) entries += entries_of(i);
      ranks += members;
      ++trees;
    }
  }

  std::string DescribeChannel(ChannelIndex channel) const {
    if (channel == kNoChannel) return "";
    const Fabric& fabric = *snapshot_.fabric;
    return absl::StrCat(Describe(fabric, fabric.channel_from(channel)), " port ",
                        fabric.channel_from_port(channel).value(), " to ",
                        Describe(fabric, fabric.channel_to(channel)));
  }

  // The communicator's tree, or why it gets none.
  absl::Status Hang(uint32_t i, const CommunicatorResult& result) {
    if (!left_out_[i].empty()) return Refuse(i, left_out_[i]);
    NoteFull(result);
    if (!result.tree && !args_.accept_type1) return Refuse(i, WhyNot(result));
    TreeRequest& request = scratch_.request;
    RETURN_IF_ERROR(FindMembersOf(numbers_[i]));
    request.type = result.tree ? TreeType::kTypeII : TreeType::kTypeI;
    absl::StatusOr<TreePlan> plan =
        result.tree ? PlanOfBatchTree(snapshot_, *basis_.profile, capacity_, request, *result.tree)
                    : PlanTree(snapshot_, *basis_.profile, capacity_, request);
    if (!plan.ok()) {
      if (result.tree) return plan.status();
      return Refuse(
          i, absl::StrCat(WhyNot(result), "; no type I tree either: ", plan.status().message()));
    }
    if (!result.tree) absl::StrAppend(&plan->reason, "; no type II tree: ", WhyNot(result));
    alike_.ranks = args_.communicators[numbers_[i]];
    absl::StatusOr<TreeDraft> tree = DraftOfPlan(basis_, job_, alike_, *std::move(plan), scratch_);
    if (args_.largest_part && IsOfPartition(tree.status())) {
      return Refuse(i, std::string(tree.status().message()));
    }
    RETURN_IF_ERROR(tree.status());
    tree->record.accepts_type1 = args_.accept_type1;
    draft_.trees.push_back(*std::move(tree));
    draft_.view.trees.push_back({numbers_[i], {}});
    return absl::OkStatus();
  }

  // With what bars the switches that it lacks.
  std::string WhyNot(const CommunicatorResult& result) const {
    const bool is_any_barred =
        absl::c_any_of(result.full_switches, [](const FullSwitch& full) { return full.is_barred; });
    return absl::StrCat(result.why_not,
                        is_any_barred ? BoundWords(basis_, TreeRequest(), TreeType::kTypeII) : "");
  }

  void NoteFull(const CommunicatorResult& result) {
    for (const FullSwitch& full : result.full_switches) {
      if (full.is_barred || !full_.insert(full.index.value()).second) continue;
      full_switches_.push_back(
          {snapshot_.fabric->switch_info(full.index).guid, full.entries_total});
    }
  }

  // Remembers it; an error if the members, not the entries, are what is wrong and all were
  // demanded.
  absl::Status Refuse(uint32_t i, std::string why_not) {
    if (!args_.largest_part) {
      const absl::Status reachable = FindMemberPlaces(snapshot_, batch_[i].members).status();
      if (!reachable.ok()) return Annotate(reachable, absl::StrCat("communicator ", numbers_[i]));
    }
    draft_.view.refusals.push_back({numbers_[i], std::move(why_not)});
    return absl::OkStatus();
  }

  absl::Status RefuseAll() const {
    std::string message =
        absl::StrCat(draft_.view.refusals.size(), " of ", args_.communicators.size(),
                     " communicators get no tree, so none is granted");
    for (size_t i = 0; i < draft_.view.refusals.size() && i < kMaxNamedRefusals; ++i) {
      absl::StrAppend(&message, "; communicator ", draft_.view.refusals[i].communicator, ": ",
                      draft_.view.refusals[i].why_not);
    }
    if (draft_.view.refusals.size() > kMaxNamedRefusals) {
      absl::StrAppend(&message, "; and ", draft_.view.refusals.size() - kMaxNamedRefusals, " more");
    }
    absl::StrAppend(&message, args_.accept_type1 ? "" : "; accept type I trees for these,",
                    args_.accept_type1 ? "; ask" : " ask",
                    " for as many as fit, or release trees first");
    absl::Status status = absl::ResourceExhaustedError(message);
    std::string lines;
    size_t named = 0;
    for (const uint32_t s : full_) {
      if (named++ == kMaxSwitches) break;
      const SwitchInfo& info = snapshot_.fabric->switch_info(SwitchIndex(s));
      absl::StrAppend(&lines, FullSwitchLine(info, capacity_[s]));
    }
    if (!lines.empty()) status.SetPayload(kFullSwitchesPayload, absl::Cord(lines));
    return status;
  }

  const PlanBasis& basis_;
  const Snapshot& snapshot_;
  const JobRecord& job_;
  const CreateBatchArgs& args_;
  const absl::Span<const SwitchCapacity> capacity_;
  const BatchRoom& room_;
  const BatchWatch& watch_;
  std::vector<RefusedSwitch>& full_switches_;

  CreateTreeArgs alike_;  // what a request for one of the trees would be
  DraftScratch scratch_;
  std::vector<BatchCommunicator> batch_;  // those that can be planned
  std::vector<uint32_t> numbers_;         // [position in batch_] communicator
  std::vector<std::string> left_out_;  // [position in batch_] why there is no room; empty: there is
  std::set<uint32_t> full_;            // switches
  BatchDraft draft_;
};

}  // namespace

absl::StatusOr<PlanBasis> TakeBasis(Tables& tables, Job& job,
                                    std::vector<SwitchCapacity>& capacity) {
  PlanBasis basis;
  {
    std::lock_guard lock(tables.mu);
    if (tables.view == nullptr) return NoFabricError();
    basis.view = tables.view;
    basis.snapshot.load = tables.load.CurrentFor(job.record->id);
    basis.ports = job.ports;
    basis.profile = tables.profile;
    basis.promised_duty = tables.promised_duty;
    basis.kept = tables.kept;
    const absl::Span<const SwitchCapacity> free = tables.entries.capacity();
    capacity.assign(free.begin(), free.end());
  }
  std::shared_ptr<const LinkLoad> load = std::move(basis.snapshot.load);
  basis.snapshot = *basis.view->snapshot;
  basis.snapshot.load = std::move(load);
  const Fabric& fabric = *basis.snapshot.fabric;
  if (basis.ports == nullptr || basis.ports->fabric_version != fabric.version()) {
    basis.ports =
        FindJobPorts(basis.snapshot, *job.record, PartitionOfJob(tables, job, basis.snapshot));
    std::lock_guard lock(tables.mu);
    job.ports = basis.ports;
  }
  for (const SwitchIndex s : basis.ports->foreign_switches) {
    if (capacity[s.value()].entries_total > 0) ++basis.barred_switches;
    capacity[s.value()] = {.speaks = capacity[s.value()].speaks, .is_barred = true};
  }
  basis.tenant = tables.quotas.TenantOf(PayerOf(*job.record));
  basis.spent_switches =
      tables.quotas.Restrict(PayerOf(*job.record), fabric, absl::MakeSpan(capacity));
  for (const SwitchIndex s : basis.spent_switches) capacity[s.value()].is_barred = true;
  return basis;
}

void LeaveKept(const HeldEntries& held, KeptEntries::Asker asker, PlanBasis& basis,
               std::vector<SwitchCapacity>& capacity) {
  if (basis.kept->switches().empty()) return;
  basis.kept_switches = basis.kept->Apply(basis.tenant, *basis.snapshot.fabric, held, asker,
                                          absl::MakeSpan(capacity));
  // A reservation gives nobody more than his quota.
  for (const SwitchIndex s : basis.spent_switches) capacity[s.value()].entries_free = 0;
  for (const SwitchIndex s : basis.kept_switches) capacity[s.value()].is_barred = true;
}

bool AreTablesBehind(const PlanBasis& basis) {
  return basis.snapshot.routes->kind() == RouteKind::kForwardingTables &&
         !basis.view->routes_settled;
}

bool MayLackRoutes(const absl::Status& refusal) {
  if (IsOfPartition(refusal)) return false;
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

absl::StatusOr<TreeDraft> DraftTree(const PlanBasis& basis, const JobRecord& job,
                                    const CreateTreeArgs& args, DraftScratch& scratch,
                                    std::vector<RefusedSwitch>& full) {
  const Snapshot& snapshot = basis.snapshot;
  const CostProfile& profile = *basis.profile;
  full.clear();
  RETURN_IF_ERROR(FillRequest(basis, job, args, scratch));
  std::optional<ForestPlan> forest;
  // Every rank of a forest serves children somewhere.
  const bool may_be_forest = args.max_trees.has_value() && scratch.request.leaf_ranks.empty();
  if (args.max_trees) RETURN_IF_ERROR(CheckForestRequest(scratch.request, *args.max_trees));
  if (may_be_forest) {
    absl::StatusOr<ForestPlan> planned =
        PlanForest(snapshot, profile, scratch.request, *args.max_trees);
    // Else one tree may do, or says why not.
    if (planned.ok() && planned->shape.trees > 0) forest = *std::move(planned);
  }
  std::optional<absl::StatusOr<TreePlan>> plan;
  const auto plan_one = [&] {
    if (!plan) plan = PlanTree(snapshot, profile, scratch.capacity, scratch.request);
  };
  if (forest.has_value()) {
    if (scratch.request.carried) plan_one();
    const bool is_switches_sooner = plan && plan->ok() &&
                                    (*plan)->tree.serving_switch_count() > 0 &&
                                    (*plan)->predicted.total_us < forest->total_us;
    if (!is_switches_sooner) {
      absl::StatusOr<TreeDraft> draft =
          DraftOfForest(basis, job, args, *std::move(forest), scratch);
      if (!IsOfPartition(draft.status())) return draft;
    }
  }
  plan_one();
  absl::StatusOr<TreeDraft> draft = DraftOfOne(basis, job, args, *std::move(plan), scratch, full);
  if (draft.ok() && args.max_trees && !may_be_forest) {
    absl::StrAppend(&draft->record.reason,
                    "; no forest, as all of its ranks would have to serve children");
  }
  return draft;
}

std::string FullSwitchLine(const SwitchInfo& info, const SwitchCapacity& capacity) {
  return absl::StrCat(ToString(info.guid), " ", capacity.entries_total, " ",
                      capacity.entries_total - capacity.entries_free, " ", info.description, "\n");
}

absl::StatusOr<TreeDraft> DraftOfPlan(const PlanBasis& basis, const JobRecord& job,
                                      const CreateTreeArgs& args, TreePlan plan,
                                      DraftScratch& scratch) {
  const Snapshot& snapshot = basis.snapshot;
  RETURN_IF_ERROR(MeasureLinks(snapshot, *basis.profile, scratch.request, scratch.links, plan));
  RETURN_IF_ERROR(CheckPassage(snapshot, basis.ports->partition, plan.uses));
  absl::StrAppend(&plan.reason, BoundWords(basis, scratch.request, plan.tree.type));
  TreeDraft draft;
  for (uint32_t node = plan.tree.rank_count; node < plan.tree.node_count(); ++node) {
    draft.switches.push_back(snapshot.fabric->AsSwitch(plan.tree.vertices[node]));
  }
  TreeRecord& record = draft.record;
  FillFromRequest(job, args, scratch.request, record);
  const std::vector<ChannelUse> uses = std::move(plan.uses);
  draft.tradeoffs = std::move(plan.tradeoffs);
  FillFromPlan(snapshot, *basis.view->link_ids, uses, std::move(plan), record);
  draft.promise = PromiseOfPlan(snapshot, *basis.profile, basis.promised_duty, record, uses);
  return draft;
}

absl::Status BatchIsCancelled() {
  return absl::CancelledError("batch: whoever asked has gone; nothing is granted");
}

absl::StatusOr<BatchDraft> DraftBatch(const PlanBasis& basis, const JobRecord& job,
                                      const CreateBatchArgs& args,
                                      absl::Span<const SwitchCapacity> capacity,
                                      const BatchRoom& room, const BatchWatch& watch,
                                      std::vector<RefusedSwitch>& full) {
  full.clear();
  return Drafter(basis, job, args, capacity, room, watch, full).Draft();
}

}  // namespace coppice
