#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>
#include <variant>

#include "daemon/rpc/listen/unix_users.h"
#include "google/rpc/error_details.pb.h"
#include "proto/status_conversion.h"
#include "tests/support/passing_store.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::jobs_service_test {
namespace {

using ::testing::HasSubstr;
using JobsStub = v1::Jobs::Stub;
using FabricStub = v1::Fabric::Stub;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

class JobsServiceTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::Job> Register(const v1::RegisterJobRequest& request) {
    return loopback_.Call(loopback_.jobs(), &JobsStub::RegisterJob, request);
  }
  absl::StatusOr<v1::Job> Get(const std::string& id) {
    v1::GetJobRequest request;
    request.set_id(id);
    return loopback_.Call(loopback_.jobs(), &JobsStub::GetJob, request);
  }
  absl::StatusOr<v1::EndJobResponse> End(const std::string& id) {
    v1::EndJobRequest request;
    request.set_id(id);
    return loopback_.Call(loopback_.jobs(), &JobsStub::EndJob, request);
  }
  std::string HostOf(int position) {
    const auto nodes =
        loopback_.Call(loopback_.fabric(), &FabricStub::ListNodes, v1::ListNodesRequest());
    return nodes->nodes(position).host();
  }
  Loopback loopback_;
};

TEST_F(JobsServiceTest, RegistersInRankOrderAndReadsBack) {
  v1::RegisterJobRequest request;
  request.set_display_name("solver");
  for (const int position : {3, 1, 1}) request.add_endpoints(HostOf(position));
  request.mutable_lease()->set_seconds(30);
  const auto job = Register(request);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->rank_count(), 3);
  EXPECT_EQ(job->owner(), UnixUsers("none").Find(geteuid()).name);
  EXPECT_EQ(job->state(), v1::JOB_STATE_ACTIVE);
  EXPECT_EQ(job->lease().seconds(), 30);
  ASSERT_EQ(job->endpoints_size(), 3);
  EXPECT_EQ(job->endpoints(0), HostOf(3) + "/1");
  EXPECT_EQ(job->endpoints(1), job->endpoints(2));

  loopback_.clock().Advance(absl::Seconds(10));
  const auto read = Get(job->id());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->lease_left().seconds(), 20);
  EXPECT_EQ(read->display_name(), "solver");
  EXPECT_EQ(read->endpoints_size(), 3);
}

