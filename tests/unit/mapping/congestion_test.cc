// Congestion-aware refinement against the best of all mappings, and its bound below all of them.
#include "daemon/mapping/algorithm/congestion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::congestion_test {
namespace {

MappingProblem SmallProblem(uint64_t round, uint64_t seed) {
  const char* const models[] = {"fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", "torus(dims=2x3)",
                                "dragonfly()"};
  const uint32_t ranks = 4 + round % 3, per_host = 1 + round % 2;
  MappingProblem problem = ProblemOnModel(models[round % 3], (ranks + per_host) / per_host,
                                          per_host, RandomPattern(ranks, 0.5, seed));
  problem.traffic = static_cast<TrafficModel>(round / 3 % 2);
  problem.objective = {.congestion = 1};
  return problem;
}

TEST(CongestionAlgorithm, FindsTheBestOfSmallProblems) {
  for (uint64_t round = 0; round < (FullTier() ? 120u : 12u); ++round) {
    const MappingProblem problem = SmallProblem(round, TestSeed() + round);
    AlgorithmOptions options;
    options.seed = round;
    const Mapped mapped =
        RunAlgorithm(**FindMappingAlgorithm("congestion"), problem, {}, options, {}).value();
    EXPECT_NEAR(ScoreOf(problem, mapped.mapping), LeastScore(problem), 1e-9) << round;
  }
}

TEST(CongestionBound, IsBelowAllMappings) {
  for (uint64_t round = 0; round < (FullTier() ? 120u : 12u); ++round) {
    const MappingProblem problem = SmallProblem(round, TestSeed() + 1000 + round);
    double least = std::numeric_limits<double>::infinity();
    ForEachMapping(problem, [&](const Mapping& mapping) {
      least = std::min(least, *MeasureOf(problem, mapping).max_congestion);
    });
    EXPECT_LE(FindCongestionBound(problem).value, least * (1 + 1e-12));
  }
}

// Rank 0 sends to all others, one rank a host: its own port is the bound, whatever the order.
TEST(CongestionAlgorithm, StopsAtTheHeaviestRanksPort) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t r = 1; r < 8; ++r) entries.push_back({0, r, 10, 1});
  MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=4,hosts-per-leaf=2)", 8, 1,
                                          Pattern::Make(8, std::move(entries)).value());
  problem.objective = {.congestion = 1};
  const Mapped mapped =
      RunAlgorithm(**FindMappingAlgorithm("congestion"), problem, {}, {}, {}).value();
  EXPECT_THAT(mapped.note, ::testing::AllOf(::testing::HasSubstr("proven"),
                                            ::testing::HasSubstr("rank 0 sends")));
  EXPECT_DOUBLE_EQ(*MeasureOf(problem, mapped.mapping).max_congestion,
                   FindCongestionBound(problem).value);
}

TEST(CongestionSearch, OffersWhatItReturnsAndIsNeverWorseThanItsStart) {
  MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=4)", 16, 2,
                                          RandomPattern(32, 0.2, TestSeed()));
  for (const Objective& objective : {Objective{.congestion = 1}, Objective{.hop_bytes = 1},
                                     Objective{.congestion = 2, .hop_bytes = 1, .qap_cost = 1}}) {
    problem.objective = objective;
    Mapping last;
    const SearchControl control([] { return false; }, [&](const Mapping& m) { last = m; });
    CongestionSearch search = CongestionSearch::Make(problem, problem.present(), 7).value();
    double score = 1;
    for (const double heat : {0.1, 3.0, 0.3}) {
      search.Anneal({.steps = 2000, .first = heat}, 0, control);
      EXPECT_LE(ScoreOf(problem, search.best()), score + 1e-9);
      score = ScoreOf(problem, search.best());
      EXPECT_NEAR(search.best_value().first, score, 1e-9);
      EXPECT_EQ(last, search.best());
    }
    EXPECT_LT(score, 1);
  }
}

}  // namespace
}  // namespace coppice::congestion_test
