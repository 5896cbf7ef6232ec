// BatchCreateTrees over a real connection: the order of the stream, its ends, its refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "proto/status_conversion.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::batch_service_test {
namespace {

using ::testing::HasSubstr;
using Updates = std::vector<v1::BatchCreateTreesUpdate>;

class BatchServiceTest : public ::testing::Test {
 protected:
  void SetUp() override { job_ = loopback_.RegisterAll(); }

  // Rows and columns of 4 x 4, or with `axes` only some.
  v1::BatchCreateTreesRequest Square(const std::vector<uint32_t>& axes = {}) const {
    v1::BatchCreateTreesRequest request;
    request.set_job_id(job_);
    for (int i = 0; i < 2; ++i) request.mutable_grid()->add_sizes(4);
    request.mutable_grid()->mutable_axes()->Add(axes.begin(), axes.end());
    return request;
  }
  absl::StatusOr<Updates> Grant(const v1::BatchCreateTreesRequest& request) {
    grpc::ClientContext context;
    Loopback::SetDeadline(context);
    const auto reader = loopback_.trees().BatchCreateTrees(&context, request);
    Updates updates;
    for (v1::BatchCreateTreesUpdate update; reader->Read(&update);) updates.push_back(update);
    const absl::Status status = Loopback::ToAbsl(reader->Finish());
    if (!status.ok()) return status;
    return updates;
  }
  absl::Status Refused(const v1::BatchCreateTreesRequest& request) {
    return Grant(request).status();
  }
  DaemonCounts Counts() { return loopback_.manager().Counts(); }

  Loopback loopback_;
  std::string job_;
};

TEST_F(BatchServiceTest, ProgressThenTreesThenTheSummary) {
  const auto updates = Grant(Square());
  ASSERT_TRUE(updates.ok()) << updates.status();
  size_t i = 0;
  while (i < updates->size() && (*updates)[i].has_progress()) {
    EXPECT_EQ((*updates)[i].progress().communicators(), 8);
    EXPECT_LE((*updates)[i].progress().planned(), 8);
    EXPECT_NE((*updates)[i].progress().phase(), "");
    ++i;
  }
  EXPECT_GT(i, 0);
  uint64_t entries = 0;
  for (uint32_t c = 0; c < 8; ++c, ++i) {
    ASSERT_LT(i, updates->size());
    ASSERT_TRUE((*updates)[i].has_tree());
    const v1::BatchTree& tree = (*updates)[i].tree();
    EXPECT_EQ(tree.communicator(), c);
    EXPECT_EQ(tree.tree().type(), v1::TREE_TYPE_II);
    EXPECT_EQ(tree.tree().rank_count(), 4);
    EXPECT_EQ(tree.tree().nodes().endpoints_size(), 4);
    EXPECT_NE(tree.tree().id(), "");
    entries += tree.tree().switch_count();
  }
  ASSERT_EQ(i + 1, updates->size());
  const v1::BatchSummary& summary = (*updates)[i].summary();
  EXPECT_EQ(summary.communicators(), 8);
  EXPECT_EQ(summary.granted(), 8);
  EXPECT_EQ(summary.type_i(), 0);
  EXPECT_EQ(summary.entries(), entries);
  EXPECT_EQ(summary.fabric_version(), 1);
  EXPECT_GT(summary.most_packets(), 0);
  EXPECT_NE(summary.most_loaded(), "");
  EXPECT_EQ(Counts().entries_taken, entries);
  EXPECT_EQ(Counts().granted_trees, 8);
}

TEST_F(BatchServiceTest, ListsSummariesAndRetries) {
  v1::BatchCreateTreesRequest request;
  request.set_job_id(job_);
  request.set_request_id("solver");
  request.set_view(v1::TREE_VIEW_SUMMARY);
  request.set_operation(v1::OPERATION_BCAST);
  request.add_sizes()->set_bytes(2048);
  v1::RankRange& range = *request.add_communicators()->add_rank_ranges();
  range.set_count(4);
  range.set_stride(4);
  request.add_communicators()->add_ranks(7);
  std::vector<std::string> ids;
  for (int round = 0; round < 2; ++round) {
    const auto updates = Grant(request);
    ASSERT_TRUE(updates.ok()) << updates.status();
    std::vector<std::string> now;
    for (const v1::BatchCreateTreesUpdate& update : *updates) {
      if (!update.has_tree()) continue;
      EXPECT_FALSE(update.tree().tree().has_nodes());
      EXPECT_EQ(update.tree().tree().operation(), v1::OPERATION_BCAST);
      now.push_back(update.tree().tree().id());
    }
    EXPECT_EQ(now.size(), 2);
    if (round == 1) {
      EXPECT_EQ(now, ids);
    }
    ids = now;
  }
  request.set_accept_type_i(true);
  EXPECT_TRUE(absl::IsAlreadyExists(Refused(request)));
  request.set_validate_only(true);
  EXPECT_TRUE(Grant(request).ok());
  EXPECT_EQ(Counts().granted_trees, 2);
}

TEST_F(BatchServiceTest, FullSwitchesAreNamedAndTheLargestPartIsGranted) {
  v1::BatchCreateTreesRequest request = Square();
  for (int i = 0; i < 16; ++i) {  // sixteen trees over all leaves, twelve entries
    v1::Communicator& all = *request.add_communicators();
    for (uint32_t rank = 0; rank < 16; ++rank) all.add_ranks(rank);
  }
  request.clear_grid();
  const absl::Status refused = Refused(request);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("communicator "));
  const auto quota = GetDetail<google::rpc::QuotaFailure>(refused);
  ASSERT_TRUE(quota.has_value());
  EXPECT_GT(quota->violations_size(), 0);
  EXPECT_THAT(quota->violations(0).subject(), HasSubstr("switch:"));
  EXPECT_EQ(Counts().granted_trees, 0);
  request.set_admission(v1::BATCH_ADMISSION_LARGEST);
  const auto updates = Grant(request);
  ASSERT_TRUE(updates.ok()) << updates.status();
  const v1::BatchSummary& summary = updates->back().summary();
  EXPECT_GT(summary.granted(), 0);
  EXPECT_EQ(summary.granted() + static_cast<uint32_t>(summary.refusals_size()), 16);
  EXPECT_NE(summary.refusals(0).why_not(), "");
  EXPECT_EQ(Counts().granted_trees, summary.granted());
}

