#include "daemon/tree/batch/baseline.h"

#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/batch/state.h"
#include "daemon/tree/batch/tree_builder.h"

namespace coppice {
namespace {

// Every switch takes its children's packets and sends one.
void ServeEverywhere(BatchTree& tree) {
  tree.serving.resize(tree.physical.switches.size());
  absl::c_iota(tree.serving, 0U);
  tree.packets.assign(tree.physical.switches.size(), 1);
  tree.packets[0] = 0;
}

std::vector<SwitchIndex> InOrder(const BatchState& state, std::vector<SwitchIndex> roots) {
  const auto key = [&](SwitchIndex s) {
    return std::make_tuple(state.loads().through(s), -state.free_entries()[s.value()], s);
  };
  absl::c_sort(roots, [&](SwitchIndex a, SwitchIndex b) { return key(a) < key(b); });
  return roots;
}

bool HasFullSwitch(const BatchState& state, const SwitchTree& physical) {
  return absl::c_any_of(physical.switches,
                        [&](SwitchIndex s) { return state.free_entries()[s.value()] <= 0; });
}

std::optional<BatchTree> FirstThatWorks(const BatchShape& shape, const BatchState& state,
                                        BaselineMethod method, BatchTreeBuilder& builder) {
  for (const SwitchIndex root : InOrder(state, shape.nearest)) {
    BatchTree tree;
    if (state.free_entries()[root.value()] <= 0) continue;
    if (!builder.BuildPhysical(shape, root, Steering::kSpread, state.degrees(), tree)) continue;
    if (HasFullSwitch(state, tree.physical)) continue;
    if (method == BaselineMethod::kUnreduced) {
      ServeEverywhere(tree);
      return tree;
    }
    if (builder.ChooseServers(state.degrees(), tree)) return tree;
  }
  return std::nullopt;
}

}  // namespace

void PlaceOneByOne(const Snapshot& snapshot, const BatchShapes& shapes, BaselineMethod method,
                   BatchState& state) {
  BatchTreeBuilder builder(snapshot, state.free_entries(), state.loads());
  for (uint32_t c = 0; c < state.size(); ++c) {
    if (!shapes.trouble[c].empty()) continue;
    auto tree = shapes.IsPlannable(c) ? FirstThatWorks(shapes.of(c), state, method, builder)
                                      : BatchTree{};  // one rank
    if (tree) state.Replace(c, std::move(tree));
  }
}

absl::StatusOr<BatchTotals> PlanOneByOne(const Snapshot& snapshot,
                                         absl::Span<const SwitchCapacity> capacity,
                                         absl::Span<const BatchCommunicator> communicators,
                                         BaselineMethod method, const BatchOptions& options) {
  ASSIGN_OR_RETURN(const BatchShapes shapes, FindBatchShapes(snapshot, capacity, communicators));
  BatchState state(snapshot, capacity, communicators.size(), options.packets_at_full_load);
  PlaceOneByOne(snapshot, shapes, method, state);
  return state.Totals();
}

absl::StatusOr<BatchBounds> BoundBatch(const Snapshot& snapshot,
                                       absl::Span<const SwitchCapacity> capacity,
                                       absl::Span<const BatchCommunicator> communicators) {
  ASSIGN_OR_RETURN(const BatchShapes shapes, FindBatchShapes(snapshot, capacity, communicators));
  const BatchState state(snapshot, capacity, 0, 0);
  BatchOffers offers(snapshot, state, {});
  std::vector<std::optional<uint32_t>> alone;
  alone.reserve(shapes.shapes.size());
  for (const BatchShape& shape : shapes.shapes) {
    alone.push_back(offers.LeastAlone(shape, UINT32_MAX));
  }
  BatchBounds bounds;
  std::vector<uint64_t> counts;
  std::vector<uint32_t> planned;
  for (uint32_t c = 0; c < communicators.size(); ++c) {
    if (!shapes.trouble[c].empty()) ++bounds.failures;
    if (!shapes.IsPlannable(c)) continue;
    const std::optional<uint32_t>& least = alone[shapes.shape_of[c]];
    counts.push_back(shapes.of(c).fewest);
    planned.push_back(c);
    bounds.counting += counts.back();
    bounds.alone += least.value_or(shapes.of(c).fewest);
    bounds.no_nearest_root += least ? 0 : 1;
  }
  bounds.most_packets = LeastMostPackets(shapes, planned, bounds.counting + bounds.counting / 20);
  uint64_t entries = 0;
  for (const int32_t free : state.free_entries()) entries += static_cast<uint64_t>(free);
  absl::c_sort(counts);
  uint64_t needed = 0;
  for (const uint64_t count : counts) {
    needed += count;
    if (needed > entries) ++bounds.failures;
  }
  return bounds;
}

}  // namespace coppice
