#include "proto/text/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace coppice::log_test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(SetUpLog, NamesAnUnknownLevel) {
  EXPECT_EQ(SetUpLog("loud").message(),
            "log level \"loud\": use trace, debug, info, warning, error, critical or off");
}

// One process, one log: both forms in one test.
TEST(SetUpLog, WritesALineAnEventWithItsTimeOrForTheJournal) {
  const auto logged = [] {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(SetUpLog("info").ok());
    spdlog::debug("not told");
    spdlog::warn("two\nlines");
    spdlog::shutdown();
    return testing::internal::GetCapturedStderr();
  };
  unsetenv("JOURNAL_STREAM");
  const std::string line = logged();
  EXPECT_THAT(line, MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9:.]+[+-][0-9:]+ warning two.*lines\n"));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  struct stat info {};
  testing::internal::CaptureStderr();
  ASSERT_EQ(fstat(STDERR_FILENO, &info), 0);
  setenv("JOURNAL_STREAM", absl::StrCat(info.st_dev, ":", info.st_ino).c_str(), 1);
  ASSERT_TRUE(SetUpLog("info").ok());
  spdlog::warn("one");
  spdlog::shutdown();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("<4>one\n"));
  unsetenv("JOURNAL_STREAM");
}

}  // namespace
}  // namespace coppice::log_test
