// What holds for every algorithm in the table, whatever is added to it: its mappings are admissible
// and measured as a naive count measures them, one that refines returns nothing worse than its
// start, none takes long once it must stop, and bad input is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "tests/support/naive_measures.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/algorithm_cases.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::algorithms_test {
namespace {

constexpr char kFatTree[] = "fat-tree(leaves=4,spines=2,hosts-per-leaf=2)";

class EveryMappingAlgorithm : public ::testing::TestWithParam<const MappingAlgorithm*> {
 protected:
  // None where it says that the problem is not for it.
  std::optional<Mapping> Run(const MappingProblem& problem, const Mapping& start,
                             const AlgorithmOptions& options, const SearchControl& control = {}) {
    const absl::StatusOr<Mapped> mapped =
        RunAlgorithm(*GetParam(), problem, start, options, control);
    if (absl::IsFailedPrecondition(mapped.status())) return std::nullopt;
    EXPECT_TRUE(mapped.ok()) << mapped.status();
    if (!mapped.ok()) return std::nullopt;
    EXPECT_EQ(WhatIsWrong(problem, mapped->mapping), "");
    return mapped->mapping;
  }
};

// The project's own measures of its answer against those counted naively.
void ExpectMeasured(const MappingProblem& problem, NaiveEvaluator& evaluator,
                    const Mapping& mapping) {
  const MappingMeasures own = MeasureOf(problem, mapping);
  const NaiveMeasures naive = evaluator.Measure(mapping);
  EXPECT_DOUBLE_EQ(own.qap_cost, naive.qap_cost);
  EXPECT_DOUBLE_EQ(own.inter_node_bytes, naive.inter_node_bytes);
  EXPECT_NEAR(ScoreOf(problem, mapping), evaluator.Score(naive), 1e-12);
  if (!own.hop_bytes.has_value()) return;
  EXPECT_NEAR(*own.hop_bytes, naive.hop_bytes, 1e-12 * naive.hop_bytes);
  EXPECT_NEAR(*own.max_congestion, naive.max_congestion, 1e-12 * naive.max_congestion);
  EXPECT_EQ(*own.max_dilation, naive.max_dilation);
  EXPECT_DOUBLE_EQ(*own.inter_switch_bytes, naive.inter_switch_bytes);
  const double total = problem.pattern->total_bytes();
  EXPECT_NEAR(*own.average_dilation, total > 0 ? naive.hop_bytes / total : 0, 1e-12);
}

TEST_P(EveryMappingAlgorithm, IsAdmissibleMeasuredAndNeverWorseThanItsStart) {
  const uint64_t seed = TestSeed();
  for (const ProblemKind& kind : SmallKinds()) {
    for (uint64_t round = 0; round < (FullTier() ? 72u : 6u); ++round) {
      SCOPED_TRACE(testing::Message() << kind.name << " " << seed + round);
      const MappingProblem problem = kind.make(seed + round);
      const Mapping start = RandomMapping(problem, seed + round);
      // Presets that take long are for EveryAlgorithmsOptimum, which has the same problems.
      AlgorithmOptions options = QuickOptions(*GetParam(), seed + round);
      if (FullTier() || round == 0) options.parameters.clear();
      const std::optional<Mapping> mapping = Run(problem, start, options);
      if (!mapping.has_value()) continue;
      NaiveEvaluator evaluator(problem);
      ExpectMeasured(problem, evaluator, *mapping);
      if (!GetParam()->refines) continue;
      EXPECT_LE(Judged(*GetParam(), problem, evaluator, *mapping),
                Judged(*GetParam(), problem, evaluator, start) * (1 + 1e-9));
    }
  }
}

TEST_P(EveryMappingAlgorithm, KeepsItsPromisesOnLargeProblems) {
  for (const ProblemKind& kind : LargeKinds()) {
    for (uint64_t seed = TestSeed(); seed < TestSeed() + (FullTier() ? 8 : 2); ++seed) {
      SCOPED_TRACE(testing::Message() << kind.name << " " << seed);
      const MappingProblem problem = kind.make(seed);
      if (!IsQuickFor(*GetParam(), problem)) continue;
      const Mapping start = RandomMapping(problem, seed);
      const std::optional<Mapping> mapping = Run(problem, start, QuickOptions(*GetParam(), seed));
      if (!mapping.has_value()) continue;
      NaiveEvaluator evaluator(problem);
      ExpectMeasured(problem, evaluator, *mapping);
      if (!GetParam()->refines) continue;
      EXPECT_LE(Judged(*GetParam(), problem, evaluator, *mapping),
                Judged(*GetParam(), problem, evaluator, start) * (1 + 1e-9));
    }
  }
}

TEST_P(EveryMappingAlgorithm, GivesEqualResultsForAnyNumberOfThreads) {
  for (const ProblemKind& kind : LargeKinds()) {
    SCOPED_TRACE(kind.name);
    const MappingProblem problem = kind.make(TestSeed());
    if (!IsQuickFor(*GetParam(), problem)) continue;
    const Mapping start = RandomMapping(problem, TestSeed());
    AlgorithmOptions options = QuickOptions(*GetParam(), TestSeed());
    const std::optional<Mapping> one = Run(problem, start, options);
    if (!one.has_value()) continue;
    for (const uint32_t threads : {2u, 4u}) {
      options.threads = threads;
      EXPECT_EQ(Run(problem, start, options), one) << threads << " threads";
    }
  }
}

// Asked to stop at its nth question: what it has is admissible, not worse than its start, and it
// does not go on asking.
TEST_P(EveryMappingAlgorithm, StopsSoonAndWithSomethingWhenItMust) {
  for (const ProblemKind& kind : LargeKinds()) {
    const MappingProblem problem = kind.make(TestSeed());
    const Mapping start = RandomMapping(problem, TestSeed());
    NaiveEvaluator evaluator(problem);
    // Of each worker, and of each part that is still to be cut: once or twice.
    const uint64_t few_more = 8 * problem.places->slot_count();
    for (const uint64_t granted : {0u, 1u, 7u, 60u}) {
      SCOPED_TRACE(testing::Message() << kind.name << ", stopped at question " << granted);
      std::atomic<uint64_t> asked = 0;
      const SearchControl control([&] { return asked++ >= granted; }, nullptr);
      AlgorithmOptions options;
      options.seed = TestSeed();
      const std::optional<Mapping> mapping = Run(problem, start, options, control);
      if (!mapping.has_value()) continue;
      EXPECT_LE(asked, granted + few_more);
      if (!GetParam()->refines) continue;
      EXPECT_LE(Judged(*GetParam(), problem, evaluator, *mapping),
                Judged(*GetParam(), problem, evaluator, start) * (1 + 1e-9));
    }
  }
}

// Bytes in other units are the same question; so are costs of distances in other units.
TEST_P(EveryMappingAlgorithm, TakesNoNoticeOfUnits) {
  for (const ProblemKind& kind : SmallKinds()) {
    for (uint64_t round = 0; round < (FullTier() ? 36u : 6u); ++round) {
      SCOPED_TRACE(testing::Message() << kind.name << " " << TestSeed() + round);
      const MappingProblem problem = kind.make(TestSeed() + round);
      const AlgorithmOptions options = QuickOptions(*GetParam(), round);
      const std::optional<Mapping> mapping = Run(problem, {}, options);
      if (!mapping.has_value()) continue;
      const double score = NaiveEvaluator(problem).Score(*mapping);
      for (const double unit : {0x1p10, 0x1p-30}) {
        MappingProblem scaled = problem;
        scaled.pattern = Scaled(*problem.pattern, unit);
        const std::optional<Mapping> other = Run(scaled, {}, options);
        ASSERT_TRUE(other.has_value());
        EXPECT_NEAR(NaiveEvaluator(scaled).Score(*other), score, 1e-9) << unit;
      }
    }
  }
}

TEST_P(EveryMappingAlgorithm, TakesOneRankAndAPatternWithoutBytes) {
  for (const uint32_t ranks : {1u, 5u}) {
    const MappingProblem problem = ProblemOnModel(kFatTree, 6, 1, Pattern::Make(ranks, {}).value());
    Run(problem, {}, {});
    MappingProblem matrix = ProblemOnMatrix(std::vector<double>(36, 0.0), problem.pattern);
    Run(matrix, {}, {});
  }
}

TEST_P(EveryMappingAlgorithm, RefusesAnOptionThatItDoesNotHave) {
  const MappingProblem problem = ProblemOnModel(kFatTree, 8, 1, GridPattern(2, 4, 5));
  AlgorithmOptions options;
  options.parameters = {{"colour", 1}};
  const absl::Status status = RunAlgorithm(*GetParam(), problem, {}, options, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("colour"));
}

// Its presets are within their own ranges, and what is beyond these is refused by name.
TEST_P(EveryMappingAlgorithm, RefusesOptionsOutOfRange) {
  const MappingProblem problem = ProblemOnModel(kFatTree, 8, 1, GridPattern(2, 4, 5));
  for (const AlgorithmParameter& parameter : GetParam()->parameters) {
    EXPECT_LE(parameter.least, parameter.preset) << parameter.name;
    EXPECT_LE(parameter.preset, parameter.greatest) << parameter.name;
    for (const double value : {parameter.least - 1, 2 * parameter.greatest + 1, std::nan("")}) {
      AlgorithmOptions options;
      options.parameters = {{std::string(parameter.name), value}};
      const absl::Status status = RunAlgorithm(*GetParam(), problem, {}, options, {}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << parameter.name << value;
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(std::string(parameter.name)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryMappingAlgorithm,
                         ::testing::ValuesIn(MappingAlgorithms().begin(),
                                             MappingAlgorithms().end()),
                         [](const auto& entry) { return TestName(*entry.param); });

TEST(MappingAlgorithmTable, NamesWhatItHasWhenAskedForAnother) {
  const absl::Status status = FindMappingAlgorithm("simplex").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
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
}  // namespace coppice::algorithms_test
