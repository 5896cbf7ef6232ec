// What a forest takes beside the ways that it is to beat, in the simulator: a small version of
// tests/benchmark/forest_benchmark.cc. Simulated times are the same on every machine.
#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "daemon/tree/forest/bound.h"
#include "daemon/tree/forest/forest.h"
#include "daemon/tree/planner.h"
#include "gtest/gtest.h"
#include "tests/support/forests.h"
#include "tests/support/schedules.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::forest_comparison_test {
namespace {

constexpr uint64_t kBytes = 1 << 20;

struct Compared {
  double forest_us = 0, predicted_us = 0, best_other_us = 0, bound_us = 0;
};

double ScheduleUs(const Snapshot& snapshot, const CostProfile& profile,
                  const BlockSchedule& schedule, const std::vector<EndpointIndex>& members) {
  const auto result =
      SimulateSchedule(snapshot, profile, ForBytes(schedule, members, kBytes), {}, 1);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->total_us : 0;
}

Compared Compare(const Snapshot& snapshot, const std::vector<EndpointIndex>& members) {
  const CostProfile profile = *BuiltInProfile("hdr");
  TreeRequest request;
  request.members = members;
  request.operation = Operation::kAllreduce;
  request.sizes = {{kBytes, 1}};
  Compared result;
  const auto plan = PlanForest(snapshot, profile, request, kMaxTrees);
  const auto bound = FindForestBound(snapshot, profile, members, kBytes);
  EXPECT_TRUE(plan.ok() && bound.ok());
  if (!plan.ok() || !bound.ok()) return result;
  result.bound_us = bound->allreduce_us;
  result.predicted_us = plan->total_us;
  std::vector<ShapedTree> trees;
  for (const ForestTree& one : plan->trees) trees.push_back({one.tree.parents, one.share});
  const auto us = [&](const std::vector<ShapedTree>& forest) {
    return *SimulatedForestUs(snapshot, profile, members, forest, kBytes);
  };
  result.forest_us = us(trees);
  const auto ranks = static_cast<uint32_t>(members.size());
  const std::array<std::vector<int32_t>, 2> both = DoubleBinaryTree(ranks);
  const std::vector<SwitchCapacity> none(snapshot.fabric->switch_count());
  const auto single = PlanTree(snapshot, profile, none, request);
  EXPECT_TRUE(single.ok());
  result.best_other_us =
      std::min({us({{both[0], 0.5}, {both[1], 0.5}}), us({{single->tree.parents, 1}}),
                ScheduleUs(snapshot, profile, RingAllreduce(ranks), members),
                ScheduleUs(snapshot, profile, HalvingDoubling(ranks, true), members),
                ScheduleUs(snapshot, profile, HalvingDoubling(ranks, false), members),
                ScheduleUs(snapshot, profile, BineAllreduce(ranks, false), members)});
  return result;
}

TEST(ForestComparison, NearTheBoundAndNotBehindTheOthers) {
  std::vector<double> ratios;
  for (const char* spec :
       {"model:fat-tree(leaves=4,spines=4,hosts-per-leaf=8)",
        "model:fat-tree(leaves=4,spines=1,hosts-per-leaf=8)", "model:torus(dims=4x4,hosts=2)",
        "model:dragonfly-plus(p=2,leaves=2,spines=2,h=2)"}) {
    const Snapshot snapshot = SnapshotOfModel(spec);
    for (const uint32_t ranks : {8U, 20U}) {
      for (const bool shuffled : {false, true}) {
        std::vector<EndpointIndex> members = AllEndpoints(*snapshot.fabric);
        std::mt19937_64 generator(1);
        if (shuffled) std::shuffle(members.begin(), members.end(), generator);
        members.resize(std::min<size_t>(members.size(), ranks));
        const Compared one = Compare(snapshot, members);
        EXPECT_LE(one.forest_us, one.best_other_us * 1.02) << spec << ", " << ranks;
        EXPECT_GE(one.forest_us, one.bound_us) << spec << ", " << ranks;
        EXPECT_NEAR(one.predicted_us / one.forest_us, 1, 0.02) << spec << ", " << ranks;
        ratios.push_back(one.forest_us / one.bound_us);
      }
    }
  }
  std::sort(ratios.begin(), ratios.end());
  EXPECT_LE(ratios[ratios.size() / 2], 1.1);
}

}  // namespace
}  // namespace coppice::forest_comparison_test
