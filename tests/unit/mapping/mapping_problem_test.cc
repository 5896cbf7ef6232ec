// Which questions are refused before anything searches, and in what words.
#include "daemon/mapping/mapping_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "daemon/mapping/algorithm.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::mapping_problem_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Refusal(const MappingProblem& problem) {
  const absl::Status status = CheckProblem(problem);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(CheckProblem, RefusesProductsBeyondADoubleNamingBothSides) {
  const auto pattern = Pattern::Make(3, {{0, 1, 1e100, 1}, {2, 1, 3e100, 1}}).value();
  MappingProblem problem = ProblemOnMatrix({0, 1, 1, 1, 0, 1, 1e200, 1, 0}, pattern);
  EXPECT_THAT(Refusal(problem), AllOf(HasSubstr("3e+100 from rank 2 to rank 1"),
                                      HasSubstr("1e+200 in row 3, column 1")));
  problem.distances = PlaceDistances::Uniform({3}, {1e210}).value();
  EXPECT_THAT(Refusal(problem), HasSubstr("1e+210"));
  problem = ProblemOnMatrix({0, 1, 1, 0}, Pattern::Make(2, {{1, 1, 1e300, 1}}).value());
  EXPECT_THAT(Refusal(problem), HasSubstr("1e+300 from rank 1 to rank 1"));
}

// What is not refused is searched without any infinity or worse.
TEST(CheckProblem, WhatItLetsPassIsCountedWithInEverySearch) {
  MappingProblem problem = ProblemOnModel(
      "fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8, 1,
      Pattern::Make(8, {{0, 7, 1e145, 1}, {7, 1, 1e144, 1}, {2, 6, 3e10, 1}}).value());
  for (const Objective& objective : {Objective{1, 0, 0}, Objective{0, 1, 0}, Objective{0, 0, 1}}) {
    problem.objective = objective;
    ASSERT_TRUE(CheckProblem(problem).ok());
    for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
      const absl::StatusOr<Mapped> mapped = RunAlgorithm(*algorithm, problem, {}, {}, {});
      ASSERT_TRUE(mapped.ok() || absl::IsFailedPrecondition(mapped.status()))
          << algorithm->name << ": " << mapped.status();
      if (mapped.ok() && algorithm->refines) {
        EXPECT_LE(ScoreOf(problem, mapped->mapping), 1 + 1e-9) << algorithm->name;
      }
    }
  }
}

// Together they would be more than a double holds; what is let through gives scores.
TEST(CheckProblem, LetsThroughOnlyWeightsThatAddUp) {
  MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=2,spines=2,hosts-per-leaf=4)", 8, 1, RingPattern(8, 1e140));
  problem.objective = {.congestion = 1e308, .qap_cost = 1e308};
  EXPECT_THAT(Refusal(problem), HasSubstr("a weight of 1e+308; give 0, or 1e-100 to 1e+100"));
  for (const double weight : {1e-100, 1e100}) {
    problem.objective = {weight, weight, weight};
    ASSERT_TRUE(CheckProblem(problem).ok());
    EXPECT_DOUBLE_EQ(ScoreOf(problem, problem.present()), 1);
  }
}

TEST(CheckProblem, RefusesObjectivesThatCannotBe) {
  MappingProblem problem = ProblemOnMatrix({0, 1, 1, 0}, RingPattern(2, 1));
  problem.objective = {};
  EXPECT_THAT(Refusal(problem), HasSubstr("weighs nothing"));
  for (const double weight : {-1.0, std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(), 1e308, 5e-324}) {
    problem.objective = {.qap_cost = weight};
    EXPECT_THAT(Refusal(problem), HasSubstr("a weight of"));
  }
  problem.objective = {.congestion = 1};
  EXPECT_THAT(Refusal(problem), HasSubstr("no fabric"));
  problem.objective = {.qap_cost = 1};
  problem.distances = PlaceDistances::Matrix(3, std::vector<double>(9, 1.0)).value();
  EXPECT_THAT(Refusal(problem), AllOf(HasSubstr("3 places"), HasSubstr("2 places")));
}

}  // namespace
}  // namespace coppice::mapping_problem_test