TEST_F(BatchServiceTest, APlanIsComparedWithOneByOneAndWithBounds) {
  v1::BatchCreateTreesRequest request = Square();
  request.set_compare(true);
  EXPECT_THAT(std::string(Refused(request).message()), HasSubstr("validate_only"));
  request.set_validate_only(true);
  const auto updates = Grant(request);
  ASSERT_TRUE(updates.ok()) << updates.status();
  const v1::BatchSummary& summary = updates->back().summary();
  const v1::BatchComparison& comparison = summary.comparison();
  EXPECT_EQ(comparison.batch().admitted(), 8);
  EXPECT_EQ(comparison.batch().entries(), summary.entries());
  EXPECT_EQ(comparison.batch().most_packets(), summary.most_packets());
  EXPECT_EQ(comparison.batch().most_loaded(), summary.most_loaded());
  for (const v1::BatchTotals& other : {comparison.one_by_one(), comparison.unreduced()}) {
    EXPECT_EQ(other.admitted() + other.refused(), 8);
    EXPECT_GT(other.entries(), 0);
  }
  EXPECT_EQ(comparison.bounds().entries_counting(), 8);  // a switch each
  EXPECT_LE(comparison.bounds().entries_counting(), summary.entries());
  request.set_compare(false);
  EXPECT_FALSE(Grant(request)->back().summary().has_comparison());
}

