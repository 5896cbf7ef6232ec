// Pair exchange: never worse than its start, in the end a local optimum of all exchanges of two
// positions, and with the distances of a fabric or without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::pair_exchange_test {
namespace {

Mapped Exchanged(const MappingProblem& problem, const Mapping& start, AlgorithmOptions options,
                 const SearchControl& control = {}) {
  Mapped mapped =
      RunAlgorithm(**FindMappingAlgorithm("pair-exchange"), problem, start, options, control)
          .value();
  EXPECT_TRUE(CheckMapping(*problem.places, problem.rank_count(), mapped.mapping).ok());
  return mapped;
}

// Asymmetric distances, places that are not 0 from themselves, ranks that talk to themselves.
MappingProblem Measured(uint32_t ranks, uint32_t places, uint64_t seed) {
  Xoshiro random(seed);
  std::vector<double> distances(size_t{places} * places);
  for (double& d : distances) d = random.Below(30);
  std::vector<Pattern::Entry> entries;
  for (uint32_t i = 0; i < 3 * ranks; ++i) {
    entries.push_back({random.Below(ranks), random.Below(ranks), 1.0 + random.Below(9), 1});
  }
  return ProblemOnMatrix(std::move(distances), Pattern::Make(ranks, std::move(entries)).value());
}

double CostOf(const MappingProblem& problem, const Mapping& mapping) {
  return QapCost(*problem.pattern, *problem.distances, mapping);
}

TEST(PairExchange, EndsWhereNoExchangeOfTwoPositionsGains) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + (FullTier() ? 200 : 20); ++seed) {
    const MappingProblem problem = Measured(4 + seed % 5, 8, seed);
    for (const double in_order : {0.0, 1.0}) {
      AlgorithmOptions options;
      options.seed = seed;
      options.parameters = {{"in-order", in_order}, {"iterations", 20000}};
      const Mapping end = Exchanged(problem, {}, options).mapping;
      const double cost = CostOf(problem, end);
      EXPECT_LE(cost, CostOf(problem, problem.present()) + 1e-9);
      for (uint32_t u = 0; u < end.size(); ++u) {
        for (uint32_t place = 0; place < 8; ++place) {
          Mapping other = end;
          for (PlaceIndex& p : other) p = p == PlaceIndex(place) ? end[u] : p;
          other[u] = PlaceIndex(place);
          EXPECT_GE(CostOf(problem, other), cost - 1e-9)
              << seed << ": rank " << u << " to " << place;
        }
      }
    }
  }
}

TEST(PairExchange, IsNeverWorseThanAnyStartAndNoBetterThanTheBest) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + (FullTier() ? 60 : 6); ++seed) {
    const MappingProblem problem = ProblemOnModel("fat-tree(leaves=3,spines=2,hosts-per-leaf=2)", 6,
                                                  1 + seed % 2, RandomPattern(6, 0.5, seed));
    const double least = LeastScore(problem);
    Mapping start = problem.present();
    std::rotate(start.begin(), start.begin() + 2, start.end());
    for (const double iterations : {1.0, 30.0, 3000.0}) {
      AlgorithmOptions options;
      options.seed = seed;
      options.parameters = {{"iterations", iterations}};
      const double score = ScoreOf(problem, Exchanged(problem, start, options).mapping);
      EXPECT_LE(score, ScoreOf(problem, start) + 1e-9);
      EXPECT_GE(score, least - 1e-9);
    }
  }
}

TEST(PairExchange, MovesRanksToFreePlacesOfUnequalNodes) {
  // Two ranks that talk, each on a node of its own; the third node takes both.
  MappingProblem problem;
  problem.pattern = RingPattern(2, 5);
  problem.places = Places::OfSlots({0, 1, 2, 2}).value();
  problem.distances = PlaceDistances::Matrix(3, {0, 9, 4, 9, 0, 4, 4, 4, 0}).value();
  problem.objective = {.qap_cost = 1};
  const Mapped mapped = Exchanged(problem, {}, {});
  EXPECT_EQ(mapped.mapping, (Mapping{PlaceIndex(2), PlaceIndex(2)}));
  EXPECT_THAT(mapped.note, ::testing::HasSubstr("2 exchanges of 500000 tried"));
}

TEST(PairExchange, StopsAfterARoundWithoutGainInOrderAndAtOnceWhenItMust) {
  const MappingProblem problem = Measured(8, 8, 3);
  AlgorithmOptions options;
  options.parameters = {{"in-order", 1}, {"iterations", 1e12}};
  EXPECT_THAT(Exchanged(problem, {}, options).note,
              ::testing::HasSubstr("no exchange of two gains more"));
  options.parameters = {{"iterations", 1e12}};
  const SearchControl spent([] { return true; }, nullptr);
  EXPECT_EQ(Exchanged(problem, {}, options, spent).mapping, problem.present());
}

}  // namespace
}  // namespace coppice::pair_exchange_test
