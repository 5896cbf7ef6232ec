// When an algorithm's order is the answer and when the present one is.
#include "daemon/mapping/output/mapping_answer.h"

#include <memory>
#include <utility>
#include <vector>

#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/mapping_metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::mapping_answer_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

PlaceIndex P(uint32_t p) { return PlaceIndex(p); }

// Four places in a row, 0 - 1 - 2 - 3.
MappingProblem Row(uint32_t ranks, std::vector<Pattern::Entry> entries) {
  MappingProblem problem;
  problem.pattern = Pattern::Make(ranks, std::move(entries)).value();
  problem.places = Places::Numbered(4, 1).value();
  problem.distances =
      PlaceDistances::Matrix(4, {0, 1, 2, 3, 1, 0, 1, 2, 2, 1, 0, 1, 3, 2, 1, 0}).value();
  problem.objective.qap_cost = 1;
  return problem;
}

Mapping fixed;  // what the algorithm below returns

absl::StatusOr<Mapped> ReturnFixed(const MappingProblem&, const Mapping&, const MethodOptions&,
                                   const SearchControl&) {
  return Mapped{fixed, "a note"};
}

MappingAnswer Answer(absl::string_view name, const MappingProblem& problem, Mapping mapping) {
  fixed = std::move(mapping);
  const MappingAlgorithm algorithm{name,       "a test", false, {}, SearchMemory::kNothingElse,
                                   ReturnFixed};
  const MappingMeasures before = Measure(problem, problem.present()).value();
  return AnswerMapping(problem, before, algorithm, {}, {}, SearchControl()).value();
}

TEST(AnswerMapping, GivesABetterOrderWithItsScore) {
  const MappingAnswer answer =
      Answer("auto", Row(3, {{0, 2, 10, 0}, {1, 2, 10, 0}}), {P(0), P(2), P(1)});
  EXPECT_EQ(answer.before.qap_cost, 30);
  EXPECT_EQ(answer.after.qap_cost, 20);
  EXPECT_DOUBLE_EQ(answer.score, 2.0 / 3);
  EXPECT_THAT(answer.slots, ElementsAre(0, 2, 1));
  EXPECT_EQ(answer.reason,
            "auto's order is 33.3 % better than the present one by the objective; a note");
}

TEST(AnswerMapping, AutoKeepsThePresentOrderUnlessItIsBeaten) {
  const MappingProblem problem = Row(3, {{0, 1, 10, 0}, {1, 2, 10, 0}});
  for (const Mapping& mapping : {Mapping{P(0), P(2), P(1)}, Mapping{P(3), P(2), P(1)}}) {
    const MappingAnswer answer = Answer("auto", problem, mapping);
    EXPECT_EQ(answer.mapping, problem.present());
    EXPECT_EQ(answer.score, 1);
    EXPECT_EQ(answer.after.qap_cost, answer.before.qap_cost);
    EXPECT_THAT(answer.reason, StartsWith("nothing better than the present order was found"));
  }
}

// All traffic within a place: what another order costs counts as it is, however little that may be.
TEST(AnswerMapping, NothingIsBetterThanACostOfZero) {
  MappingProblem problem = Row(2, {{0, 1, 0.25, 0}});
  problem.places = Places::Numbered(4, 2).value();
  const MappingAnswer kept = Answer("auto", problem, {P(0), P(1)});
  EXPECT_EQ(kept.mapping, problem.present());
  EXPECT_EQ(kept.score, 0);
  const MappingAnswer worse = Answer("other", problem, {P(0), P(1)});
  EXPECT_EQ(worse.score, 0.25);
  EXPECT_THAT(worse.reason, StartsWith("other's order is worse than the present one"));
}

// Two leaf switches of two hosts: pairs of ranks that talk, together and apart, fill the hosts' own
// ports alike.
TEST(AnswerMapping, AutoTakesFewerHopBytesOfOrdersAlikeInCongestion) {
  MappingProblem problem = ProblemOnModel("fat-tree(leaves=2,spines=2,hosts-per-leaf=2)", 4, 1,
                                          Pattern::Make(4, {{0, 2, 10, 1}, {1, 3, 10, 1}}).value());
  problem.objective = {.congestion = 1};
  problem.traffic = TrafficModel::kEvenShortestPaths;
  const Mapping together = {P(0), P(2), P(1), P(3)};
  const MappingAnswer answer = Answer("auto", problem, together);
  EXPECT_EQ(answer.mapping, together);
  EXPECT_EQ(answer.score, 1);
  EXPECT_EQ(*answer.after.hop_bytes, 40);
  EXPECT_THAT(answer.reason, HasSubstr("as good as the present one, with"));
  EXPECT_THAT(answer.reason, HasSubstr("50 % fewer hop-bytes"));

  problem.pattern = Pattern::Make(4, {{0, 1, 10, 1}, {2, 3, 10, 1}}).value();
  const MappingAnswer kept = Answer("auto", problem, together);
  EXPECT_EQ(kept.mapping, problem.present());
  EXPECT_EQ(*kept.after.hop_bytes, 40);
}

