// Long messages followed packet by packet against the simulator, the bound below them, and what the
// planner makes of both: no builder at any width that it tries is faster in the simulator.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/type1.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"
#include "tests/support/trees.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::long_messages_test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double Draw(std::mt19937_64& random, double least, double most) {
  return std::uniform_real_distribution<double>(least, most)(random);
}
uint32_t Below(std::mt19937_64& random, size_t bound) {
  return static_cast<uint32_t>(random() % bound);
}

NodeCost AnyNode(std::mt19937_64& random) {
  return {.forward_us = Draw(random, 0, 1),
          .forward_us_per_byte = Below(random, 2) == 0 ? 0 : Draw(random, 0, 1e-4),
          .match_us = Draw(random, 0, 0.1),
          .reduce_us_per_byte = Draw(random, 0, 2e-4),
          .send_us = Draw(random, 0, 0.1)};
}

CostProfile AnyProfile(std::mt19937_64& random) {
  CostProfile profile = *BuiltInProfile(Below(random, 2) == 0 ? "paper" : "hdr");
  if (Below(random, 3) > 0) return profile;
  profile.nic = AnyNode(random);
  profile.switch_ = AnyNode(random);
  profile.link_us = Draw(random, 0.01, 0.3);
  profile.same_host_us = Draw(random, 0, 0.2);
  profile.header_bytes = Below(random, 2) == 0 ? 0 : 100;
  profile.mtu_bytes = 512U << Below(random, 4);
  profile.forward_includes_serialisation = Below(random, 4) == 0;
  return profile;
}

// Few cables between many ports, so that packets meet; links of one speed or of several.
Snapshot AnyFabric(std::mt19937_64& random) {
  static const char* const kSpeeds[] = {"hdr", "edr/hdr", "hdr/edr", "qdr/hdr/edr"};
  const char* const speeds = kSpeeds[Below(random, 4)];
  switch (Below(random, 4)) {
    case 0:
      return SnapshotOf(RandomFabric(random, 5, 8, 30));
    case 1:
      return SnapshotOfModel(absl::StrCat("model:torus(dims=3x3,hosts=3,speeds=", speeds, ")"));
    case 2:
      return SnapshotOfModel(
          "model:fat-tree(supernodes=3,leaves=3,spines=2,hosts-per-leaf=4,tops=2)");
    default:
      return SnapshotOfModel(
          absl::StrCat("model:fat-tree(leaves=", 2 + Below(random, 5),
                       ",spines=", 1 + Below(random, 4), ",hosts-per-leaf=", 1 + Below(random, 8),
                       ",ports-per-host=", 1 + Below(random, 2), ",speeds=", speeds, ")"));
  }
}

std::vector<EndpointIndex> AnyMembers(std::mt19937_64& random, const Fabric& fabric,
                                      uint32_t most) {
  std::vector<EndpointIndex> members;
  const uint32_t ranks = 2 + Below(random, most - 1);
  const bool in_order = Below(random, 2) == 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    members.emplace_back(in_order ? rank % fabric.endpoint_count()
                                  : Below(random, fabric.endpoint_count()));
  }
  return members;
}

AggregationTree AnyTree(std::mt19937_64& random, const Snapshot& snapshot) {
  const Fabric& fabric = *snapshot.fabric;
  const std::vector<EndpointIndex> members = AnyMembers(random, fabric, 40);
  const uint32_t width = 2 + Below(random, 12);
  switch (Below(random, 4)) {
    case 0:
      return *BuildKary(fabric, members, width, UINT32_MAX);
    case 1:
      return *BuildKnomial(fabric, members, width, UINT32_MAX);
    case 2:
      return *BuildHierarchical(fabric, *snapshot.hierarchy, members, width, UINT32_MAX);
    default: {  // all below one switch, and half of them below another
      AggregationTree tree = *BuildKary(fabric, members, 2, UINT32_MAX);
      tree.type = TreeType::kTypeII;
      for (int serving = 0; serving < 2; ++serving) {
        const auto at = SwitchIndex(Below(random, fabric.switch_count()));
        tree.vertices.push_back(fabric.Vertex(at));
      }
      tree.parents.assign(members.size(), static_cast<int32_t>(members.size()));
      for (size_t rank = 0; rank < members.size(); rank += 2) ++tree.parents[rank];
      tree.parents.push_back(AggregationTree::kNoParent);
      tree.parents.push_back(static_cast<int32_t>(members.size()));
      return tree;
    }
  }
}

double SimulatedUs(const Snapshot& snapshot, const CostProfile& profile,
                   const AggregationTree& tree, const Payload& payload) {
  return Simulated(snapshot, profile, {{.tree = tree, .payload = payload, .skew_us = {}}})
      .collectives[0]
      .total_us;
}

