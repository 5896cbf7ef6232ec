#include "agents/node/search_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace coppice::search_request_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uid_t kOwn = 990, kOther = 1000;

SearchSettings Settings(bool serves_others) {
  SearchSettings settings;
  settings.command = {"search", "{job}"};
  if (serves_others) settings.as_user = {"sudo", "#{uid}"};
  settings.max_budget = std::chrono::milliseconds(2000);
  return settings;
}

LocalCaller Caller(uid_t uid) { return {uid, 1, std::to_string(uid)}; }

v1::SearchOrderRequest Request() {
  v1::SearchOrderRequest request;
  request.set_job_id("7");
  request.set_application("lammps/melt");
  request.set_budget_ms(2000);
  return request;
}

absl::Status Check(const v1::SearchOrderRequest& request) {
  return CheckSearchRequest(Settings(false), Caller(kOwn), kOwn, request);
}

TEST(SearchRequestTest, WhoMayAsk) {
  const auto request = Request();
  EXPECT_TRUE(CheckSearchRequest(Settings(false), Caller(kOwn), kOwn, request).ok());
  EXPECT_TRUE(CheckSearchRequest(Settings(true), Caller(kOther), kOwn, request).ok());
  EXPECT_TRUE(CheckSearchRequest(Settings(true), Caller(kOwn), kOwn, request).ok());
  for (const uid_t uid : {kOther, uid_t{0}}) {
    const absl::Status status = CheckSearchRequest(Settings(false), Caller(uid), kOwn, request);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(status.message()), HasSubstr("search.as_user"));
  }
  const absl::Status off = CheckSearchRequest({}, Caller(kOther), kOwn, request);
  EXPECT_EQ(off.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(off.message()), HasSubstr("search.command"));
}

// Nothing of a request becomes an option, a second word, or a placeholder.
TEST(SearchRequestTest, WhatMayBeAsked) {
  for (const char* id : {"", "0", "-1", "07", "7 8", "--job", "{uid}", "99999999999999999999"}) {
    auto request = Request();
    request.set_job_id(id);
    EXPECT_EQ(Check(request).code(), absl::StatusCode::kInvalidArgument) << id;
  }
  for (const std::string& name :
       {std::string(), std::string("--out=/x"), std::string("-"), std::string("a b"),
        std::string("a\nb"), std::string("a;b"), std::string("{uid}"), std::string("a=b"),
        std::string("a\0b", 3), std::string(129, 'a'), std::string("\xc3\xa4")}) {
    auto request = Request();
    request.set_application(name);
    EXPECT_EQ(Check(request).code(), absl::StatusCode::kInvalidArgument) << name;
  }
  for (const std::string& name :
       {std::string("a"), std::string("a-b+c@d.e_f/G/9"), std::string(128, 'a')}) {
    auto request = Request();
    request.set_application(name);
    EXPECT_TRUE(Check(request).ok()) << name;
  }
}

TEST(SearchRequestTest, BudgetsAreBounded) {
  for (const uint32_t budget : {0u, 2001u, ~0u}) {
    auto request = Request();
    request.set_budget_ms(budget);
    const absl::Status status = Check(request);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("search.max_budget"));
  }
  auto request = Request();
  request.set_budget_ms(1);
  EXPECT_TRUE(Check(request).ok());
}

TEST(SearchRequestTest, Words) {
  v1::GuardedSearch search;
  *search.mutable_request() = Request();
  search.set_server("head:1");
  search.set_agent("/a");
  EXPECT_THAT(FillWords({"{job}", "{application}", "{budget}", "{seed}", "{uid}", "{server}",
                         "{agent}", "{hostfile}"},
                        WordsOf(search, kOther)),
              ElementsAre("7", "lammps/melt", "2000ms", "1", "1000", "head:1", "/a", "{hostfile}"));
  search.mutable_request()->set_seed(~uint64_t{0});
  EXPECT_THAT(FillWords({"{seed}"}, WordsOf(search, kOther)), ElementsAre("18446744073709551615"));
}

}  // namespace
}  // namespace coppice::search_request_test
