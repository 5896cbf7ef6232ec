#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/manager/requests.h"

namespace coppice::named_requests_test {
namespace {

using absl::StatusCode;
using Requests = NamedRequests<JobId, std::vector<JobId>>;

class NamedRequestsTest : public testing::Test {
 protected:
  // Whether the caller is to carry it out; what it was answered is in answer_ otherwise.
  bool Begin(const std::vector<Requests::Asked>& asked, absl::Status may_begin = {}) {
    answer_.reset();
    Requests::Callback done = [this](absl::StatusOr<std::vector<JobId>> answer) {
      EXPECT_TRUE(mutex_.try_lock()) << "called with the lock";
      mutex_.unlock();
      answer_ = std::move(answer);
    };
    const auto made = [](const std::vector<JobId>& ids) { return ids; };
    return requests_.Begin(
        std::unique_lock(mutex_), asked, made, [&] { return may_begin; }, done);
  }
  bool Begin(const std::string& name, uint64_t fingerprint) {
    return Begin({{name, name, fingerprint}});
  }
  StatusCode Code() const { return answer_.value().status().code(); }

  Requests requests_;
  std::mutex mutex_;
  std::optional<absl::StatusOr<std::vector<JobId>>> answer_;
};

TEST_F(NamedRequestsTest, GoesFromNoneToUnderWayToDoneAndBack) {
  EXPECT_TRUE(Begin("a", 1));
  EXPECT_FALSE(Begin("a", 2));
  EXPECT_EQ(Code(), StatusCode::kAlreadyExists);
  EXPECT_FALSE(Begin("a", 1));
  EXPECT_FALSE(answer_.has_value()) << "waits";
  auto waiters = requests_.Succeed("a", JobId(7));
  ASSERT_EQ(waiters.size(), 1u);
  waiters[0](std::vector{JobId(7)});
  EXPECT_THAT(**answer_, testing::ElementsAre(JobId(7)));
  EXPECT_FALSE(Begin("a", 1));
  EXPECT_THAT(**answer_, testing::ElementsAre(JobId(7)));
  EXPECT_FALSE(Begin("a", 2));
  EXPECT_EQ(Code(), StatusCode::kAlreadyExists);
  requests_.Forget("a");
  EXPECT_TRUE(Begin("a", 2));
}

TEST_F(NamedRequestsTest, FailureFreesTheName) {
  EXPECT_TRUE(Begin("a", 1));
  EXPECT_FALSE(Begin("a", 1));
  EXPECT_EQ(requests_.Fail("a").size(), 1u);
  EXPECT_TRUE(Begin("a", 2));
}

TEST_F(NamedRequestsTest, TheEmptyNameNamesNothing) {
  EXPECT_TRUE(Begin("", 1));
  EXPECT_TRUE(Begin("", 1));
  EXPECT_TRUE(requests_.Succeed("", JobId(7)).empty());
  EXPECT_TRUE(requests_.Fail("").empty());
  EXPECT_TRUE(Begin("", 2));
}

TEST_F(NamedRequestsTest, WhoMayNotBeginLeavesNothing) {
  EXPECT_FALSE(Begin({{"a", "a", 1}}, absl::UnavailableError("no fabric")));
  EXPECT_EQ(Code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Begin("a", 2));
  requests_.Succeed("a", JobId(7));
  // It is not asked of what was carried out.
  EXPECT_FALSE(Begin({{"a", "a", 2}}, absl::UnavailableError("no fabric")));
  EXPECT_THAT(**answer_, testing::ElementsAre(JobId(7)));
}

TEST_F(NamedRequestsTest, OfSeveralAllOrNone) {
  EXPECT_TRUE(Begin({{"me\na", "a", 1}, {"", "", 2}, {"me\nb", "b", 3}}));
  EXPECT_FALSE(Begin({{"me\nc", "c", 1}, {"me\na", "a", 1}}));
  EXPECT_EQ(Code(), StatusCode::kAborted);
  EXPECT_THAT(std::string(answer_->status().message()),
              testing::HasSubstr("requests[1]: request_id a is being carried out"));
  requests_.Succeed("me\na", JobId(7));
  requests_.Succeed("me\nb", JobId(8));
  EXPECT_FALSE(Begin({{"me\na", "a", 1}, {"me\nb", "b", 3}}));
  EXPECT_THAT(**answer_, testing::ElementsAre(JobId(7), JobId(8)));
  EXPECT_FALSE(Begin({{"me\na", "a", 1}, {"me\nb", "b", 4}}));
  EXPECT_EQ(Code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(answer_->status().message()),
              testing::HasSubstr("requests[1]: request_id b was used with other content"));
  EXPECT_FALSE(Begin({{"me\na", "a", 1}, {"me\nc", "c", 1}}));
  EXPECT_EQ(Code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(Begin("me\nc", 5)) << "left nothing";
}

TEST_F(NamedRequestsTest, WhoWaitsIsNotToldThatItWentAway) {
  std::vector<StatusCode> told;
  const auto note = [&](absl::StatusOr<std::vector<JobId>> answer) {
    told.push_back(answer.status().code());
  };
  std::vector<Requests::Callback> waiters;
  waiters.emplace_back(note);
  Requests::Tell(std::move(waiters), absl::CancelledError("gone"), note);
  EXPECT_THAT(told, testing::ElementsAre(StatusCode::kAborted, StatusCode::kCancelled));
}

}  // namespace
}  // namespace coppice::named_requests_test