// Packets that come together may be taken in another order: that is what is allowed.
TEST(LongMessages, AreFollowedAsTheSimulatorDoes) {
  std::mt19937_64 random(TestSeed());
  const int wanted = FullTier() ? 5000 : 400;
  double sum = 0, largest = 0, below = 0, formula = 0;
  for (int cases = 0; cases < wanted;) {
    const Snapshot snapshot = AnyFabric(random);
    const CostProfile profile = AnyProfile(random);
    const AggregationTree tree = AnyTree(random, snapshot);
    const auto edges = EdgeCosts(snapshot, profile, tree);
    const auto routes = FindRoutes(snapshot, profile, tree);
    if (!edges.ok() || !routes.ok()) continue;
    const Payload payload = PayloadOf(static_cast<Operation>(1 + Below(random, 3)),
                                      profile.mtu_bytes + 1 + random() % (20 * profile.mtu_bytes),
                                      Below(random, 4) != 0);
    const double us = EvaluatePackets(profile, tree, *edges, *routes, payload, kNever).total_us;
    const double simulated = SimulatedUs(snapshot, profile, tree, payload);
    const double difference = std::abs(us / simulated - 1);
    EXPECT_LE(difference, 0.04) << "case " << cases << ": evaluated " << us << ", simulated "
                                << simulated;
    const double least = BoundPackets(profile, tree, *routes, payload).least_us;
    EXPECT_LE(least, us * (1 + 1e-9)) << "case " << cases;
    EXPECT_LE(least, simulated * (1 + 1e-9)) << "case " << cases;
    sum += difference;
    largest = std::max(largest, difference);
    below += 1 - least / simulated;
    formula += std::abs(Evaluate(profile, tree, *edges, payload).total_us / simulated - 1);
    ++cases;
  }
  std::printf(
      "%d cases: evaluation off by %.4f %% in the mean, %.3f %% at most; bound below by "
      "%.1f %%; first packet and slowest stage off by %.1f %%\n",
      wanted, 100 * sum / wanted, 100 * largest, 100 * below / wanted, 100 * formula / wanted);
  EXPECT_LE(sum / wanted, 0.0005);
}

// Beyond what is followed, packets take a slowest stage each.
TEST(LongMessages, GrowBySlowestStagesBeyondWhatIsFollowed) {
  const Snapshot snapshot = SnapshotOf(Chain(2, 3));
  const CostProfile profile = RoundProfile();
  const AggregationTree tree = TreeOf(*snapshot.fabric, {0, 1, 3, 4}, {-1, 0, 0, 2});
  const auto edges = EdgeCosts(snapshot, profile, tree);
  const auto routes = FindRoutes(snapshot, profile, tree);
  ASSERT_TRUE(edges.ok() && routes.ok());
  const auto us = [&](uint64_t packets) {
    return EvaluatePackets(profile, tree, *edges, *routes,
                           PayloadOf(Operation::kReduce, packets * profile.mtu_bytes), kNever)
        .total_us;
  };
  const uint64_t followed = kMaxPacketsFollowedOfOne;
  // The root takes two packets of 0.1 + 0.001 * 1000 us each.
  EXPECT_NEAR(us(followed + 100) - us(followed), 100 * 2 * 1.1, 1e-6);
  EXPECT_NEAR(us(followed) - us(followed - 1), 2 * 1.1, 1e-6);
}

// Packets that overtake and results that come down meanwhile leave stages idle, so that the slowest
// stage is not what every packet takes.
TEST(LongMessages, OfHundredsOfPacketsAreNearTheSimulator) {
  std::mt19937_64 random(TestSeed() + 3);
  const int wanted = FullTier() ? 500 : 40;
  double sum = 0, largest = 0, formula = 0;
  for (int cases = 0; cases < wanted;) {
    const Snapshot snapshot = AnyFabric(random);
    const CostProfile profile = *BuiltInProfile(Below(random, 2) == 0 ? "paper" : "hdr");
    const AggregationTree tree = AnyTree(random, snapshot);
    const auto edges = EdgeCosts(snapshot, profile, tree);
    const auto routes = FindRoutes(snapshot, profile, tree);
    if (!edges.ok() || !routes.ok()) continue;
    const Payload payload = PayloadOf(static_cast<Operation>(1 + Below(random, 3)),
                                      (70 + random() % 400) * profile.mtu_bytes);
    const double simulated = SimulatedUs(snapshot, profile, tree, payload);
    const double us = EvaluatePackets(profile, tree, *edges, *routes, payload, kNever).total_us;
    const double difference = std::abs(us / simulated - 1);
    EXPECT_LE(difference, 0.3) << "case " << cases << ": evaluated " << us << ", simulated "
                               << simulated;
    sum += difference;
    largest = std::max(largest, difference);
    formula += std::abs(Evaluate(profile, tree, *edges, payload).total_us / simulated - 1);
    ++cases;
  }
  std::printf(
      "%d cases: evaluation off by %.3f %% in the mean, %.2f %% at most; first packet and "
      "slowest stage off by %.1f %%\n",
      wanted, 100 * sum / wanted, 100 * largest, 100 * formula / wanted);
  EXPECT_LE(sum / wanted, 0.02);
}

