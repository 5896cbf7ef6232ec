// What the words of coppice-plan map mean.
#include "daemon/tools/map_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/map_words.h"

namespace coppice::map_options_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(ParseObjective, NamesAndWeights) {
  for (const ObjectiveWords& words : kObjectives) {
    EXPECT_EQ(ParseObjective(words.text), (Objective{words.congestion, words.dilation, words.qap}))
        << words.text;
  }
  for (const char* text : kNoObjectives) EXPECT_EQ(ParseObjective(text), std::nullopt) << text;
}

TEST(ParseExtents, FromTheInnermost) {
  EXPECT_THAT(ParseExtents("4:8:6"), Optional(ElementsAre(4, 8, 6)));
  EXPECT_THAT(ParseExtents("4"), Optional(ElementsAre(4)));
  for (const char* text : {"", "4:", ":4", "4:-1", "4:+1", "4: 8", "4.5", "4294967296", "x"}) {
    EXPECT_EQ(ParseExtents(text), std::nullopt) << text;
  }
}

TEST(ParseLevelDistances, FromTheInnermost) {
  EXPECT_THAT(ParseLevelDistances("1:10:100"), Optional(ElementsAre(1, 10, 100)));
  EXPECT_THAT(ParseLevelDistances("1:3.7:4.1"), Optional(ElementsAre(1, 3.7, 4.1)));
  for (const char* text : {"", "1:", "one", "1,2"}) {
    EXPECT_EQ(ParseLevelDistances(text), std::nullopt) << text;
  }
}

TEST(ParseParameter, IsANameAndANumber) {
  EXPECT_THAT(ParseParameter("rounds=50"), Optional(std::pair<std::string, double>("rounds", 50)));
  for (const char* text : kNoParameters) EXPECT_EQ(ParseParameter(text), std::nullopt) << text;
}

TEST(ParseBudget, IsADurationAboveZero) {
  for (const BudgetWords& words : kBudgets) EXPECT_EQ(ParseBudget(words.text), words.budget);
  for (const char* text : kNoBudgets) EXPECT_EQ(ParseBudget(text), std::nullopt) << text;
}

}  // namespace
}  // namespace coppice::map_options_test
