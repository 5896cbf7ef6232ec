#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "client/cli/input_file.h"
#include "tests/support/tier.h"

namespace coppice::member_file_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two ports on n1, the first of which holds two ranks.
v1::Job SmallJob() {
  v1::Job job;
  job.set_id("7");
  for (const char* endpoint : {"n1/1", "n1/2", "n2/1", "n1/1"}) job.add_endpoints(endpoint);
  return job;
}

TEST(RanksOfMembers, TakesTheNthRankForTheNthMention) {
  const auto ranks = RanksOfMembers(SmallJob(), {"n2/1", "n1/1", "n1/1", "n1/2"});
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_THAT(*ranks, ElementsAre(2, 0, 3, 1));
}

TEST(RanksOfMembers, TakesAnyPortOfAHost) {
  const auto ranks = RanksOfMembers(SmallJob(), {"n1", "n1/2", "n1"});
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_THAT(*ranks, ElementsAre(0, 1, 3));
}

TEST(RanksOfMembers, NamesWhatTheJobDoesNotHave) {
  EXPECT_EQ(RanksOfMembers(SmallJob(), {"n9"}).status().message(),
            "member n9: job 7 has no rank there");
  EXPECT_EQ(RanksOfMembers(SmallJob(), {"n2/1", "n2/1"}).status().message(),
            "member n2/1: named more often than job 7 has ranks there");
}

std::vector<uint32_t> Expand(const std::vector<v1::RankRange>& ranges) {
  std::vector<uint32_t> ranks;
  for (const v1::RankRange& range : ranges) {
    for (uint32_t i = 0; i < range.count(); ++i) {
      ranks.push_back(range.first() + i * range.stride());
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
                          "99999999999", "-1"}) {
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
    for (const v1::RankRange& range : *ranges) EXPECT_GE(range.count(), 1) << text;
  }
}

TEST(ReadMemberFile, DropsCommentsAndBlankLines) {
  const std::string path = ::testing::TempDir() + "/members.txt";
  std::ofstream(path) << "# two members\n  n1/1  \n\nn2 # the second\n";
  const auto lines = ReadMemberFile(path);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, ElementsAre("n1/1", "n2"));
  std::remove(path.c_str());
  EXPECT_EQ(ReadMemberFile(path).status().message(),
            "cannot open " + path + ": No such file or directory");
}

}  // namespace
}  // namespace coppice::member_file_test