TEST(LongMessages, ACutoffEndsTheWalkAboveIt) {
  std::mt19937_64 random(TestSeed() + 1);
  for (int cases = 0; cases < 100; ++cases) {
    const Snapshot snapshot = AnyFabric(random);
    const CostProfile profile = *BuiltInProfile("hdr");
    const AggregationTree tree = AnyTree(random, snapshot);
    const auto edges = EdgeCosts(snapshot, profile, tree);
    const auto routes = FindRoutes(snapshot, profile, tree);
    if (!edges.ok() || !routes.ok()) continue;
    const Payload payload = PayloadOf(Operation::kAllreduce, 40'000);
    const auto us = [&](double cutoff_us) {
      return EvaluatePackets(profile, tree, *edges, *routes, payload, cutoff_us).total_us;
    };
    const double all = us(kNever);
    EXPECT_EQ(us(all), all);
    EXPECT_GT(us(all / 2), all / 2);
    EXPECT_LE(us(all / 2), all);
  }
}

// A tree of one node, and of two on one host.
TEST(LongMessages, OfFewestRanks) {
  const Snapshot snapshot = SnapshotOf(Chain(1, 2));
  const CostProfile profile = RoundProfile();
  const Payload payload = PayloadOf(Operation::kAllreduce, 10'000);
  for (const std::vector<int32_t>& parents :
       {std::vector<int32_t>{-1}, std::vector<int32_t>{-1, 0}}) {
    const AggregationTree tree =
        TreeOf(*snapshot.fabric, std::vector<uint32_t>(parents.size(), 0), parents);
    const auto edges = EdgeCosts(snapshot, profile, tree);
    const auto routes = FindRoutes(snapshot, profile, tree);
    ASSERT_TRUE(edges.ok() && routes.ok());
    const double us = EvaluatePackets(profile, tree, *edges, *routes, payload, kNever).total_us;
    EXPECT_NEAR(us, SimulatedUs(snapshot, profile, tree, payload), 1e-9);
    EXPECT_LE(BoundPackets(profile, tree, *routes, payload).least_us, us + 1e-9);
  }
}

TEST(LongMessages, NoBuilderIsFasterThanThePlan) {
  std::mt19937_64 random(TestSeed() + 2);
  const int wanted = FullTier() ? 400 : 30;
  for (int cases = 0; cases < wanted; ++cases) {
    const Snapshot snapshot = AnyFabric(random);
    const CostProfile profile = *BuiltInProfile(Below(random, 2) == 0 ? "paper" : "hdr");
    const std::vector<SwitchCapacity> capacity(snapshot.fabric->switch_count(), {16, 16, 64});
    TreeRequest request;
    request.members = AnyMembers(random, *snapshot.fabric, 60);
    request.operation = static_cast<Operation>(1 + Below(random, 3));
    request.sizes = {{4097 + random() % 60'000, 1}};
    const Payload payload = PayloadOf(request.operation, request.sizes[0].bytes);
    const auto simulated_us = [&](std::optional<TreeType> type, std::optional<TreeBuilder> builder,
                                  std::optional<uint32_t> width) {
      TreeRequest one = request;
      one.type = type;
      one.builder = builder;
      one.width = width;
      const auto plan = PlanTree(snapshot, profile, capacity, one);
      return plan.ok() ? SimulatedUs(snapshot, profile, plan->tree, payload) : kNever;
    };
    const double chosen = simulated_us(std::nullopt, std::nullopt, std::nullopt);
    const auto expect_not_below = [&](double us, const std::string& what) {
      EXPECT_LE(chosen, us * 1.01)
          << "case " << cases << ", " << request.members.size() << " ranks, " << what;
    };
    expect_not_below(simulated_us(TreeType::kTypeII, std::nullopt, std::nullopt), "type II");
    expect_not_below(simulated_us(TreeType::kTypeI, TreeBuilder::kPostal, std::nullopt), "postal");
    for (const TreeBuilder builder :
         {TreeBuilder::kKary, TreeBuilder::kKnomial, TreeBuilder::kHierarchical}) {
      for (const uint32_t width : WidthsToTry(profile, request, profile.nic_degree)) {
        expect_not_below(simulated_us(TreeType::kTypeI, builder, width),
                         absl::StrCat(std::string(ToString(builder)), " ", width));
      }
    }
  }
}

}  // namespace
}  // namespace coppice::long_messages_test
