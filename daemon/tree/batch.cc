// The phases of a batch; each starts from a valid plan and leaves a better one.
//
//     shapes --> hardest first, best tree each --> chains of moves for the refused    batch_shapes
//                batch_offers                      batch_repair                          |
//                                                        |                               v
//     result <-- most loaded links <-- fewer entries <---+                            distances
//                batch_balance         batch_repair
//
// O(communicators * (channels of their trees' switches)) for the first round; the later ones build
// at most BatchOptions::most_candidates trees.
#include "daemon/tree/batch.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/batch_balance.h"
#include "daemon/tree/batch_offers.h"
#include "daemon/tree/batch_repair.h"
#include "daemon/tree/batch_shapes.h"
#include "daemon/tree/batch_state.h"
#include "daemon/tree/plan_reason.h"

namespace coppice {
namespace {

constexpr uint32_t kRootsCompared = 4;

// Those that need most entries and have fewest roots first, then those with most ranks.
std::vector<uint32_t> HardestFirst(const BatchShapes& shapes) {
  std::vector<uint32_t> order(shapes.shape_of.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](uint32_t c) {
    if (shapes.shape_of[c] == BatchShapes::kNone) return std::make_tuple(0U, size_t{0}, 0U);
    const BatchShape& shape = shapes.shapes[shapes.shape_of[c]];
    return std::make_tuple(UINT32_MAX - shape.fewest, shape.nearest.size(),
                           UINT32_MAX - shape.ranks);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  return order;
}

void PlaceAll(const BatchShapes& shapes, RootReach reach, const BatchProgress& progress,
              BatchOffers& offers, BatchState& state) {
  const auto offer_to = [&](const BatchShape& shape) {
    return reach == RootReach::kAny ? offers.Any(shape, kRootsCompared)
                                    : offers.Nearest(shape, kRootsCompared);
  };
  uint32_t done = 0;
  for (const uint32_t c : HardestFirst(shapes)) {
    if (shapes.trouble[c].empty()) {
      if (shapes.shape_of[c] == BatchShapes::kNone) {
        state.Replace(c, BatchTree{});  // one rank
      } else if (auto offer = offer_to(shapes.shapes[shapes.shape_of[c]])) {
        state.Replace(c, std::move(offer->tree));
      }
    }
    if (progress) progress(++done, static_cast<uint32_t>(state.size()));
  }
  state.ForgetJournal();
}

// Why the communicator has no tree: which of the switches that could be its root, or had to serve,
// are full.
void Explain(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
             const BatchState& state, const BatchShape& shape, CommunicatorResult& result) {
  for (const SwitchIndex root : shape.nearest) {
    if (state.degrees()[root.value()] > 0) continue;
    result.full_switches.push_back({root, capacity[root.value()].entries_total});
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
  BatchTotals& totals = plan.totals;
  totals.admitted = state.placed();
  totals.failures = static_cast<uint32_t>(state.size()) - state.placed();
  totals.entries = state.entries();
  totals.farther_roots = state.farther();
  totals.most_packets = state.loads().most();
  totals.most_loaded = state.loads().MostLoaded();
  for (uint32_t c = 0; c < state.size(); ++c) {
    if (state.tree(c)) continue;
    CommunicatorResult& result = plan.communicators[c];
    result.why_not = shapes.trouble[c];
    if (!result.why_not.empty()) continue;
    Explain(fabric, capacity, state, shapes.shapes[shapes.shape_of[c]], result);
  }
  std::vector<std::optional<BatchTree>> trees = state.TakeTrees();
  for (size_t c = 0; c < trees.size(); ++c) plan.communicators[c].tree = std::move(trees[c]);
  return plan;
}

}  // namespace

absl::StatusOr<BatchPlan> PlanBatch(const Snapshot& snapshot,
                                    absl::Span<const SwitchCapacity> capacity,
                                    absl::Span<const BatchCommunicator> communicators,
                                    const BatchOptions& options, const BatchProgress& progress) {
  ASSIGN_OR_RETURN(const BatchShapes shapes, FindBatchShapes(snapshot, capacity, communicators));
  BatchState state(snapshot, capacity, communicators.size(), options.packets_at_full_load);
  BatchOffers offers(snapshot, state, options);
  PlaceAll(shapes, options.reach, progress, offers, state);
  const bool may_go_farther = options.reach != RootReach::kNearest;
  offers.StartCounting();
  BatchRepair repair(shapes, state, offers);
  repair.AdmitMore(may_go_farther);
  repair.Trade();
  repair.SaveEntries(may_go_farther);
  BalanceLinks(shapes, state, offers);
  return MakePlan(*snapshot.fabric, capacity, shapes, state);
}

}  // namespace coppice
