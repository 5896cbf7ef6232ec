// Nodes as the command line names them.
#include <cstdio>
#include <fstream>
#include <string>

#include "client/cli/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coppice::node_words_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ReadNodeWords, TakesFilesAndLists) {
  const std::string path = ::testing::TempDir() + "/node_words.txt";
  std::ofstream(path) << "# two lines\nn[1-2]\n n7  # one\n";
  EXPECT_THAT(*ReadNodeWords(path), ElementsAre("n[1-2]", "n7"));
  EXPECT_THAT(*ExpandNodeWords(*ReadNodeWords(path)), ElementsAre("n1", "n2", "n7"));
  std::remove(path.c_str());
  EXPECT_THAT(std::string(ReadNodeWords(path).status().message()), HasSubstr("cannot open"));
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