TEST(MappingStanding, ComparesOneKeyAfterTheOther) {
  const MappingStanding standing = {1, 5, 100}, rounded = {1 - 1e-15, 5, 100};
  EXPECT_FALSE(standing.IsBetterThan(standing));
  EXPECT_FALSE(rounded.IsBetterThan(standing));
  EXPECT_TRUE(standing.HasScoreOf(rounded));
  EXPECT_TRUE((MappingStanding{0.999, 9, 900}.IsBetterThan(standing)));
  EXPECT_FALSE((MappingStanding{1.001, 1, 1}.IsBetterThan(standing)));
  EXPECT_TRUE((MappingStanding{1 + 1e-15, 4, 900}.IsBetterThan(standing)));
  EXPECT_FALSE((MappingStanding{1 - 1e-15, 6, 1}.IsBetterThan(standing)));
  EXPECT_TRUE((MappingStanding{1, 5 + 1e-7, 99}.IsBetterThan(standing)));
  EXPECT_FALSE((MappingStanding{1, 5, 100 - 1e-9}.IsBetterThan(standing)));
  EXPECT_TRUE(standing.IsBetterThan({}));
  EXPECT_FALSE(MappingStanding{}.IsBetterThan(standing));
  EXPECT_FALSE(MappingStanding{}.IsBetterThan({}));
  // A thousandth of a tiny score is as much a difference as that of a great one.
  EXPECT_TRUE((MappingStanding{0.999e-14}.IsBetterThan({1e-14})));
}

TEST(AnswerMapping, OthersAreTakenAtTheirWord) {
  const MappingProblem problem = Row(3, {{0, 1, 10, 0}, {1, 2, 10, 0}});
  const MappingAnswer worse = Answer("other", problem, {P(0), P(2), P(1)});
  EXPECT_THAT(worse.slots, ElementsAre(0, 2, 1));
  EXPECT_DOUBLE_EQ(worse.score, 1.5);
  EXPECT_THAT(worse.reason, HasSubstr("50 % worse"));
  const MappingAnswer same = Answer("other", problem, {P(3), P(2), P(1)});
  EXPECT_THAT(same.slots, ElementsAre(3, 2, 1));
  EXPECT_THAT(same.reason, HasSubstr("as good as the present one"));
}

TEST(AnswerMapping, DoesNotSearchWhereThereIsNothingToFind) {
  for (const char* name : {"auto", "other"}) {
    const MappingAnswer one = Answer(name, Row(1, {{0, 0, 5, 0}}), {P(3)});
    EXPECT_THAT(one.slots, ElementsAre(0));
    EXPECT_THAT(one.reason, HasSubstr("one rank"));
    const MappingAnswer silent = Answer(name, Row(3, {{0, 1, 0, 4}}), {P(3), P(1), P(2)});
    EXPECT_THAT(silent.slots, ElementsAre(0, 1, 2));
    EXPECT_THAT(silent.reason, HasSubstr("no rank sends anything"));
  }
}

TEST(AnswerMapping, SearchesWhereOnlyDiagonalsWeigh) {
  MappingProblem problem = Row(2, {{0, 0, 5, 0}});
  problem.distances =
      PlaceDistances::Matrix(4, {7, 1, 1, 1, 1, 3, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0}).value();
  const MappingAnswer answer = Answer("auto", problem, {P(2), P(1)});
  EXPECT_EQ(answer.before.qap_cost, 35);
  EXPECT_EQ(answer.after.qap_cost, 0);
}

TEST(AnswerMapping, ChecksTheProblemFirst) {
  const absl::Status status =
      AnswerMapping(Row(5, {}), {}, **FindMappingAlgorithm("identity"), {}, {}, SearchControl())
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("5 ranks"));
}

TEST(AnswerMapping, StartsWhereItIsTold) {
  const Mapping start = {P(2), P(3), P(1)};
  const MappingAnswer answer =
      AnswerMapping(Row(3, {{0, 1, 10, 0}}), {}, **FindMappingAlgorithm("identity"), start, {},
                    SearchControl())
          .value();
  EXPECT_EQ(answer.mapping, start);
}

}  // namespace
}  // namespace coppice::mapping_answer_test
