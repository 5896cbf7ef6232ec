// Lists of nodes on the command line, beside the daemon's reader of the same grammar.
#include <cstdio>
#include <fstream>
#include <random>
#include <string>

#include "client/cli/words.h"
#include "daemon/fabric/node_list.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"

namespace coppice::node_words_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ExpandNodeList, IsReadAsSlurmWritesIt) {
  EXPECT_THAT(*ExpandNodeList("n[001-003,130],login1"),
              ElementsAre("n001", "n002", "n003", "n130", "login1"));
  EXPECT_THAT(*ExpandNodeList(" rack[1-2]n[9-10]/1 "),
              ElementsAre("rack1n9/1", "rack1n10/1", "rack2n9/1", "rack2n10/1"));
  EXPECT_THAT(*ExpandNodeList(" "), ElementsAre());
}

TEST(ExpandNodeList, SaysWhatIsWrong) {
  const auto refused = [](const std::string& text, const std::string& words) {
    EXPECT_THAT(std::string(ExpandNodeList(text).status().message()), HasSubstr(words)) << text;
  };
  refused("n[1-", "brackets do not pair");
  refused("n]1", "brackets do not pair");
  refused("n[[1]]", "brackets do not pair");
  refused("a,,b", "no name between commas");
  refused("n[1-x]", "brackets hold numbers");
  refused("n[]", "brackets hold numbers");
  refused("n[3-1]", "ends before it begins");
  refused("n[1-04]", "zeros in front");
  refused("n[0-99999999]", "more than 1048576 names");
  refused("n[0-1023]x[0-1023]y[0-1]", "more than 1048576 names");
}

TEST(ExpandNodeList, AgreesWithTheDaemon) {
  std::mt19937_64 random(TestSeed());
  const std::string alphabet = "n0123-,[] a/";
  int read = 0;
  for (int i = 0; i < (FullTier() ? 1'000'000 : 60'000); ++i) {
    std::string text;
    if (random() % 2 == 0) text = "n[" + std::to_string(random() % 20) + "-";
    for (uint64_t left = random() % 12; left > 0; --left) {
      text += alphabet[random() % alphabet.size()];
    }
    const auto here = ExpandNodeList(text), there = ParseNodeList(text);
    ASSERT_EQ(here.ok(), there.ok()) << text << "\n" << here.status() << "\n" << there.status();
    if (!here.ok()) continue;
    ASSERT_EQ(*here, *there) << text;
    read += here->size() > 1 ? 1 : 0;
  }
  EXPECT_GT(read, 100);
}

TEST(ReadNodeWords, TakesFilesAndLists) {
  const std::string path = ::testing::TempDir() + "/node_words.txt";
  std::ofstream(path) << "# two lines\nn[1-2]\n n7  # one\n";
  EXPECT_THAT(*ReadNodeWords(path), ElementsAre("n[1-2]", "n7"));
  EXPECT_THAT(*ExpandNodeWords(*ReadNodeWords(path)), ElementsAre("n1", "n2", "n7"));
  std::remove(path.c_str());
  EXPECT_THAT(std::string(ReadNodeWords(path).status().message()), HasSubstr("cannot be read"));
  EXPECT_THAT(*ReadNodeWords("n[1-4]/1,a"), ElementsAre("n[1-4]/1,a"));
  EXPECT_THAT(*ReadNodeWords("n7"), ElementsAre("n7"));
}

// There is no file of that name here, and whoever names a port means no file.
TEST(ReadNodeWords, AnEndpointIsNoFile) {
  EXPECT_THAT(*ReadNodeWords("n54/1"), ElementsAre("n54/1"));
  EXPECT_THAT(*ReadNodeWords("n54/1@mlx5_1"), ElementsAre("n54/1@mlx5_1"));
  for (const char* path : {"./1", "../1", "/1", "hosts/list", "a/b/1"}) {
    EXPECT_TRUE(absl::IsNotFound(ReadNodeWords(path).status())) << path;
  }
}

TEST(ReadNodeWords, ADeviceIsRefusedUnread) {
  const absl::Status status = ReadNodeWords("/dev/zero").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace coppice::node_words_test
