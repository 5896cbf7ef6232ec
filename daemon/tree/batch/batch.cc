// The phases of a batch; each starts from a valid plan and leaves a better one.
//
//     shapes --> hardest first, best tree each --> chains of moves for the refused
//     (shapes)   (offers)                          (repair)
//                                                        |
//     result <-- most loaded links <-- fewer entries <---+
//                (balance, unload)     (repair, exact)
//
// O(communicators * (channels of their trees' switches)) for the first round; the later ones build
// at most BatchOptions::most_candidates trees each.
#include "daemon/tree/batch/batch.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/repair.h"
#include "daemon/tree/batch/state.h"
#include "daemon/tree/batch/tree_builder.h"
#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/type2_candidate.h"

namespace coppice {
namespace {

constexpr uint32_t kRootsCompared = 4;

// Those that need most entries and have fewest roots first, then those with most ranks.
std::vector<uint32_t> HardestFirst(const BatchShapes& shapes) {
  std::vector<uint32_t> order(shapes.shape_of.size());
  absl::c_iota(order, 0U);
  const auto key = [&](uint32_t c) {
    if (shapes.shape_of[c] == BatchShapes::kNone) return std::make_tuple(0U, size_t{0}, 0U);
    const BatchShape& shape = shapes.of(c);
    return std::make_tuple(UINT32_MAX - shape.fewest, shape.nearest.size(),
                           UINT32_MAX - shape.ranks);
  };
  absl::c_stable_sort(order, [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  return order;
}

// With any root the first round leaves out whoever would take many times the entries that it could
// do with elsewhere: those behind it in the queue may need these more, and chains of moves try it
// again.
bool IsWorthIt(const BatchOffer& offer, const BatchShape& shape, RootReach reach) {
  constexpr size_t kMaxTimesFewest = 2;
  return reach != RootReach::kAny || offer.tree.serving.size() <= kMaxTimesFewest * shape.fewest;
}

void PlaceAll(const BatchShapes& shapes, RootReach reach, const BatchProgress& progress,
              BatchOffers& offers, BatchState& state) {
  uint32_t done = 0;
  for (const uint32_t c : HardestFirst(shapes)) {
    if (progress) progress(BatchPhase::kPlanning, ++done, static_cast<uint32_t>(state.size()));
    if (!shapes.trouble[c].empty()) continue;
    if (!shapes.IsPlannable(c)) {
      state.Replace(c, BatchTree{});  // one rank
      continue;
    }
    const BatchShape& shape = shapes.of(c);
    std::optional<BatchOffer> offer = reach == RootReach::kAny
                                          ? offers.Any(shape, kRootsCompared)
                                          : offers.Nearest(shape, kRootsCompared);
    if (offer && IsWorthIt(*offer, shape, reach)) state.Replace(c, std::move(offer->tree));
  }
  state.ForgetJournal();
}

// Why the communicator has no tree: which of the switches that could be its root, or had to serve,
// are full.
void Explain(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
             const BatchState& state, const BatchShape& shape, CommunicatorResult& result) {
  for (const SwitchIndex root : shape.nearest) {
    if (state.degrees()[root.value()] > 0) continue;
    const SwitchCapacity& at = capacity[root.value()];
    result.full_switches.push_back({root, at.entries_total, at.is_barred});
  }
  if (result.full_switches.empty()) {
    result.why_not = absl::StrCat("the switches' degree limits are too low for ", shape.ranks,
                                  " ranks with the entries that are left, over ",
                                  shape.nearest.size(), " nearest root(s)");
    return;
  }
  result.why_not = absl::StrCat(result.full_switches.size(), " of ", shape.nearest.size(),
                                " nearest root(s) have no entry left or cannot aggregate: ",
                                NameSwitches(fabric, result.full_switches));
}

BatchPlan MakePlan(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
                   const BatchShapes& shapes, BatchState& state) {
  BatchPlan plan;
  plan.communicators.resize(state.size());
  plan.totals = state.Totals();
  for (uint32_t c = 0; c < state.size(); ++c) {
    if (state.tree(c)) continue;
    CommunicatorResult& result = plan.communicators[c];
    result.why_not = shapes.trouble[c];
    if (!result.why_not.empty()) continue;
    Explain(fabric, capacity, state, shapes.of(c), result);
  }
  std::vector<std::optional<BatchTree>> trees = state.TakeTrees();
  for (size_t c = 0; c < trees.size(); ++c) plan.communicators[c].tree = std::move(trees[c]);
  return plan;
}

// Tells of the work that improves a batch. That comes in stretches, each of at most
// BatchOptions::most_candidates trees: some admit more, some save entries, some unload links.
class ImprovementReport {
 public:
  ImprovementReport(const BatchProgress& progress, const BatchOptions& options,
                    size_t communicators)
      : progress_(progress),
        most_(std::max(options.most_candidates, 1U)),
        stretches_(MostStretches(options)),
        total_(static_cast<uint32_t>(communicators)) {}

  // The next stretch counts its trees with `offers`.
  void Begin(BatchOffers& offers) {
    offers.StartCounting();
    const uint64_t before = uint64_t{begun_++} * most_;
    if (!progress_) return;
    offers.Watch([this, before](uint32_t built) {
      const uint64_t done = total_ * (before + std::min(built, most_));
      progress_(BatchPhase::kImproving, static_cast<uint32_t>(done / stretches_ / most_), total_);
    });
  }
  void Finish() {
    if (progress_) progress_(BatchPhase::kImproving, total_, total_);
  }

 private:
  // As BestAttempt and PutLinksFirst have them; few batches need all.
  static uint32_t MostStretches(const BatchOptions& options) {
    const bool compares_reach = options.reach == RootReach::kToAdmit;
    const uint32_t best = compares_reach ? 4 : 3;
    if (options.goal == BatchGoal::kEntries) return best;
    if (options.goal == BatchGoal::kBoth) return best + 1;
    return best + 2 + (options.reach == RootReach::kAny ? 4 : 0);
  }

  const BatchProgress& progress_;
  const uint32_t most_, stretches_, total_;
  uint32_t begun_ = 0;
};

// The first round and chains of moves for those whom it left out, with roots as `reach` says.
class Attempt {
 public:
  Attempt(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
          const BatchShapes& shapes, const BatchOptions& options)
      : snapshot_(snapshot),
        shapes_(shapes),
        options_(options),
        state_(snapshot, capacity, shapes.shape_of.size(), options.packets_at_full_load),
        offers_(snapshot, state_, options) {}

  void Place(const BatchProgress& progress, ImprovementReport& report) {
    PlaceAll(shapes_, options_.reach, progress, offers_, state_);
    report.Begin(offers_);
    AdmitMore(shapes_, options_.reach, state_, offers_);
  }

  // As if each were the last to come.
  void PlaceOneByOne() {
    coppice::PlaceOneByOne(snapshot_, shapes_, BaselineMethod::kMinimumCost, state_);
    state_.ForgetJournal();
  }

  void Improve(RootReach reach, ImprovementReport& report) {
    report.Begin(offers_);
    SaveEntries(shapes_, reach, state_, offers_);
    SearchSmallBatch(snapshot_, shapes_, reach, state_);
    BalanceLinks(shapes_, reach, state_, offers_);
  }

  // Spends up to a twentieth more entries, too.
  void Unload(RootReach reach, ImprovementReport& report) {
    report.Begin(offers_);
    UnloadLinks(snapshot_, shapes_, reach, state_.entries() + state_.entries() / 20, state_,
                offers_);
  }

  BatchState& state() { return state_; }

 private:
  const Snapshot& snapshot_;
  const BatchShapes& shapes_;
  const BatchOptions options_;
  BatchState state_;
  BatchOffers offers_;
};

// What nobody who is placed can do without.
uint64_t FewestEntries(const BatchShapes& shapes, const BatchState& state) {
  uint64_t entries = 0;
  for (uint32_t c = 0; c < state.size(); ++c) {
    if (state.tree(c) && shapes.shape_of[c] != BatchShapes::kNone) {
      entries += shapes.of(c).fewest;
    }
  }
  return entries;
}

bool IsBetter(const BatchState& a, const BatchState& b, RootReach reach) {
  const auto key = [&](const BatchState& state) {
    return std::make_tuple(-static_cast<int64_t>(state.placed()),
                           reach == RootReach::kAny ? 0 : state.farther(), state.entries());
  };
  return key(a) < key(b);
}

uint32_t PlannableCount(const BatchShapes& shapes) {
  return static_cast<uint32_t>(absl::c_count(shapes.trouble, std::string()));
}

// Nearest roots may take many more entries than farther ones do, so that whoever comes first leaves
// nothing for the others. Where that happens everybody is planned for fewest entries first, and
// comes nearer afterwards as far as entries allow. A plan is never worse than that of one by one:
// both are compared before either spends entries on links.
std::unique_ptr<Attempt> BestAttempt(const Snapshot& snapshot,
                                     absl::Span<const SwitchCapacity> capacity,
                                     const BatchShapes& shapes, const BatchOptions& options,
                                     const BatchProgress& progress, ImprovementReport& report) {
  auto best = std::make_unique<Attempt>(snapshot, capacity, shapes, options);
  best->Place(progress, report);
  if (options.reach == RootReach::kToAdmit && best->state().placed() < PlannableCount(shapes)) {
    BatchOptions any_root = options;
    any_root.reach = RootReach::kAny;
    auto other = std::make_unique<Attempt>(snapshot, capacity, shapes, any_root);
    other->Place(nullptr, report);
    if (other->state().placed() > best->state().placed()) best = std::move(other);
  }
  best->Improve(options.reach, report);
  if (best->state().entries() > FewestEntries(shapes, best->state())) {
    auto one_by_one = std::make_unique<Attempt>(snapshot, capacity, shapes, options);
    one_by_one->PlaceOneByOne();
    if (IsBetter(one_by_one->state(), best->state(), options.reach)) {
      best = std::move(one_by_one);
      best->Improve(options.reach, report);
    }
  }
  return best;
}

bool UnloadsMore(const BatchState& a, const BatchState& b, RootReach reach) {
  const auto key = [&](const BatchState& state) {
    return std::make_tuple(-static_cast<int64_t>(state.placed()),
                           reach == RootReach::kAny ? 0 : state.farther(), state.loads().most(),
                           state.entries());
  };
  return key(a) < key(b);
}

// Few entries are no measure of what can be spent on links later: packets that come together at a
// neighbour of a farther root cross a link before. So nearest roots and the plan of one by one are
// tried beside that of kBoth, and what is best is known when each has spent.
void PutLinksFirst(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
                   const BatchShapes& shapes, const BatchOptions& options,
                   ImprovementReport& report, std::unique_ptr<Attempt>& best) {
  best->Unload(options.reach, report);
  SpendEntriesOnLinks(options.most_candidates, best->state());
  const auto consider = [&](std::unique_ptr<Attempt> other) {
    SpendEntriesOnLinks(options.most_candidates, other->state());
    if (UnloadsMore(other->state(), best->state(), options.reach)) best = std::move(other);
  };
  auto one_by_one = std::make_unique<Attempt>(snapshot, capacity, shapes, options);
  one_by_one->PlaceOneByOne();
  one_by_one->Improve(options.reach, report);
  consider(std::move(one_by_one));
  if (options.reach != RootReach::kAny) return;
  BatchOptions near_roots = options;
  near_roots.reach = RootReach::kToAdmit;
  consider(BestAttempt(snapshot, capacity, shapes, near_roots, nullptr, report));
}

}  // namespace

absl::StatusOr<BatchPlan> PlanBatch(const Snapshot& snapshot,
                                    absl::Span<const SwitchCapacity> capacity,
                                    absl::Span<const BatchCommunicator> communicators,
                                    const BatchOptions& options, const BatchProgress& progress) {
  ASSIGN_OR_RETURN(const BatchShapes shapes, FindBatchShapes(snapshot, capacity, communicators));
  ImprovementReport report(progress, options, communicators.size());
  auto best = BestAttempt(snapshot, capacity, shapes, options, progress, report);
  if (options.goal == BatchGoal::kBoth) {
    best->Unload(options.reach, report);
  } else if (options.goal == BatchGoal::kLinks) {
    PutLinksFirst(snapshot, capacity, shapes, options, report, best);
  }
  report.Finish();
  return MakePlan(*snapshot.fabric, capacity, shapes, best->state());
}

namespace {

// One rank: it is its own root, and nobody serves.
RankTree Alone(const Fabric& fabric, Members members) {
  RankTree result = {RanksOnly(fabric, members), {}};
  result.tree.parents = {AggregationTree::kNoParent};
  const VertexIndex root = result.tree.vertices[0];
  result.physical = {root, {root}, {-1}, {kNoChannel}};
  return result;
}

// The switches of `batch`, then the endpoints below their leaf switches.
PhysicalTree WithEndpoints(const Fabric& fabric, const MemberPlaces& places,
                           const SwitchTree& switches) {
  PhysicalTree physical;
  const size_t size = switches.switches.size() + places.endpoints.size();
  physical.vertices.reserve(size);
  physical.root = fabric.Vertex(switches.root());
  std::vector<int32_t> position(places.leaf_switches.size(), -1);
  for (size_t v = 0; v < switches.switches.size(); ++v) {
    physical.vertices.push_back(fabric.Vertex(switches.switches[v]));
    if (switches.ranks_on[v] == 0) continue;
    const auto leaf = absl::c_lower_bound(places.leaf_switches, switches.switches[v]);
    position[static_cast<size_t>(leaf - places.leaf_switches.begin())] = static_cast<int32_t>(v);
  }
  physical.parents = switches.parents;
  physical.up = switches.up;
  physical.parents.reserve(size);
  physical.up.reserve(size);
  for (size_t e = 0; e < places.endpoints.size(); ++e) {
    physical.vertices.push_back(fabric.Vertex(places.endpoints[e]));
    physical.parents.push_back(position[places.leaf_of_endpoint[e]]);
    physical.up.push_back(fabric.uplink(places.endpoints[e]));
  }
  return physical;
}

}  // namespace

absl::StatusOr<RankTree> HangBatchTree(const Snapshot& snapshot,
                                       absl::Span<const SwitchCapacity> capacity, Members members,
                                       const BatchTree& batch) {
  const Fabric& fabric = *snapshot.fabric;
  ASSIGN_OR_RETURN(const MemberPlaces places, FindMemberPlaces(snapshot, members));
  if (batch.physical.switches.empty()) return Alone(fabric, members);
  RankTree result;
  result.physical = WithEndpoints(fabric, places, batch.physical);
  const size_t switches = batch.physical.switches.size();
  std::vector<uint32_t> ranks(switches, 0), degrees(result.physical.vertices.size(), 0);
  ranks.insert(ranks.end(), places.ranks_at.begin(), places.ranks_at.end());
  for (const uint32_t v : batch.serving) {
    degrees[v] = capacity[batch.physical.switches[v].value()].degree_limit;
  }
  result.tree = HangRanks(fabric, members, places, result.physical, ranks, degrees, batch.serving);
  return result;
}

absl::StatusOr<TreePlan> PlanOfBatchTree(const Snapshot& snapshot, const CostProfile& profile,
                                         absl::Span<const SwitchCapacity> capacity,
                                         const TreeRequest& request, const BatchTree& batch) {
  ASSIGN_OR_RETURN(RankTree ranks, HangBatchTree(snapshot, capacity, request.members, batch));
  TreePlan plan;
  plan.tree = std::move(ranks.tree);
  plan.physical = std::make_shared<const PhysicalTree>(std::move(ranks.physical));
  const Snapshot predicting = ForPrediction(snapshot, profile);
  ASSIGN_OR_RETURN(plan.edges, EdgeCosts(predicting, profile, plan.tree));
  plan.predicted = EvaluateMix(profile, plan.tree, plan.edges, request);
  RETURN_IF_ERROR(
      AddContention(predicting, profile, plan.tree, plan.edges, request, plan.predicted));
  plan.height = Height(plan.tree);
  plan.radius = Radius(plan.tree, plan.edges);
  plan.reason = absl::StrCat(
      Figure(plan.tree, plan.predicted), "; planned in one batch",
      batch.extra_hops > 0 ? absl::StrCat(", its root ", batch.extra_hops,
                                          " hop(s) farther than the nearest, which were full or "
                                          "could not serve so many")
                           : "");
  return plan;
}

}  // namespace coppice
