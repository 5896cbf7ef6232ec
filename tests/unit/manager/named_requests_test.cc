#include "daemon/manager/named_requests.h"

#include <gtest/gtest.h>

namespace coppice::named_requests_test {
namespace {

using Requests = NamedRequests<JobId, JobView>;

TEST(NamedRequestsTest, GoesFromNoneToUnderWayToDoneAndBack) {
  Requests requests;
  EXPECT_EQ(Requests::Turn::kBegin, requests.Peek("a", 1));
  requests.Begin("a", 1);
  EXPECT_EQ(Requests::Turn::kWait, requests.Peek("a", 1));
  EXPECT_EQ(Requests::Turn::kMisused, requests.Peek("a", 2));
  int answers = 0;
  requests.Wait("a", [&](absl::StatusOr<JobView>) { ++answers; });
  for (auto& waiter : requests.Succeed("a", JobId(7))) waiter(JobView());
  EXPECT_EQ(1, answers);
  EXPECT_EQ(Requests::Turn::kDone, requests.Peek("a", 1));
  EXPECT_EQ(Requests::Turn::kMisused, requests.Peek("a", 2));
  EXPECT_EQ(JobId(7), requests.IdOf("a"));
  requests.Forget("a");
  EXPECT_EQ(Requests::Turn::kBegin, requests.Peek("a", 2));
}

TEST(NamedRequestsTest, FailureFreesTheName) {
  Requests requests;
  requests.Begin("a", 1);
  requests.Wait("a", [](absl::StatusOr<JobView>) {});
  EXPECT_EQ(1u, requests.Fail("a").size());
  EXPECT_EQ(Requests::Turn::kBegin, requests.Peek("a", 2));
}

TEST(NamedRequestsTest, TheEmptyNameNamesNothing) {
  Requests requests;
  requests.Begin("", 1);
  EXPECT_EQ(Requests::Turn::kBegin, requests.Peek("", 1));
  EXPECT_TRUE(requests.Succeed("", JobId(7)).empty());
  EXPECT_TRUE(requests.Fail("").empty());
}

}  // namespace
}  // namespace coppice::named_requests_test
