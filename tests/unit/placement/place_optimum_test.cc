// Place() beside the best of all subsets of hosts, on small fabrics of every shape.
#include <gtest/gtest.h>

#include <cmath>

#include "daemon/placement/placement_constraints.h"
#include "daemon/placement/placement_metrics.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placement_search.h"
#include "daemon/placement/placer.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/placement/placement_oracle.h"

namespace coppice::place_optimum_test {
namespace {

const char* const kSmallFabrics[] = {
    "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)",
    "model:fat-tree(supernodes=3,leaves=2,spines=2,hosts-per-leaf=3,tops=2)",
    "model:torus(dims=4x4,hosts=1)",
    "model:torus(dims=3x2x2,hosts=1)",
    "model:dragonfly(p=1,a=3,h=1)",
    "model:dragonfly-plus(p=2,leaves=2,spines=2,h=1,g=3)",
    "model:hypercube(dims=4)",
};

PlacementScene SmallScene(uint32_t which, std::mt19937_64& rng) {
  const uint32_t models = std::size(kSmallFabrics);
  if (which < models) return MakeScene(kSmallFabrics[which]);
  return MakeScene(RandomFabric(rng, 6, 8, 12));
}

bool AboutEqual(double a, double b) { return std::abs(a - b) <= 1e-6 * (1 + std::abs(a)); }

struct Comparison {
  uint32_t answered = 0, refused = 0, optimal = 0;
};

void Compare(const PlacementScene& scene, const PlacementRequest& request, Comparison& tally) {
  const auto plan = Place(*scene.snapshot, *scene.index, scene.occupancy, request, {});
  PlacementRequest asked = request;
  if (asked.objective == PlacementObjective{}) asked.objective = DefaultObjective();
  const std::optional<double> least = LeastCost(scene, asked);
  ASSERT_EQ(plan.ok(), least.has_value()) << plan.status() << "\n" << Describe(scene, request);
  if (!plan.ok()) {
    ++tally.refused;
    return;
  }
  ++tally.answered;
  tally.optimal += plan->is_optimal ? 1 : 0;
  const double cost = plan->measures.cost;
  if (plan->is_optimal) {
    EXPECT_TRUE(AboutEqual(cost, *least)) << cost << " " << *least << Describe(scene, request);
  } else {
    EXPECT_LE(cost, *least + 0.02 * std::abs(*least) + 1e-6) << Describe(scene, request);
  }
}

TEST(PlaceOptimum, EqualsTheBestOfAllSubsets) {
  std::mt19937_64 rng(TestSeed());
  Comparison tally;
  const uint32_t rounds = FullTier() ? 400 : 30;
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t which = 0; which <= std::size(kSmallFabrics); ++which) {
      PlacementScene scene = SmallScene(which, rng);
      if (round % 4 != 0) OccupyAtRandom(scene, 0.1 * (round % 5), rng);
      if (round % 2 != 0) LoadAtRandom(scene, rng);
      const PlacementRequest request = RandomPlacementRequest(scene, 7, rng);
      ASSERT_NO_FATAL_FAILURE(Compare(scene, request, tally));
    }
  }
  EXPECT_GT(tally.answered, rounds * 2);
  EXPECT_GT(tally.refused, rounds / 4);
  EXPECT_GT(tally.optimal, tally.answered / 2);
  RecordProperty("optimal", static_cast<int>(tally.optimal));
  std::printf("%u answered, %u proven, %u refused\n", tally.answered, tally.optimal, tally.refused);
}

