// The portfolio: the optimum for a few ranks whatever the objective, never worse than the present
// order, equal for any number of threads, and words for what it did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_check.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice {
namespace {

using ::testing::HasSubstr;

const MappingAlgorithm& Auto() { return **FindMappingAlgorithm("auto"); }

AlgorithmOptions Options(uint64_t seed, double rounds) {
  AlgorithmOptions options;
  options.seed = seed;
  options.parameters = {{"rounds", rounds}};
  return options;
}

TEST(AutoMapping, FindsTheOptimumOfAFewRanksForEveryObjective) {
  const uint64_t seed = TestSeed();
  for (uint64_t round = 0; round < (FullTier() ? 30u : 5u); ++round) {
    for (const char* model : {"fat-tree(leaves=3,spines=2,hosts-per-leaf=2)", "torus(dims=2x3)"}) {
      MappingProblem problem =
          ProblemOnModel(model, 6, 1, RandomPattern(4 + round % 2, 0.6, seed + round));
      for (const Objective& objective :
           {Objective{1, 0, 0}, Objective{0, 1, 0}, Objective{0, 0, 1}, Objective{1, 1, 1}}) {
        problem.objective = objective;
        const Mapped mapped = RunAlgorithm(Auto(), problem, {}, Options(seed, 2), {}).value();
        EXPECT_NEAR(ScoreOf(problem, mapped.mapping), LeastScore(problem), 1e-9) << mapped.note;
        EXPECT_THAT(mapped.note, HasSubstr("optimum"));
      }
    }
  }
}

TEST(AutoMapping, IsEqualForAnyNumberOfThreadsAndNeverWorse) {
  const uint64_t seed = TestSeed();
  for (const uint32_t per_host : {1u, 8u}) {
    MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=4)", 16,
                                            per_host, GridPattern(4, 4 * per_host, 7));
    for (const Objective& objective : {Objective{1, 0, 0}, Objective{0, 1, 0}}) {
      problem.objective = objective;
      AlgorithmOptions options = Options(seed, 3);
      const Mapped one = RunAlgorithm(Auto(), problem, {}, options, {}).value();
      EXPECT_LE(ScoreOf(problem, one.mapping), 1 + 1e-12);
      options.threads = 3;
      EXPECT_EQ(RunAlgorithm(Auto(), problem, {}, options, {})->mapping, one.mapping);
    }
  }
}

TEST(AutoMapping, FillsAFewHolesOfAShuffledGrid) {
  MappingProblem problem = ProblemOnModel("torus(dims=8x8)", 64, 1, GridPattern(6, 10, 5));
  const Mapping shuffled =
      RunAlgorithm(**FindMappingAlgorithm("random"), problem, {}, {}, {})->mapping;
  const Mapped mapped = RunAlgorithm(Auto(), problem, shuffled, Options(1, 6), {}).value();
  // 104 edges of the grid cost at least 3 links each way.
  EXPECT_LE(*MeasureOf(problem, mapped.mapping).hop_bytes, 1.15 * 2 * 104 * 5 * 3) << mapped.note;
  EXPECT_THAT(mapped.note, HasSubstr("won at"));
  EXPECT_THAT(mapped.note, HasSubstr("multisection"));
}

TEST(AutoMapping, OffersOnlyWhatIsBetterAndAdmissible) {
  MappingProblem problem = ProblemOnModel("torus(dims=4x4)", 16, 1, RandomPattern(16, 0.2, 5));
  double last = 1;
  const SearchControl control(nullptr, [&](const Mapping& mapping) {
    EXPECT_TRUE(CheckMapping(*problem.places, 16, mapping).ok());
    const double score = ScoreOf(problem, mapping);
    EXPECT_LT(score, last);
    last = score;
  });
  const Mapped mapped = RunAlgorithm(Auto(), problem, {}, Options(1, 3), control).value();
  EXPECT_NEAR(ScoreOf(problem, mapped.mapping), last, 1e-9);
}

TEST(AutoMapping, SaysWhyItKeepsThePresentOrder) {
  const MappingProblem silent =
      ProblemOnModel("torus(dims=2x2)", 4, 1, Pattern::Make(3, {{1, 1, 5, 1}}).value());
  Mapped mapped = RunAlgorithm(Auto(), silent, {}, {}, {}).value();
  EXPECT_EQ(mapped.mapping, silent.present());
  EXPECT_THAT(mapped.note, HasSubstr("exchange anything"));
  const MappingProblem one = ProblemOnModel("torus(dims=2x2)", 4, 1, Pattern::Make(1, {}).value());
  EXPECT_THAT(RunAlgorithm(Auto(), one, {}, {}, {})->note, HasSubstr("one rank"));
}

}  // namespace
}  // namespace coppice
