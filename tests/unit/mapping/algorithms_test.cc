// What holds for every algorithm in the table: its mappings are admissible, equal seeds give equal
// results for any number of threads, one that refines never returns worse, none beats the best of
// all mappings, and bad input is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_check.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice {
namespace {

constexpr char kFatTree[] = "fat-tree(leaves=4,spines=2,hosts-per-leaf=2)";

class EveryMappingAlgorithm : public ::testing::TestWithParam<const MappingAlgorithm*> {};

TEST_P(EveryMappingAlgorithm, IsAdmissibleRepeatableAndNoBetterThanTheBest) {
  const uint64_t seed = TestSeed();
  for (uint64_t round = 0; round < (FullTier() ? 40u : 6u); ++round) {
    const uint32_t ranks = 4 + round % 4;
    const uint32_t per_host = 1 + round % 2;
    MappingProblem problem = ProblemOnModel(kFatTree, (ranks + per_host) / per_host, per_host,
                                            RandomPattern(ranks, 0.5, seed + round));
    AlgorithmOptions options;
    options.seed = seed + round;
    const absl::StatusOr<Mapped> mapped = RunAlgorithm(*GetParam(), problem, {}, options, {});
    if (mapped.status().code() == absl::StatusCode::kFailedPrecondition) continue;
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    ASSERT_TRUE(CheckMapping(*problem.places, ranks, mapped->mapping).ok());
    const double score = ScoreOf(problem, mapped->mapping);
    EXPECT_GE(score, LeastScore(problem) - 1e-9);
    if (GetParam()->refines) {
      EXPECT_LE(score, 1 + 1e-9);
    }
    options.threads = 3;
    EXPECT_EQ(RunAlgorithm(*GetParam(), problem, {}, options, {})->mapping, mapped->mapping);
  }
}

TEST_P(EveryMappingAlgorithm, TakesOneRankAndAPatternWithoutBytes) {
  for (const uint32_t ranks : {1u, 5u}) {
    const MappingProblem problem = ProblemOnModel(kFatTree, 6, 1, Pattern::Make(ranks, {}).value());
    const absl::StatusOr<Mapped> mapped = RunAlgorithm(*GetParam(), problem, {}, {}, {});
    EXPECT_TRUE(mapped.ok() || mapped.status().code() == absl::StatusCode::kFailedPrecondition)
        << mapped.status();
  }
}

TEST_P(EveryMappingAlgorithm, StopsAtOnceWhenItMust) {
  const MappingProblem problem = ProblemOnModel(kFatTree, 8, 1, GridPattern(2, 4, 5));
  const SearchControl spent([] { return true; }, nullptr);
  const absl::StatusOr<Mapped> mapped = RunAlgorithm(*GetParam(), problem, {}, {}, spent);
  EXPECT_TRUE(mapped.ok() || mapped.status().code() == absl::StatusCode::kFailedPrecondition)
      << mapped.status();
}

TEST_P(EveryMappingAlgorithm, RefusesAnOptionThatItDoesNotHave) {
  const MappingProblem problem = ProblemOnModel(kFatTree, 8, 1, GridPattern(2, 4, 5));
  AlgorithmOptions options;
  options.parameters = {{"colour", 1}};
  const absl::Status status = RunAlgorithm(*GetParam(), problem, {}, options, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("colour"));
}

INSTANTIATE_TEST_SUITE_P(Table, EveryMappingAlgorithm,
                         ::testing::ValuesIn(MappingAlgorithms().begin(),
                                             MappingAlgorithms().end()),
                         [](const auto& entry) {
                           std::string name(entry.param->name);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(MappingAlgorithmTable, NamesWhatItHasWhenAskedForAnother) {
  const absl::Status status = FindMappingAlgorithm("simplex").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("round-robin"));
}

TEST(RunAlgorithm, RefusesMoreRanksThanPlaces) {
  const MappingProblem problem = ProblemOnModel(kFatTree, 4, 2, GridPattern(3, 3, 5));
  const absl::Status status =
      RunAlgorithm(**FindMappingAlgorithm("block"), problem, {}, {}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(::testing::HasSubstr("9 ranks"), ::testing::HasSubstr("take 8")));
}

}  // namespace
}  // namespace coppice
