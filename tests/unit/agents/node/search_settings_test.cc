#include "agents/node/search_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace coppice::search_settings_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SearchSettings Good() {
  SearchSettings settings;
  settings.command = {"mpirun", "--hostfile", "{hostfile}", "search", "--job={job}", "{seed}"};
  settings.as_user = {"sudo", "-n", "-u", "#{uid}"};
  return settings;
}

std::string ErrorOf(const SearchSettings& settings) {
  const absl::Status status = CheckSearchSettings(settings);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(SearchSettingsTest, PlaceholdersAreWordsOrPartsOfThem) {
  const SearchWords values = {{"{job}", "7"}, {"{application}", "a/{job}"}, {"{seed}", ""}};
  EXPECT_THAT(
      FillWords({"x", "{job}", "--job={job},{job}", "{seed}", "{}", "{application}"}, values),
      ElementsAre("x", "7", "--job=7,7", "", "{}", "a/{job}"));  // filled in once
  EXPECT_THAT(FillWords({}, values), IsEmpty());
  EXPECT_TRUE(HasWord({"x", "a{uid}b"}, "{uid}"));
  EXPECT_FALSE(HasWord({"uid", "{ui", "d}"}, "{uid}"));
}

TEST(SearchSettingsTest, WhatIsOffOrWholeIsGood) {
  EXPECT_TRUE(CheckSearchSettings({}).ok());
  EXPECT_TRUE(CheckSearchSettings(Good()).ok());
  SearchSettings own = Good();
  own.as_user = {};
  EXPECT_TRUE(CheckSearchSettings(own).ok());
  own.grace = milliseconds(0);
  own.max_budget = hours(24);
  EXPECT_TRUE(CheckSearchSettings(own).ok());
}

TEST(SearchSettingsTest, CommandsThatCannotWorkAreNamed) {
  SearchSettings settings = Good();
  settings.command = {"search", "--job", "7"};
  EXPECT_THAT(ErrorOf(settings), HasSubstr("search.command: no word of it has {job}"));
  settings.command = {"", "{job}"};
  EXPECT_THAT(ErrorOf(settings), HasSubstr("search.command: its first word is empty"));
  for (const char* word : {"{jobs}", "${HOME}", "{", "x{job}{y}"}) {
    settings.command = {"search", "{job}", word};
    EXPECT_THAT(ErrorOf(settings), HasSubstr("search.command: \"" + std::string(word) + "\""));
  }
  settings.command = {};
  EXPECT_THAT(ErrorOf(settings), HasSubstr("search.as_user: there is no search.command"));
}

// Without the uid in it everybody's search would run as whoever the agent is.
TEST(SearchSettingsTest, AnotherUserIsNamedByTheUid) {
  SearchSettings settings = Good();
  settings.as_user = {"sudo", "-u", "nobody"};
  EXPECT_THAT(ErrorOf(settings), HasSubstr("search.as_user: no word of it has {uid}"));
  settings.as_user = {"", "{uid}"};
  EXPECT_THAT(ErrorOf(settings), HasSubstr("search.as_user: its first word"));
  settings.as_user = {"sudo", "{uid}", "{job}"};
  EXPECT_THAT(ErrorOf(settings), HasSubstr("search.as_user: \"{job}\""));
}

TEST(SearchSettingsTest, BoundsHaveBounds) {
  for (const milliseconds time : {milliseconds(0), milliseconds(hours(24)) + milliseconds(1)}) {
    SearchSettings settings = Good();
    settings.max_budget = time;
    EXPECT_THAT(ErrorOf(settings), HasSubstr("search.max_budget"));
  }
  SearchSettings settings = Good();
  settings.grace = hours(25);
  EXPECT_THAT(ErrorOf(settings), HasSubstr("search.grace"));
  for (const size_t count : {size_t{0}, size_t{65}}) {
    settings = Good();
    settings.at_once = count;
    EXPECT_THAT(ErrorOf(settings), HasSubstr("search.at_once"));
  }
}

}  // namespace
}  // namespace coppice::search_settings_test
