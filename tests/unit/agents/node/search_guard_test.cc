// What the guard of a search makes of a request, as whatever user it runs. That it ends what it
// starts tests/integration/agent_search_test.py shows.
#include "agents/node/search_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace coppice::search_guard_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

SearchSettings Settings() {
  SearchSettings settings;
  settings.command = {"run",   "{hostfile}", "{job}",  "{application}",
                      "{uid}", "{server}",   "{agent}"};
  settings.as_user = {"sudo", "#{uid}"};
  return settings;
}

v1::GuardedSearch Search() {
  v1::GuardedSearch search;
  search.mutable_request()->set_job_id("7");
  search.mutable_request()->set_application("app");
  search.mutable_request()->set_budget_ms(5);
  search.set_server("unix:/s");
  search.set_agent("/a");
  search.add_hosts("n1");
  return search;
}

std::string ErrorOf(const v1::GuardedSearch& search, const SearchSettings& settings = Settings()) {
  const auto words = GuardedCommand(settings, search, 1000);
  EXPECT_FALSE(words.ok());
  return std::string(words.status().message());
}

TEST(SearchGuardTest, TheCommandIsTheFilesForTheUserThatRunsIt) {
  const auto words = GuardedCommand(Settings(), Search(), 1000);
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words, ElementsAre("run", "{hostfile}", "7", "app", "1000", "unix:/s", "/a"));
}

TEST(SearchGuardTest, NothingThatItIsToldIsBelieved) {
  auto search = Search();
  search.mutable_request()->set_application("--out=/x");
  EXPECT_THAT(ErrorOf(search), StartsWith("application"));
  search = Search();
  search.mutable_request()->set_budget_ms(60'001);
  EXPECT_THAT(ErrorOf(search), StartsWith("budget"));
  EXPECT_THAT(ErrorOf(Search(), {}), HasSubstr("search.command"));
  SearchSettings wrong = Settings();
  wrong.command.push_back("{home}");
  EXPECT_THAT(ErrorOf(Search(), wrong), HasSubstr("{home}"));
  for (const char* server : {"", "nowhere", "-x:1"}) {
    search = Search();
    search.set_server(server);
    ErrorOf(search);
  }
  for (const char* agent : {"", "a.sock", "-a"}) {
    search = Search();
    search.set_agent(agent);
    EXPECT_THAT(ErrorOf(search), HasSubstr("socket")) << agent;
  }
}

// They come from the nodes themselves, and go to ssh.
TEST(SearchGuardTest, HostsAreNames) {
  for (const std::string& host :
       {std::string(), std::string("-oProxyCommand=x"), std::string("n1 slots=9"),
        std::string("n1\nn2"), std::string("n\0", 2), std::string("a@b"), std::string("a;b"),
        std::string(254, 'a'), std::string("\xc3\xa4")}) {
    auto search = Search();
    search.add_hosts(host);
    EXPECT_THAT(ErrorOf(search), StartsWith("host ")) << host;
  }
  for (const std::string& host :
       {std::string("n-1_a.b.C"), std::string("1"), std::string(253, 'a')}) {
    auto search = Search();
    search.add_hosts(host);
    EXPECT_TRUE(GuardedCommand(Settings(), search, 1000).ok()) << host;
  }
}

TEST(SearchGuardTest, InputBeginsWithItsSize) {
  const std::string input = GuardInput(Search());
  const size_t line = input.find('\n');
  ASSERT_NE(line, std::string::npos);
  EXPECT_EQ(std::to_string(input.size() - line - 1), input.substr(0, line));
  v1::GuardedSearch read;
  ASSERT_TRUE(read.ParseFromString(input.substr(line + 1)));
  EXPECT_EQ(read.hosts(0), "n1");
}

}  // namespace
}  // namespace coppice::search_guard_test
