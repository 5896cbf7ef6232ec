// Problems and orders of jobs over the wire: what a search elsewhere gets, and what comes back from
// it for the launcher.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "coppice/v1/mapping.grpc.pb.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::job_order_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;
using MappingStub = v1::Mapping::Stub;

class JobOrderTest : public ::testing::Test {
 protected:
  JobOrderTest()
      : stub_(v1::Mapping::NewStub(loopback_.Connect())), job_(loopback_.RegisterAll()) {}

  absl::StatusOr<v1::StoredOrder> Put(const std::string& job, std::vector<uint32_t> permutation) {
    v1::PutOrderRequest request;
    request.set_job_id(job);
    request.mutable_permutation()->Add(permutation.begin(), permutation.end());
    request.set_note("by hand");
    return loopback_.Call(*stub_, &MappingStub::PutOrder, request);
  }
  absl::StatusOr<v1::StoredOrder> Get(const std::string& job, const std::string& emit = "") {
    v1::GetOrderRequest request;
    request.set_job_id(job);
    request.set_emit(emit);
    return loopback_.Call(*stub_, &MappingStub::GetOrder, request);
  }

  Loopback loopback_;
  std::unique_ptr<MappingStub> stub_;
  const std::string job_;
};

TEST_F(JobOrderTest, ComesBackAsItWasPut) {
  EXPECT_EQ(Get(job_).status().code(), StatusCode::kNotFound);
  const auto put = Put(job_, {3, 1, 2, 0});
  ASSERT_TRUE(put.ok()) << put.status();
  const auto order = Get(job_);
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_THAT(order->permutation(), testing::ElementsAre(3, 1, 2, 0));
  EXPECT_EQ(order->job_id(), job_);
  EXPECT_EQ(order->note(), "by hand");
  EXPECT_EQ(order->launch_text(), "");
  EXPECT_EQ(order->create_time().seconds(), put->create_time().seconds());
  const auto emitted = Get(job_, "permutation");
  ASSERT_TRUE(emitted.ok()) << emitted.status();
  EXPECT_EQ(emitted->launch_text(), "3\n1\n2\n0\n");
  EXPECT_THAT(Get(job_, "rankfile")->launch_text(), HasSubstr("rank 0="));
}

TEST_F(JobOrderTest, RefusesByName) {
  EXPECT_EQ(Put("x", {0}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Put("77", {0}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Put(job_, {0, 0}).status().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(Put(job_, {0}).ok());
  const absl::Status status = Get(job_, "papyrus").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("papyrus"));
}

TEST_F(JobOrderTest, TellsTheProblemOfAJob) {
  v1::GetMappingProblemRequest request;
  request.mutable_task()->set_job_id(job_);
  v1::CommunicationPattern& pattern = *request.mutable_task()->mutable_pattern();
  pattern.set_rank_count(16);
  pattern.add_from(0);
  pattern.add_to(15);
  pattern.add_bytes(1000);
  const auto problem = loopback_.Call(*stub_, &MappingStub::GetMappingProblem, request);
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->pattern().rank_count(), 16);
  EXPECT_THAT(problem->pattern().bytes(), testing::ElementsAre(1000));
  EXPECT_EQ(problem->place_of_position_size(), 16);
  ASSERT_EQ(problem->distances_size(), 256);
  // Four hosts on a leaf switch: two links within it, four beyond.
  EXPECT_EQ(problem->distances(0), 0);
  EXPECT_EQ(problem->distances(1), 2);
  EXPECT_EQ(problem->distances(15), 4);
  EXPECT_EQ(problem->host_of_place_size(), 16);
  EXPECT_GT(problem->fabric_version(), 0);
  request.mutable_task()->clear_pattern();
  EXPECT_EQ(loopback_.Call(*stub_, &MappingStub::GetMappingProblem, request).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace coppice::job_order_test