TEST_F(JobsServiceTest, APartitionIsANumberOfFifteenBits) {
  v1::RegisterJobRequest request;
  request.set_all_endpoints(true);
  request.set_partition(32768);
  EXPECT_EQ(Register(request).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(Register(request).status()), HasSubstr("partition"));
  request.set_partition(32767);  // here no port tells its table
  EXPECT_EQ(Register(request).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobsServiceTest, CarriesOutARequestIdOnce) {
  v1::RegisterJobRequest request;
  request.set_request_id("once");
  request.set_all_endpoints(true);
  const auto first = Register(request);
  const auto second = Register(request);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->id(), second->id());
  request.set_display_name("other content");
  EXPECT_EQ(Register(request).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(JobsServiceTest, RefusesBadRegistrations) {
  v1::RegisterJobRequest request;
  EXPECT_EQ(Register(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.add_endpoints("nowhere");
  const absl::Status unknown = Register(request).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(unknown), HasSubstr("nowhere"));
  request.clear_endpoints();
  request.set_all_endpoints(true);
  request.set_request_id(std::string(129, 'x'));
  EXPECT_EQ(Register(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.clear_request_id();
  for (const int64_t seconds : {int64_t{0}, int64_t{-1}, int64_t{86401}}) {
    request.mutable_lease()->set_seconds(seconds);
    EXPECT_EQ(Register(request).status().code(), absl::StatusCode::kInvalidArgument) << seconds;
  }
  request.mutable_lease()->set_seconds(5);
  request.mutable_lease()->set_nanos(2'000'000'000);
  EXPECT_EQ(Register(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JobsServiceTest, NamesBadAndUnknownIds) {
  for (const char* id : {"", "x", "0", "-1", "1 ", "99999999999999999999"}) {
    EXPECT_EQ(Get(id).status().code(), absl::StatusCode::kInvalidArgument) << id;
  }
  EXPECT_EQ(Get("77").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(Get("77").status()), HasSubstr("77"));
  EXPECT_EQ(End("77").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobsServiceTest, EndsOnceAndAgain) {
  const std::string id = loopback_.RegisterAll();
  EXPECT_TRUE(End(id).ok());
  const auto again = End(id);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->released_trees(), 0);
  const auto job = Get(id);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::JOB_STATE_ENDED);
}

TEST_F(JobsServiceTest, ListsPageByPage) {
  for (int i = 0; i < 5; ++i) loopback_.RegisterAll();
  v1::ListJobsRequest request;
  request.set_page_size(2);
  std::vector<std::string> ids;
  int pages = 0;
  do {
    const auto page = loopback_.Call(loopback_.jobs(), &JobsStub::ListJobs, request);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->jobs_size(), 2);
    for (const v1::Job& job : page->jobs()) ids.push_back(job.id());
    request.set_page_token(page->next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 3);
  EXPECT_THAT(ids, ::testing::ElementsAre("1", "2", "3", "4", "5"));

  request.set_page_token("nonsense");
  EXPECT_EQ(loopback_.Call(loopback_.jobs(), &JobsStub::ListJobs, request).status().code(),
            absl::StatusCode::kInvalidArgument);
  request.clear_page_token();
  request.set_page_size(-1);
  EXPECT_EQ(loopback_.Call(loopback_.jobs(), &JobsStub::ListJobs, request).status().code(),
            absl::StatusCode::kInvalidArgument);
}

class KeepAliveTest : public JobsServiceTest {
 protected:
  void SetUp() override {
    Loopback::SetDeadline(context_);
    stream_ = loopback_.jobs().KeepAlive(&context_);
  }
  v1::KeepAliveResponse Renew(const std::string& id) {
    v1::KeepAliveRequest request;
    request.set_id(id);
    v1::KeepAliveResponse response;
    EXPECT_TRUE(stream_->Write(request));
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::KeepAliveRequest, v1::KeepAliveResponse>> stream_;
};

TEST_F(KeepAliveTest, RenewsManyLeasesOnOneStream) {
  const std::string first = loopback_.RegisterAll(), second = loopback_.RegisterAll();
  loopback_.clock().Advance(absl::Seconds(50));
  EXPECT_EQ(Renew(first).lease().seconds(), 60);
  loopback_.clock().Advance(absl::Seconds(20));
  loopback_.manager().ExpireLeases();
  EXPECT_TRUE(End(second).ok());  // waits for the end that is under way
  const v1::KeepAliveResponse alive = Renew(first);
  EXPECT_EQ(alive.id(), first);
  EXPECT_EQ(alive.state(), v1::JOB_STATE_ACTIVE);
  const v1::KeepAliveResponse expired = Renew(second);
  EXPECT_EQ(expired.state(), v1::JOB_STATE_EXPIRED);
  EXPECT_EQ(expired.lease().seconds(), 0);
  EXPECT_EQ(Renew("4711").state(), v1::JOB_STATE_UNSPECIFIED);
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
}

TEST_F(KeepAliveTest, EndsAStreamWithABadId) {
  v1::KeepAliveRequest request;
  request.set_id("seven");
  ASSERT_TRUE(stream_->Write(request));
  v1::KeepAliveResponse response;
  EXPECT_FALSE(stream_->Read(&response));
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(KeepAliveTest, IsEndedByAShutdown) {
  Renew(loopback_.RegisterAll());
  loopback_.server().Shutdown(absl::InfiniteDuration());  // must not wait for the stream
  v1::KeepAliveResponse response;
  EXPECT_FALSE(stream_->Read(&response));
  const absl::Status status = Loopback::ToAbsl(stream_->Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(GetDetail<google::rpc::RetryInfo>(status).has_value());
}

// As a disk that has become full refuses (sqlite_connection.cc).
class FullDisk final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  void Submit(Mutation mutation, Done done) override {
    const bool is_grant = std::holds_alternative<GrantTree>(mutation);
    if (!is_grant) return PassingStore::Submit(std::move(mutation), std::move(done));
    done(absl::UnavailableError("database coppice.db: disk full (database or disk is full)"));
  }
};

TEST(TreesOnAFullDisk, AreUnavailableWithRetryInfo) {
  ScratchStore below;
  FullDisk store(&below);
  Loopback loopback({.store = &store});
  v1::CreateTreeRequest request;
  request.set_job_id(loopback.RegisterAll());
  const absl::Status status =
      loopback.Call(loopback.trees(), &v1::Trees::Stub::CreateTree, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("disk full"));
  const auto retry = GetDetail<google::rpc::RetryInfo>(status);
  ASSERT_TRUE(retry.has_value());
  EXPECT_GT(retry->retry_delay().seconds(), 0);
}

TEST(JobsWithoutFabric, AreUnavailableWithRetryInfo) {
  Loopback loopback({.fabric = "file:/nonexistent/net"});
  v1::RegisterJobRequest request;
  request.set_all_endpoints(true);
  const absl::Status status =
      loopback.Call(loopback.jobs(), &JobsStub::RegisterJob, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  const auto retry = GetDetail<google::rpc::RetryInfo>(status);
  ASSERT_TRUE(retry.has_value());
  EXPECT_GT(retry->retry_delay().seconds(), 0);
}

}  // namespace
}  // namespace coppice::jobs_service_test
