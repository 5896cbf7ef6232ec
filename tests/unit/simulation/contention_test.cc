// The evaluation with links' queues against the simulator, where edges share links. Long messages
// have a test of their own, long_messages_test.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/type1.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"
#include "tests/support/trees.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::contention_test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

uint32_t Below(std::mt19937_64& random, size_t bound) {
  return static_cast<uint32_t>(random() % bound);
}

// Few cables between many ports, so that packets meet.
Snapshot AnyFabric(std::mt19937_64& random) {
  switch (Below(random, 3)) {
    case 0:
      return SnapshotOf(RandomFabric(random, 5, 8, 30));
    case 1:
      return SnapshotOfModel("model:torus(dims=3x3,hosts=3)");
    default:
      return SnapshotOfModel(absl::StrCat(
          "model:fat-tree(leaves=", 2 + Below(random, 5), ",spines=", 1 + Below(random, 2),
          ",hosts-per-leaf=", 1 + Below(random, 6), ",ports-per-host=", 1 + Below(random, 2), ")"));
  }
}

AggregationTree AnyTree(std::mt19937_64& random, const Snapshot& snapshot) {
  const Fabric& fabric = *snapshot.fabric;
  std::vector<EndpointIndex> members;
  for (uint32_t ranks = 2 + Below(random, 40); ranks > 0; --ranks) {
    members.emplace_back(Below(random, fabric.endpoint_count()));
  }
  const uint32_t width = 2 + Below(random, 12);
  switch (Below(random, 3)) {
    case 0:
      return *BuildKary(fabric, members, width, UINT32_MAX);
    case 1:
      return *BuildKnomial(fabric, members, width, UINT32_MAX);
    default:
      return *BuildHierarchical(fabric, *snapshot.hierarchy, members, width, UINT32_MAX);
  }
}

struct Difference {
  double sum = 0, largest = 0;
  int cases = 0;
};

// Of evaluation and simulation, over trees that share links.
Difference Compare(std::mt19937_64& random, int wanted, uint64_t most_bytes, double allowed) {
  Difference found;
  while (found.cases < wanted) {
    const Snapshot snapshot = AnyFabric(random);
    CostProfile profile = *BuiltInProfile(Below(random, 2) == 0 ? "paper" : "hdr");
    profile.header_bytes = Below(random, 2) == 0 ? 0 : 26;
    const AggregationTree tree = AnyTree(random, snapshot);
    const auto edges = EdgeCosts(snapshot, profile, tree);
    const auto routes = FindRoutes(snapshot, profile, tree);
    if (!edges.ok() || !routes.ok() || !routes->shares) continue;
    const Payload payload =
        PayloadOf(static_cast<Operation>(1 + Below(random, 3)), random() % (most_bytes + 1));
    const double alone = Evaluate(profile, tree, *edges, payload).total_us;
    const double contended =
        EvaluatePackets(profile, tree, *edges, *routes, payload, kNever).total_us;
    const double simulated =
        Simulated(snapshot, profile, {{.tree = tree, .payload = payload, .skew_us = {}}})
            .collectives[0]
            .total_us;
    EXPECT_GE(contended, alone * (1 - 1e-6));
    const double difference = std::abs(contended / simulated - 1);
    EXPECT_LE(difference, allowed) << "case " << found.cases << ": evaluated " << contended
                                   << ", simulated " << simulated << ", alone " << alone;
    found.sum += difference;
    found.largest = std::max(found.largest, difference);
    ++found.cases;
  }
  return found;
}

void Report(const char* what, const Difference& difference) {
  std::printf("%s: %d cases, mean difference %.3f %%, largest %.3f %%\n", what, difference.cases,
              100 * difference.sum / difference.cases, 100 * difference.largest);
}

// Units in the simulator are taken in the order of events, so that packets that come together may
// be taken in another order: that is what is allowed.
TEST(Contention, EvaluationAndSimulatorFollowSinglePackets) {
  std::mt19937_64 random(TestSeed());
  const Difference difference = Compare(random, FullTier() ? 10'000 : 500, 2048, /*allowed=*/0.03);
  Report("single packets", difference);
  EXPECT_LE(difference.sum / difference.cases, 0.0005);
}

// Two leaf switches of two ports, one cable between: ranks 2 and 3 send to 0 over it.
// The second packet waits until the cable has let the first one through.
TEST(Contention, TheSecondPacketWaitsForTheCable) {
  const Snapshot snapshot = SnapshotOf(Chain(2, 2));
  CostProfile profile = RoundProfile();
  const AggregationTree tree = TreeOf(*snapshot.fabric, {0, 2, 3}, {-1, 0, 0});
  const auto routes = FindRoutes(snapshot, profile, tree);
  ASSERT_TRUE(routes.ok()) << routes.status();
  EXPECT_TRUE(routes->shares);
  const AggregationTree alone = TreeOf(*snapshot.fabric, {0, 2}, {-1, 0});
  EXPECT_FALSE(FindRoutes(snapshot, profile, alone)->shares);
  const auto edges = EdgeCosts(snapshot, profile, tree);
  const Payload payload = PayloadOf(Operation::kReduce, 1000);
  const Prediction contended = EvaluatePackets(profile, tree, *edges, *routes, payload, kNever);
  const double simulated =
      Simulated(snapshot, profile, {{.tree = tree, .payload = payload, .skew_us = {}}})
          .collectives[0]
          .total_us;
  EXPECT_NEAR(contended.total_us, simulated, 1e-6);
}

}  // namespace
}  // namespace coppice::contention_test
