// Problems as plain lists: every mapping costs the same there and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::plain_problem_test {
namespace {

MappingProblem ThereAndBack(const MappingProblem& problem) {
  absl::StatusOr<PlainProblem> plain = Flatten(problem);
  EXPECT_TRUE(plain.ok()) << plain.status();
  absl::StatusOr<MappingProblem> back = Unflatten(*std::move(plain));
  EXPECT_TRUE(back.ok()) << back.status();
  return *std::move(back);
}

TEST(PlainProblem, CostsWhatItDid) {
  Xoshiro random(TestSeed());
  for (int round = 0; round < 50; ++round) {
    // Several ranks on a host; some ranks talk to themselves, some send empty messages.
    std::vector<Pattern::Entry> entries;
    for (int i = 0; i < 30; ++i) {
      entries.push_back({random.Below(9), random.Below(9), static_cast<double>(random.Below(5)),
                         static_cast<double>(random.Below(3))});
    }
    const MappingProblem problem = ProblemOnModel("fat-tree(leaves=3,spines=2,hosts-per-leaf=2)", 6,
                                                  2, Pattern::Make(9, std::move(entries)).value());
    const MappingProblem back = ThereAndBack(problem);
    EXPECT_EQ(back.rank_count(), 9);
    EXPECT_EQ(back.places->slot_count(), 12);
    EXPECT_EQ(back.pattern->total_messages(), problem.pattern->total_messages());
    EXPECT_EQ(back.distances->symmetric(), problem.distances->symmetric());
    std::vector<uint32_t> slots(12);
    for (uint32_t s = 0; s < 12; ++s) slots[s] = s;
    for (int shuffle = 0; shuffle < 10; ++shuffle) {
      std::shuffle(slots.begin(), slots.end(), random);
      Mapping mapping;
      for (uint32_t r = 0; r < 9; ++r) mapping.push_back(problem.places->place_of_slot(slots[r]));
      EXPECT_EQ(QapCost(*back.pattern, *back.distances, mapping),
                QapCost(*problem.pattern, *problem.distances, mapping));
    }
  }
}

TEST(PlainProblem, KeepsDistancesThatAreUnlikeBothWays) {
  const MappingProblem problem =
      ProblemOnMatrix({0, 1.5, 2, 7, 0, 3, 4, 5, 0}, RandomPattern(3, 1, TestSeed()));
  const MappingProblem back = ThereAndBack(problem);
  EXPECT_EQ((*back.distances)(PlaceIndex(0), PlaceIndex(1)), 1.5);
  EXPECT_EQ((*back.distances)(PlaceIndex(1), PlaceIndex(0)), 7);
  EXPECT_FALSE(back.distances->symmetric());
}

TEST(PlainProblem, RefusesWhatIsTooLargeOrTorn) {
  MappingProblem problem;
  problem.pattern = RingPattern(8, 1);
  problem.places = Places::Numbered(4097, 1).value();
  problem.distances =
      PlaceDistances::Uniform(std::vector<uint32_t>{4097}, std::vector<double>{1}).value();
  const absl::Status status = Flatten(problem).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("4097 slots"));

  const PlainProblem whole = *Flatten(ProblemOnMatrix({0, 1, 1, 0}, RingPattern(2, 1)));
  ASSERT_TRUE(Unflatten(whole).ok());
  PlainProblem torn = whole;
  torn.distances.pop_back();
  EXPECT_EQ(Unflatten(torn).status().code(), absl::StatusCode::kInvalidArgument);
  torn = whole;
  torn.entries[0].to = 2;
  EXPECT_EQ(Unflatten(torn).status().code(), absl::StatusCode::kInvalidArgument);
  torn = whole;
  torn.place_of_slot.pop_back();
  EXPECT_EQ(Unflatten(torn).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace coppice::plain_problem_test