TEST_F(BatchServiceTest, BadRequests) {
  const auto words = [&](const v1::BatchCreateTreesRequest& request) {
    const absl::Status status = Refused(request);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  v1::BatchCreateTreesRequest request;
  EXPECT_THAT(words(request), HasSubstr("job"));
  request.set_job_id(job_);
  EXPECT_THAT(words(request), HasSubstr("empty"));
  request.add_communicators()->add_rank_ranges()->set_first(3);
  EXPECT_THAT(words(request), HasSubstr("communicators[0]: rank_ranges hold no rank"));
  request.mutable_communicators(0)->mutable_rank_ranges(0)->set_count(1u << 31);
  EXPECT_THAT(words(request), HasSubstr("communicators[0]"));
  request.mutable_communicators(0)->mutable_rank_ranges(0)->set_count(2);
  request.mutable_communicators(0)->add_ranks(1);
  EXPECT_THAT(words(request), HasSubstr("both given"));
  // Short on the wire, too long for the daemon.
  request.clear_communicators();
  for (int i = 0; i < 5; ++i) {
    request.add_communicators()->add_rank_ranges()->set_count(1u << 20);
  }
  EXPECT_THAT(words(request), HasSubstr("ranks together"));
  request.clear_communicators();
  request.add_communicators()->add_ranks(1);
  request.add_communicators();
  EXPECT_THAT(words(request), HasSubstr("communicators[1]: has no ranks"));
  request = Square();
  for (int axis = 0; axis < 31; ++axis) request.mutable_grid()->add_sizes(1);
  EXPECT_THAT(words(request), HasSubstr("grid.sizes: 33 are given, the limit is 32"));
  EXPECT_THAT(words(Square(std::vector<uint32_t>(33, 0))), HasSubstr("grid.axes: 33 are given"));
  request = Square();
  request.set_view(v1::TREE_VIEW_RANK);
  EXPECT_THAT(words(request), HasSubstr("TREE_VIEW_RANK"));
  request = Square();
  request.set_admission(static_cast<v1::BatchAdmission>(9));
  EXPECT_THAT(words(request),
              HasSubstr("admission: there is no 9; give a value of coppice.v1.BatchAdmission"));
  request = Square();
  request.set_goal(static_cast<v1::BatchGoal>(9));
  EXPECT_THAT(words(request),
              HasSubstr("goal: there is no 9; give a value of coppice.v1.BatchGoal"));
  request = Square({1, 1});
  EXPECT_THAT(words(request), HasSubstr("twice"));
  request = Square();
  request.set_job_id("999");
  EXPECT_TRUE(absl::IsNotFound(Refused(request)));
  EXPECT_EQ(Counts().granted_trees, 0);
}

TEST_F(BatchServiceTest, WhoeverStopsReadingHasTheTreesOnceGranted) {
  grpc::ClientContext context;
  Loopback::SetDeadline(context);
  const auto reader = loopback_.trees().BatchCreateTrees(&context, Square());
  v1::BatchCreateTreesUpdate update;
  while (reader->Read(&update) && !update.has_tree()) {
  }
  ASSERT_TRUE(update.has_tree());
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(Counts().granted_trees, 8);
  v1::EndJobRequest end;
  end.set_id(job_);
  EXPECT_TRUE(loopback_.Call(loopback_.jobs(), &v1::Jobs::Stub::EndJob, end).ok());
  EXPECT_EQ(Counts().entries_taken, 0);
}

// Cancels at every point of the call: all of it is granted or nothing is.
TEST_F(BatchServiceTest, CancelledCallsGrantAllOrNothing) {
  for (int reads = 0; reads < 12; ++reads) {
    v1::BatchCreateTreesRequest request = Square({1});
    grpc::ClientContext context;
    Loopback::SetDeadline(context);
    const auto reader = loopback_.trees().BatchCreateTrees(&context, request);
    v1::BatchCreateTreesUpdate update;
    for (int i = 0; i < reads && reader->Read(&update); ++i) {
    }
    context.TryCancel();
    reader->Finish();
    v1::EndJobRequest end;
    end.set_id(job_);
    const auto ended = loopback_.Call(loopback_.jobs(), &v1::Jobs::Stub::EndJob, end);
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_TRUE(ended->released_trees() == 0 || ended->released_trees() == 4)
        << ended->released_trees();
    job_ = loopback_.RegisterAll();
  }
  EXPECT_TRUE(Grant(Square({1})).ok());
}

TEST_F(BatchServiceTest, AShutdownEndsItsStreams) {
  std::thread caller([&] {
    for (int i = 0; i < 20; ++i) {
      v1::BatchCreateTreesRequest request = Square({1});
      request.set_validate_only(true);
      const absl::Status status = Refused(request);
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsCancelled(status))
          << status;
    }
  });
  loopback_.server().Shutdown(absl::ZeroDuration());
  caller.join();
}

}  // namespace
}  // namespace coppice::batch_service_test
