#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "client/cli/words.h"

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
