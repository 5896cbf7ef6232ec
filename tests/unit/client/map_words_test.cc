// What the words of coppicectl map mean.
#include "client/cli/map_words.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/map_words.h"

namespace coppice::map_words_test {
namespace {

using ::testing::Optional;

TEST(MapWords, ObjectivesAsCoppicePlanReadsThem) {
  for (const ObjectiveWords& words : kObjectives) {
    const auto objective = ParseObjective(words.text);
    ASSERT_TRUE(objective.has_value()) << words.text;
    EXPECT_EQ(objective->congestion(), words.congestion) << words.text;
    EXPECT_EQ(objective->dilation(), words.dilation) << words.text;
    EXPECT_EQ(objective->qap(), words.qap) << words.text;
  }
  for (const char* text : kNoObjectives) EXPECT_FALSE(ParseObjective(text).has_value()) << text;
}

TEST(MapWords, ParametersAsCoppicePlanReadsThem) {
  EXPECT_THAT(ParseParameter("rounds=50"), Optional(std::pair<std::string, double>("rounds", 50)));
  for (const char* text : kNoParameters) EXPECT_EQ(ParseParameter(text), std::nullopt) << text;
}

TEST(MapWords, BudgetsAsCoppicePlanReadsThem) {
  for (const BudgetWords& words : kBudgets) EXPECT_EQ(ParseBudget(words.text), words.budget);
  for (const char* text : kNoBudgets) EXPECT_EQ(ParseBudget(text), std::nullopt) << text;
}

}  // namespace
}  // namespace coppice::map_words_test
