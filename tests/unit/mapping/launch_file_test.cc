// The files for launchers, line by line, and the names that they cannot hold.
#include "daemon/mapping/output/mapping_answer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/text/option_words.h"

namespace coppice::launch_file_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Slots 0..4 on hosts a, b, a, a, c; ranks 0..3 in slots 3, 0, 1, 2.
std::string Text(LaunchFormat format) {
  return LaunchText(format, {"a", "b", "a", "a", "c"}, {3, 0, 1, 2}).value();
}

TEST(LaunchText, EveryFormat) {
  EXPECT_EQ(Text(LaunchFormat::kPermutation), "3\n0\n1\n2\n");
  EXPECT_EQ(Text(LaunchFormat::kRankfile),
            "rank 0=a slot=2\nrank 1=a slot=0\nrank 2=b slot=0\nrank 3=a slot=1\n");
  EXPECT_EQ(Text(LaunchFormat::kHostfile), "a\na\nb\na\n");
  EXPECT_EQ(Text(LaunchFormat::kMachinefile), "a:2\nb:1\na:1\n");
  EXPECT_EQ(Text(LaunchFormat::kSlurm), "a\na\nb\na\n");
}

TEST(LaunchText, NeedsNamesThatFit) {
  EXPECT_TRUE(LaunchText(LaunchFormat::kPermutation, {}, {1, 0}).ok());
  const absl::Status none = LaunchText(LaunchFormat::kSlurm, {}, {1, 0}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()), HasSubstr("no host names"));
  for (const char* name : {"", "a b", "a:1", "a=b", "a#", "a,b", "n[1-2]", "\x7f", "caf\xc3\xa9"}) {
    const absl::Status status = LaunchText(LaunchFormat::kRankfile, {name, "x"}, {0, 1}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << name;
    // A host without ranks is not written.
    EXPECT_TRUE(LaunchText(LaunchFormat::kRankfile, {name, "x"}, {1}).ok()) << name;
  }
  EXPECT_TRUE(LaunchText(LaunchFormat::kRankfile, {"node-17.ib0_x"}, {0}).ok());
}

TEST(LaunchFormat, NamesAreThoseOfTheCommandLine) {
  EXPECT_THAT(LaunchFormatNames(),
              ElementsAre("permutation", "rankfile", "hostfile", "machinefile", "slurm"));
  for (const std::string& name : LaunchFormatNames()) EXPECT_TRUE(ParseLaunchFormat(name));
  EXPECT_FALSE(ParseLaunchFormat("pbs"));
}

}  // namespace
}  // namespace coppice::launch_file_test
