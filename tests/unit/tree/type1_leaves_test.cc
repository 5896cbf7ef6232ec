// Trees around ranks that serve no children, against every tree of a few ranks, and by the
// verifier on larger ones.
#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/type1.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/support/tree_check.h"
#include "tests/unit/tree/plan_check.h"

namespace coppice::type1_leaves_test {
namespace {

using ::testing::HasSubstr;

struct Case {
  Snapshot snapshot;
  CostProfile profile = *BuiltInProfile("hdr");
  TreeRequest request;

  std::vector<SwitchCapacity> Capacity() const {
    return std::vector<SwitchCapacity>(snapshot.fabric->switch_count(), {4, 4, 16});
  }
};

Case RandomCase(std::mt19937_64& random, size_t most_ranks) {
  Case c;
  FabricPtr fabric;
  switch (random() % 3) {
    case 0:
      fabric = TwoLevelFatTree(2 + random() % 4, 1 + random() % 3, 1 + random() % 6);
      break;
    case 1:
      fabric = ThreeLevelFatTree(2, 2, 2, 2, 1 + random() % 4);
      break;
    default:
      fabric = Ring(3 + random() % 4, 1 + random() % 4);
  }
  c.snapshot = **MakeSnapshot(fabric, nullptr);
  const std::vector<EndpointIndex> all = AllEndpoints(*fabric);
  const size_t ranks = 2 + random() % (most_ranks - 1);
  for (size_t i = 0; i < ranks; ++i) c.request.members.push_back(all[random() % all.size()]);
  const uint32_t server = static_cast<uint32_t>(random() % ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank != server && random() % 2 == 0) c.request.leaf_ranks.push_back(rank);
  }
  c.request.type = TreeType::kTypeI;
  c.request.operation = static_cast<Operation>(random() % 4);
  c.request.sizes = {{random() % 3 == 0 ? 20'000U : 8U, 1}};
  return c;
}

bool IsLeaf(const TreeRequest& request, uint32_t rank) {
  return std::binary_search(request.leaf_ranks.begin(), request.leaf_ranks.end(), rank);
}

void ExpectLeavesServeNone(const TreeRequest& request, const AggregationTree& tree) {
  for (const int32_t parent : tree.parents) {
    if (parent < 0) continue;
    EXPECT_FALSE(IsLeaf(request, static_cast<uint32_t>(parent))) << parent;
  }
  EXPECT_FALSE(IsLeaf(request, tree.root()));
}

// Of every tree in which leaf ranks serve none.
class EveryTree {
 public:
  explicit EveryTree(const Case& c) : c_(c), predicting_(ForPrediction(c.snapshot, c.profile)) {
    tree_ = *BareTypeITree(*c.snapshot.fabric, c.request.members, TreeBuilder::kKary, 2);
    for (uint32_t root = 0; root < tree_.rank_count; ++root) {
      if (IsLeaf(c.request, root)) continue;
      root_ = root;
      Try(0);
    }
  }
  double least_us() const { return least_us_; }

 private:
  void Try(uint32_t rank) {
    if (rank == tree_.rank_count) return Judge();
    if (rank == root_) {
      tree_.parents[rank] = AggregationTree::kNoParent;
      return Try(rank + 1);
    }
    for (uint32_t parent = 0; parent < tree_.rank_count; ++parent) {
      if (parent == rank || IsLeaf(c_.request, parent)) continue;
      tree_.parents[rank] = static_cast<int32_t>(parent);
      Try(rank + 1);
    }
  }

  void Judge() {
    if (!CheckTree(*c_.snapshot.fabric, tree_, c_.request.members).ok()) return;  // a circle
    const auto edges = EdgeCosts(predicting_, c_.profile, tree_);
    ASSERT_TRUE(edges.ok());
    Prediction predicted = EvaluateMix(c_.profile, tree_, *edges, c_.request);
    ASSERT_TRUE(AddContention(predicting_, c_.profile, tree_, *edges, c_.request, predicted).ok());
    least_us_ = std::min(least_us_, predicted.total_us);
  }

  const Case& c_;
  const Snapshot predicting_;
  AggregationTree tree_;
  uint32_t root_ = 0;
  double least_us_ = kNoCutoff;
};

TEST(TypeOneLeaves, NearEveryTreeOfFewRanks) {
  std::mt19937_64 random(TestSeed());
  std::vector<double> ratios;
  const int rounds = FullTier() ? 400 : 60;
  for (int round = 0; round < rounds; ++round) {
    const Case c = RandomCase(random, 5);
    if (c.request.leaf_ranks.empty()) continue;
    const auto plan = PlanTree(c.snapshot, c.profile, c.Capacity(), c.request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectLeavesServeNone(c.request, plan->tree);
    const double least = EveryTree(c).least_us();
    EXPECT_GE(plan->predicted.total_us, least - 1e-6);
    ratios.push_back(plan->predicted.total_us / least);
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("of the least time: median %.3f, worst %.3f\n", ratios[ratios.size() / 2],
              ratios.back());
  EXPECT_LT(ratios[ratios.size() / 2], 1.02);
  EXPECT_LT(ratios.back(), 1.5);
}

TEST(TypeOneLeaves, ArePlansAsOthers) {
  std::mt19937_64 random(TestSeed());
  const int rounds = FullTier() ? 1000 : 150;
  int of_type2 = 0;
  for (int round = 0; round < rounds; ++round) {
    Case c = RandomCase(random, 60);
    if (random() % 2 == 0) c.request.type.reset();
    if (random() % 4 == 0) c.request.policy = TradePolicy{.latency = 1};
    if (random() % 4 == 0) c.request.nic_degree = 16;
    const auto plan = PlanTree(c.snapshot, c.profile, c.Capacity(), c.request);
    if (absl::IsResourceExhausted(plan.status())) {
      EXPECT_TRUE(c.request.nic_degree.has_value());
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(CheckPlan(c.snapshot, c.profile, *plan, c.request, c.Capacity()), absl::OkStatus());
    ExpectLeavesServeNone(c.request, plan->tree);
    if (plan->tree.type == TreeType::kTypeII) ++of_type2;
  }
  EXPECT_GT(of_type2, 0);
}

// One server: a star, as far as its NIC goes.
TEST(TypeOneLeaves, OneServerIsTheHubOfAStar) {
  Case c;
  c.snapshot = **MakeSnapshot(TwoLevelFatTree(3, 2, 4), nullptr);
  c.request.members = AllEndpoints(*c.snapshot.fabric);
  c.request.type = TreeType::kTypeI;
  for (uint32_t rank = 0; rank < 12; ++rank) {
    if (rank != 7) c.request.leaf_ranks.push_back(rank);
  }
  auto plan = PlanTree(c.snapshot, c.profile, c.Capacity(), c.request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->tree.root(), 7u);
  EXPECT_EQ(plan->height, 1u);
  c.request.nic_degree = 10;
  plan = PlanTree(c.snapshot, c.profile, c.Capacity(), c.request);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("1 of 12 ranks may serve children, at most 10 each"));
  c.request.leaf_ranks.insert(c.request.leaf_ranks.begin() + 7, 7);
  plan = PlanTree(c.snapshot, c.profile, c.Capacity(), c.request);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace coppice::type1_leaves_test
