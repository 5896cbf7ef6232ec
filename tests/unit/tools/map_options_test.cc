// What the words of coppice-plan map mean.
#include "daemon/tools/map_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coppice {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(ParseObjective, NamesAndWeights) {
  EXPECT_EQ(ParseObjective("congestion"), (Objective{.congestion = 1}));
  EXPECT_EQ(ParseObjective("dilation"), (Objective{.hop_bytes = 1}));
  EXPECT_EQ(ParseObjective("qap"), (Objective{.qap_cost = 1}));
  EXPECT_EQ(ParseObjective("congestion=1,dilation=0.5"),
            (Objective{.congestion = 1, .hop_bytes = 0.5}));
  EXPECT_EQ(ParseObjective("qap=2e1"), (Objective{.qap_cost = 20}));
  for (const char* text : {"", "speed", "qap,", "congestion=", "=1", "qap=1=2", "Qap", "qap=x"}) {
    EXPECT_EQ(ParseObjective(text), std::nullopt) << text;
  }
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
  for (const char* text : {"", "rounds", "rounds=", "=5", "rounds=x", "a=1=2"}) {
    EXPECT_EQ(ParseParameter(text), std::nullopt) << text;
  }
}

TEST(ParseBudget, IsADurationAboveZero) {
  EXPECT_EQ(ParseBudget("500ms"), absl::Milliseconds(500));
  EXPECT_EQ(ParseBudget("1h30m"), absl::Minutes(90));
  for (const char* text : {"", "0", "0s", "-1s", "1", "inf", "-inf", "9000h", "s"}) {
    EXPECT_EQ(ParseBudget(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace coppice
