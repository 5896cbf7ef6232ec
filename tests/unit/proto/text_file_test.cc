#include "proto/text/text_file.h"

#include <cstdio>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coppice::text_file_test {
namespace {

using ::testing::HasSubstr;

TEST(ReadTextFile, NamesTheFile) {
  const absl::Status absent = ReadTextFile("/nonexistent/members").status();
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(absent.message()), HasSubstr("/nonexistent/members"));
  const absl::Status folder = ReadTextFile("/").status();
  EXPECT_TRUE(absl::IsInvalidArgument(folder)) << folder;
  EXPECT_THAT(std::string(folder.message()), HasSubstr("/: not a regular file"));
}

// Read to its limit it would be a gigabyte of zeros.
TEST(ReadTextFile, RefusesADeviceUnread) {
  const absl::Status status = ReadTextFile("/dev/zero").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/zero: not a regular file"));
}

TEST(LinesOf, LeavesOutWhatSaysNothing) {
  const std::vector<TextLine> lines = LinesOf("\xef\xbb\xbf# two\r\n\r\n a  \r\n#\nb # c\nd#e");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].text, "a");
  EXPECT_EQ(lines[0].number, 3u);
  EXPECT_EQ(WithoutComment(lines[1].text), "b");
  EXPECT_EQ(lines[1].number, 5u);
  EXPECT_EQ(WithoutComment(lines[2].text), "d#e");
}

TEST(WriteTextFile, WritesAllOrSaysSo) {
  const std::string path = ::testing::TempDir() + "/text_file.txt";
  ASSERT_TRUE(WriteTextFile(path, "a longer text\n").ok());
  ASSERT_TRUE(WriteTextFile(path, "text\n").ok());
  EXPECT_EQ(*ReadTextFile(path), "text\n");
  std::remove(path.c_str());
  const absl::Status absent = WriteTextFile("/nonexistent/x", "");
  EXPECT_TRUE(absl::IsNotFound(absent)) << absent;
  EXPECT_THAT(std::string(absent.message()), HasSubstr("cannot open /nonexistent/x"));
  const absl::Status folder = WriteTextFile("/", "");
  EXPECT_TRUE(absl::IsDataLoss(folder)) << folder;
  const absl::Status full = WriteTextFile("/dev/full", "x");
  EXPECT_TRUE(absl::IsDataLoss(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("cannot write all of /dev/full"));
}

TEST(CheckMayWrite, FailsAsWritingWouldAndChangesNothing) {
  const std::string path = ::testing::TempDir() + "/may_write.txt";
  EXPECT_TRUE(CheckMayWrite(path).ok());
  EXPECT_TRUE(absl::IsNotFound(ReadTextFile(path).status()));
  ASSERT_TRUE(WriteTextFile(path, "text\n").ok());
  EXPECT_TRUE(CheckMayWrite(path).ok());
  EXPECT_EQ(*ReadTextFile(path), "text\n");
  std::remove(path.c_str());
  EXPECT_TRUE(CheckMayWrite("-").ok());
  EXPECT_TRUE(CheckMayWrite("here.txt").ok());
  EXPECT_EQ(CheckMayWrite("/nonexistent/x"), WriteTextFile("/nonexistent/x", ""));
  EXPECT_EQ(CheckMayWrite("/"), WriteTextFile("/", ""));
}

}  // namespace
}  // namespace coppice::text_file_test
