// What the words of coppice-plan map mean.
#include "daemon/tools/map_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coppice::map_options_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

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

}  // namespace
}  // namespace coppice::map_options_test
