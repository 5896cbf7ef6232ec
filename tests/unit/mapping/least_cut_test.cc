// What any k ranks exchange with the others, against all sets; what cables around places carry; and
// bounds and proofs of congestion that no mapping is below.
#include "daemon/mapping/search/links/least_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"
#include "tests/unit/mapping/routed_problems.h"

namespace coppice::least_cut_test {
namespace {

using ::testing::HasSubstr;

double LeastOfAllSets(const Pattern& pattern, uint32_t least, uint32_t most, double per_out,
                      double per_in) {
  double best = std::numeric_limits<double>::infinity();
  for (uint32_t set = 0; set < (1u << pattern.rank_count()); ++set) {
    const auto size = static_cast<uint32_t>(std::popcount(set));
    if (size < least || size > most) continue;
    double out = 0, in = 0;
    for (uint32_t u = 0; u < pattern.rank_count(); ++u) {
      if ((set >> u & 1) == 0) continue;
      for (const Exchange& e : pattern.exchanges(u)) {
        if ((set >> e.peer & 1) != 0) continue;
        out += e.out_bytes;
        in += e.in_bytes;
      }
    }
    best = std::min(best, std::max(per_out * out, per_in * in));
  }
  return best;
}

TEST(LeastCut, IsTheLeastOfAllSets) {
  for (uint64_t round = 0; round < (FullTier() ? 600u : 60u); ++round) {
    Xoshiro random(TestSeed() + round);
    const uint32_t ranks = 4 + random.Below(7);
    const uint32_t least = 1 + random.Below(ranks - 1);
    const uint32_t most = least + random.Below(ranks - least);
    const auto pattern = RandomPattern(ranks, round % 2 == 0 ? 0.3 : 0.8, random());
    const double per_out = 1.0 / (1 + random.Below(4)), per_in = 1.0 / (1 + random.Below(4));
    const double exact = LeastOfAllSets(*pattern, least, most, per_out, per_in);
    LeastCut cut(*pattern, least, most, per_out, per_in);
    for (const uint64_t budget : {0, 1, 3, 20, 1000000}) {
      uint64_t nodes = budget;
      const double infinity = std::numeric_limits<double>::infinity();
      const double found = cut.AtLeast(infinity, nodes);
      EXPECT_LE(found, exact * (1 + 1e-12)) << round << " with " << budget;
      EXPECT_GE(found, budget == 1000000 ? exact * (1 - 1e-6) : 0.0) << round;
    }
    uint64_t many = 1000000;
    EXPECT_GE(cut.AtLeast(0.9 * exact, many), 0.9 * exact * (1 - 1e-6)) << round;
    EXPECT_LE(cut.AtLeast(2 * exact, many), exact * (1 + 1e-12)) << round;
  }
}

TEST(LeastCut, EndsWhenItIsStopped) {
  const auto pattern = RandomPattern(60, 0.5, TestSeed());
  LeastCut cut(*pattern, 20, 30, 1, 1);
  uint64_t nodes = std::numeric_limits<uint64_t>::max();
  EXPECT_GE(cut.AtLeast(1e30, nodes, SearchControl([] { return true; }, nullptr)), 0);
}

//   0 1   2 3       switches, in pairs of three cables; pairs are joined by one
//   ===---===       hosts at 0: two, at 3: one, at 2: two
TEST(PlaceCuts, AreTheNarrowestAroundTheirPlaces) {
  FabricPlan plan;
  plan.switches = 4;
  plan.cables = {{0, 1}, {0, 1}, {0, 1}, {2, 3}, {2, 3}, {2, 3}, {1, 2}};
  plan.hosts = {{0}, {3}, {2}, {0}, {2}};
  const FabricPtr fabric = MakeFabric(plan);
  MappingProblem problem;
  problem.snapshot = MakeSnapshot(fabric, nullptr).value();
  std::vector<EndpointIndex> hosts;
  for (uint32_t h = 0; h < 5; ++h) hosts.push_back(fabric->endpoints_of_host(HostIndex(h))[0]);
  problem.places = Places::OfEndpoints(*fabric, hosts, 2).value();
  problem.distances =
      PlaceDistances::RouteLengths(*problem.places, *problem.snapshot->routes).value();
  problem.pattern = RingPattern(9, 1);
  problem.objective = {.congestion = 1};
  const double cable = fabric->capacity_gbps(fabric->uplink(hosts[0]));
  const std::vector<PlaceCut> cuts = FindPlaceCuts(problem);
  const auto cut_of = [&](const std::vector<uint32_t>& places) {
    return std::find_if(cuts.begin(), cuts.end(),
                        [&](const PlaceCut& cut) { return cut.places == places; });
  };
  ASSERT_NE(cut_of({0, 3}), cuts.end());  // both hosts at switch 0: the one cable between pairs
  EXPECT_DOUBLE_EQ(cut_of({0, 3})->out_capacity, 1.0 * cable);
  EXPECT_DOUBLE_EQ(cut_of({0, 3})->in_capacity, 1.0 * cable);
  EXPECT_EQ(cut_of({0, 3})->least_ranks, 3u);
  EXPECT_EQ(cut_of({0, 3})->most_ranks, 4u);
  ASSERT_NE(cut_of({1}), cuts.end());  // a host: its own cable
  EXPECT_EQ(cut_of({1})->least_ranks, 1u);
  EXPECT_EQ(cut_of({1})->most_ranks, 2u);
  ASSERT_NE(cut_of({2, 4}), cuts.end());  // at switch 2: two hosts' cables, against four
  EXPECT_DOUBLE_EQ(cut_of({2, 4})->out_capacity, 2.0 * cable);
}

struct Bounds {
  double least = std::numeric_limits<double>::infinity();  // of all mappings
  Mapping best;
};

Bounds BestOfAll(const MappingProblem& problem) {
  Bounds bounds;
  ForEachMapping(problem, [&](const Mapping& mapping) {
    const double congestion = *MeasureOf(problem, mapping).max_congestion;
    if (congestion >= bounds.least) return;
    bounds = {congestion, mapping};
  });
  return bounds;
}

// Models, a real cluster's tables, one-way rings, measured load; several places a host, fewer ranks
// than places.
MappingProblem AnyProblem(uint64_t round, uint64_t seed) {
  Xoshiro random(seed);
  const uint32_t ranks = 3 + random.Below(4), each = 1 + random.Below(3);
  const auto pattern = RandomPattern(ranks, 0.3 + 0.5 * random.Unit(), random());
  const uint32_t hosts = (ranks + each - 1) / each + random.Below(2);
  const char* const models[] = {"fat-tree(leaves=4,spines=1,hosts-per-leaf=2)", "torus(dims=2x3)",
                                "dragonfly()"};
  MappingProblem problem;
  if (round % 5 == 3) {
    problem = ProblemOnPlafrim(std::max(2U, hosts), each, pattern, random());
  } else if (round % 5 == 4) {
    problem = ProblemOnOneWayRing(3, pattern);
  } else {
    problem = ProblemOnModel(models[round % 5], hosts, each, pattern);
    problem.traffic = static_cast<TrafficModel>(round / 5 % 2);
  }
  problem.objective = {.congestion = 1};
  return round % 2 == 0 ? problem : WithLoad(std::move(problem), random());
}

// Whether the best is proven to be.
bool ExpectNeverAboveTheBest(const MappingProblem& problem) {
  const Bounds all = BestOfAll(problem);
  if (!(all.least > 0) || all.best.empty()) return false;
  EXPECT_LE(FindCongestionBound(problem).value, all.least * (1 + 1e-12));
  const CongestionProof proof(problem);
  EXPECT_LE(proof.ShortBound().value, all.least * (1 + 1e-12));
  const CongestionBound found = proof.Prove(all.best, all.least, 1000000, {});
  EXPECT_LE(found.value, all.least * (1 + 1e-12));
  // What is not the best is not proven to be.
  const Mapping present = problem.present();
  const double worse = *MeasureOf(problem, present).max_congestion;
  EXPECT_LE(proof.Prove(present, worse, 1000000, {}).value, all.least * (1 + 1e-12));
  return found.value >= all.least * (1 - 1e-12);
}

TEST(CongestionProof, IsNeverAboveTheBestOfAllMappings) {
  uint32_t proven = 0;
  for (uint64_t round = 0; round < (FullTier() ? 300u : 30u); ++round) {
    SCOPED_TRACE(round);
    proven += ExpectNeverAboveTheBest(AnyProblem(round, TestSeed() + round)) ? 1 : 0;
  }
  EXPECT_GT(proven, FullTier() ? 60u : 5u);
}

TEST(CongestionProof, TakesPortsOnTwoSwitchesForTwoHosts) {
  for (uint64_t round = 0; round < (FullTier() ? 100u : 12u); ++round) {
    SCOPED_TRACE(round);
    const auto each = static_cast<uint32_t>(1 + round % 3), ranks = std::min(6u, 3 + each);
    MappingProblem problem =
        ProblemOnHostsOfTwoLeaves(2, each, RandomPattern(ranks, 0.6, TestSeed() + round));
    problem.traffic = static_cast<TrafficModel>(round / 3 % 2);
    problem.objective = {.congestion = 1};
    if (round % 4 == 3) problem = WithLoad(std::move(problem), TestSeed() + round);
    ExpectNeverAboveTheBest(problem);
  }
}

// Two cliques of four and a thread between them, two leaf switches with one cable: what it carries
// is the least, and no host's cable tells.
TEST(CongestionProof, EndsThePortfolioWhereACableBetweenSwitchesIsFull) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t a = 0; a < 8; ++a) {
    for (uint32_t b = 0; b < 8; ++b) {
      if (a != b) entries.push_back({a, b, a / 4 == b / 4 ? 10.0 : 4.0, 1});
    }
  }
  MappingProblem problem = ProblemOnModel("fat-tree(leaves=2,spines=1,hosts-per-leaf=4)", 8, 1,
                                          Pattern::Make(8, std::move(entries)).value());
  problem.objective = {.congestion = 1};
  for (const uint32_t threads : {1u, 2u}) {
    AlgorithmOptions options;
    options.threads = threads;
    const Mapped mapped =
        RunAlgorithm(**FindMappingAlgorithm("auto"), problem, {}, options, {}).value();
    EXPECT_THAT(mapped.note, HasSubstr("proven: no order's greatest congestion is below"));
    EXPECT_THAT(mapped.note, HasSubstr("any 4 ranks on 4 hosts"));
  }
}

}  // namespace
}  // namespace coppice::least_cut_test