// Constraints that spread a job, all together, and far more of them than in the test above.
TEST(PlaceOptimum, SpreadsOverFaultDomainsAsTheBestDoes) {
  std::mt19937_64 rng(TestSeed() + 4);
  Comparison tally;
  uint32_t uneven = 0;  // hosts_per_leaf, and a last leaf switch with fewer
  const uint32_t rounds = FullTier() ? 300 : 25;
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t which = 0; which <= std::size(kSmallFabrics); ++which) {
      PlacementScene scene = SmallScene(which, rng);
      if (round % 2 != 0) OccupyAtRandom(scene, 0.05 * (round % 4), rng);
      PlacementRequest request = RandomPlacementRequest(scene, 7, rng);
      PlacementConstraints& c = request.constraints;
      c.hosts_per_leaf = rng() % 2 == 0 ? 0 : 1 + rng() % 3;
      c.min_leaf_switches = rng() % 2 == 0 ? 0 : 1 + rng() % 5;
      c.min_pods = rng() % 2 == 0 ? 0 : 1 + rng() % 4;
      c.exclusive_switches = rng() % 3 == 0;
      c.same_pod = c.min_pods < 2 && rng() % 8 == 0;
      uneven += c.hosts_per_leaf > 0 && LastLeafHosts(c) < c.hosts_per_leaf ? 1 : 0;
      ASSERT_NO_FATAL_FAILURE(Compare(scene, request, tally));
    }
  }
  EXPECT_GT(tally.answered, rounds);
  EXPECT_GT(tally.refused, rounds);
  EXPECT_GT(uneven, rounds / 2);
  std::printf("%u answered, %u proven, %u refused\n", tally.answered, tally.optimal, tally.refused);
}

// What large fabrics get: without branch and bound.
TEST(PlaceOptimum, HeuristicIsWithinTwoPercent) {
  std::mt19937_64 rng(TestSeed() + 1);
  SearchLimits limits;
  limits.exact_patience = 0;
  const uint32_t rounds = FullTier() ? 400 : 30;
  uint32_t answered = 0, best = 0, proven = 0, behind = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t which = 0; which <= std::size(kSmallFabrics); ++which) {
      PlacementScene scene = SmallScene(which, rng);
      if (round % 4 != 0) OccupyAtRandom(scene, 0.1 * (round % 5), rng);
      if (round % 2 != 0) LoadAtRandom(scene, rng);
      PlacementRequest request = RandomPlacementRequest(scene, 7, rng);
      if (request.objective == PlacementObjective{}) request.objective = DefaultObjective();
      const std::optional<double> least = LeastCost(scene, request);
      if (!least) continue;
      const auto open = FindOpenHosts(*scene.index, scene.occupancy, request.constraints);
      ASSERT_TRUE(open.ok()) << open.status() << Describe(scene, request);
      const PlacementQuestion question = {*scene.snapshot, *scene.index, scene.occupancy, request,
                                          *open};
      const SearchResult found = SearchPlacement(question, limits);
      const Choice& choice = found.choices.front();
      ASSERT_TRUE(AboutEqual(choice.cost, question.Measure(choice.hosts).cost));
      ASSERT_TRUE(
          CheckPlacement(*scene.snapshot, scene.occupancy, request.constraints, choice.hosts).ok());
      ++answered;
      best += AboutEqual(choice.cost, *least) ? 1 : 0;
      proven += found.is_optimal ? 1 : 0;
      if (found.is_optimal) {
        EXPECT_TRUE(AboutEqual(choice.cost, *least));
      }
      if (choice.cost <= *least + 0.02 * std::abs(*least) + 1e-6) continue;
      ++behind;
      ADD_FAILURE() << choice.cost << " " << *least << " " << Describe(scene, request);
    }
  }
  std::printf("%u answered, %u the best, %u proven, %u more than 2 %% behind\n", answered, best,
              proven, behind);
}

// More leaf switches than are looked at all together, of which many cannot give the even share.
TEST(PlaceOptimum, EvenSharesMayLieFarApart) {
  std::mt19937_64 rng(TestSeed() + 2);
  const uint32_t rounds = FullTier() ? 200 : 20;
  uint32_t answered = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    PlacementScene scene = MakeScene("model:dragonfly(p=4,a=8,h=4)");
    OccupyAtRandom(scene, 0.1 * (1 + round % 5), rng);
    PlacementRequest request;
    request.constraints.host_count = 50 + static_cast<uint32_t>(rng() % 100);
    request.constraints.hosts_per_leaf = 2 + static_cast<uint32_t>(rng() % 3);
    const auto plan = Place(*scene.snapshot, *scene.index, scene.occupancy, request, {});
    if (!plan.ok()) {
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted) << plan.status();
      continue;
    }
    ++answered;
    EXPECT_TRUE(
        CheckPlacement(*scene.snapshot, scene.occupancy, request.constraints, plan->hosts).ok())
        << Describe(scene, request);
  }
  EXPECT_GT(answered, rounds / 4);
}

}  // namespace
}  // namespace coppice::place_optimum_test
