#include "agents/node/search_outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace coppice::search_outcome_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Of waitpid(2).
int Exited(int status) { return status << 8; }

TEST(SearchOutcomeTest, WhatTheSearchSaidBeforeWhatItsLauncherSays) {
  EXPECT_EQ(LastWords("loading\ncoppice-search: NOT_FOUND: pattern x\n-----\nmpirun noticed that "
                      "a process\n-----\n"),
            "coppice-search: NOT_FOUND: pattern x");
  EXPECT_EQ(LastWords("\n----\n  mpirun: no such host \n\nn7\n"), "mpirun: no such host; n7");
  EXPECT_EQ(LastWords(""), "");
  EXPECT_EQ(LastWords("----\n====\n"), "");
}

// They go into a message of protobuf, a log and a terminal.
TEST(SearchOutcomeTest, WordsArePrintableAndFew) {
  EXPECT_EQ(LastWords("a\x1b[31m\xff\tb\r\n"), "a?[31m??b");
  const std::string words = LastWords(std::string(4000, 'x') + "end");
  EXPECT_THAT(words, SizeIs(503));
  EXPECT_THAT(words, EndsWith("xend"));
  EXPECT_EQ(CommandText({"a", "b\n", ""}), "a b? ");
  EXPECT_THAT(CommandText({std::string(4000, 'x')}), SizeIs(243));
}

TEST(SearchOutcomeTest, HowItEnded) {
  EXPECT_TRUE(OutcomeOf("c", Exited(0), "chatter").ok());
  const absl::Status failed = OutcomeOf("run 7", Exited(3), "why\n");
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(failed.message(), "\"run 7\" ended with exit status 3: why");
  EXPECT_EQ(OutcomeOf("run 7", Exited(3), "").message(), "\"run 7\" ended with exit status 3");
  const absl::Status missing = OutcomeOf("run 7", Exited(127), "run: no such file");
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("search.command"));
  const absl::Status killed = OutcomeOf("run 7", SIGKILL, "");
  EXPECT_EQ(killed.code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(std::string(killed.message()), HasSubstr("signal 9"));
}

}  // namespace
}  // namespace coppice::search_outcome_test
