#include "proto/text/rank_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/support/tier.h"

namespace coppice::rank_ranges_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint32_t> Expand(const std::vector<RankRange>& ranges) {
  std::vector<uint32_t> ranks;
  for (const RankRange& range : ranges) {
    for (uint32_t i = 0; i < range.count(); ++i) {
      ranks.push_back(range.first + i * range.stride);
    }
  }
  return ranks;
}

TEST(ParseRankRanges, TakesRangesWithStrides) {
  const auto ranges = ParseRankRanges("0-3,10-15:2,7");
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_THAT(Expand(*ranges), ElementsAre(0, 1, 2, 3, 10, 12, 14, 7));
}

TEST(ParseRankRanges, NamesThePartThatIsWrong) {
  for (const char* bad : {"", "x", "3-1", "1-", "-", "1-2-3", "1-2:0", "1-2:", "1:2:3", "0,,1",
                          "99999999999", "4294967295", "-1"}) {
    const auto ranges = ParseRankRanges(bad);
    EXPECT_EQ(ranges.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(ranges.status().message()), HasSubstr("write A, A-B or A-B:STRIDE"));
  }
}

TEST(ParseRankRanges, SurvivesAnyText) {
  std::mt19937_64 random(TestSeed());
  const std::string alphabet = "0123456789-:, x";
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 12, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    const auto ranges = ParseRankRanges(text);
    if (!ranges.ok()) continue;
    for (const RankRange& range : *ranges) EXPECT_GE(range.count(), 1u) << text;
  }
}

TEST(ParseCommunicators, TakesALineForEach) {
  const auto lines = ParseCommunicators("# two\n0-2 7\r\n\n 4-8:2,1  3 # the second\n", "list");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ((*lines)[1].number, 4u);
  EXPECT_THAT(Expand((*lines)[0].ranges), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(Expand((*lines)[1].ranges), ElementsAre(4, 6, 8, 1, 3));
}

TEST(ParseCommunicators, NamesTheLineThatIsWrong) {
  EXPECT_EQ(ParseCommunicators("0-3\n4-x\n", "list").status().message(),
            "list:2: ranks \"4-x\": write A, A-B or A-B:STRIDE with A <= B");
  for (const char* none : {"", "\n#1\n", " , \n"}) {
    EXPECT_EQ(ParseCommunicators(none, "list").status().message(),
              "list: no communicators; write the ranks of one on each line");
  }
}

}  // namespace
}  // namespace coppice::rank_ranges_test
