#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "daemon/manager/mapping/pattern_store.h"
#include "tests/unit/manager/routed_fixture.h"

namespace coppice::order_store_test {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

absl::Status Anybody(const JobRecord&) { return absl::OkStatus(); }

class OrderStoreTest : public ManagerTest {
 protected:
  void SetUp() override { Restart(); }
  // A manager and a order_store that know only what the store holds.
  void Restart() {
    order_store_.reset();
    Boot();
    order_store_ = std::make_unique<OrderStore>(&store_, manager_.get(), &clock_);
  }
  // All positions of the job, the last first.
  std::vector<uint32_t> Reversed(JobId job) {
    std::vector<uint32_t> positions(manager_->GetJob(job)->record->endpoints.size());
    std::iota(positions.rbegin(), positions.rend(), 0);
    return positions;
  }
  void ExpectRefused(JobId job, std::vector<uint32_t> positions, StatusCode code,
                     const std::string& why, const std::string& note = "") {
    const absl::Status status =
        order_store_->Put(job, std::move(positions), note, Anybody).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  std::unique_ptr<OrderStore> order_store_;
};

TEST_F(OrderStoreTest, KeepsTheLatestOfEachJob) {
  const JobId one = NewJob(), other = NewJob();
  EXPECT_EQ(order_store_->Get(one).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(order_store_->Put(one, Reversed(one), "first", Anybody).ok());
  ASSERT_TRUE(order_store_->Put(other, {1, 0}, "other", Anybody).ok());
  ASSERT_TRUE(order_store_->Put(one, {2, 0, 1}, "second", Anybody).ok());
  const auto order = order_store_->Get(one);
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_THAT(order->positions, ElementsAre(2, 0, 1));
  EXPECT_EQ(order->note, "second");
  EXPECT_EQ(order->job, one);
  EXPECT_EQ(order->created, clock_.Now());
  EXPECT_EQ(order_store_->Get(other)->note, "other");
}

TEST_F(OrderStoreTest, GoesWithTheJob) {
  const JobId job = NewJob();
  ASSERT_TRUE(order_store_->Put(job, Reversed(job), "", Anybody).ok());
  ASSERT_TRUE(End(job).ok());
  EXPECT_EQ(order_store_->Get(job).status().code(), StatusCode::kFailedPrecondition);
  ExpectRefused(job, {0}, StatusCode::kFailedPrecondition, "has ended");
  EXPECT_EQ(order_store_->Get(JobId(77)).status().code(), StatusCode::kNotFound);
  ExpectRefused(JobId(77), {0}, StatusCode::kNotFound, "77");
}

TEST_F(OrderStoreTest, OutlivesTheDaemonAndNotTheJob) {
  const JobId job = NewJob(), other = NewJob();
  const auto put = order_store_->Put(job, Reversed(job), "kept", Anybody);
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_TRUE(order_store_->Put(other, {1, 0}, "", Anybody).ok());
  clock_.Advance(absl::Seconds(7));
  Restart();
  const auto order = order_store_->Get(job);
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(*order, *put);
  ASSERT_TRUE(order_store_->LaunchTextOf(*order, LaunchFormat::kSlurm).ok());
  ASSERT_TRUE(End(job).ok());
  Restart();
  EXPECT_EQ(order_store_->Get(job).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(kept_.GetOrder(job).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(order_store_->Get(other).ok());
}

TEST_F(OrderStoreTest, AnswersWhatTheStoreAnswered) {
  const JobId job = NewJob();
  ASSERT_TRUE(order_store_->Put(job, {0, 1}, "kept", Anybody).ok());
  store_.Refuse<PutOrder>(absl::UnavailableError("database is busy"));
  ExpectRefused(job, {1, 0}, StatusCode::kUnavailable, "database is busy");
  store_.Obey();
  EXPECT_EQ(order_store_->Get(job)->note, "kept");
}

// A put whose job ends before the store has it: the store's word counts.
TEST_F(OrderStoreTest, LosesToTheEndOfItsJob) {
  const JobId job = NewJob();
  bool ended = false;
  const auto end_first = [&](const JobRecord&) {
    EXPECT_TRUE(kept_.Apply(EndJob{job, JobState::kEnded, clock_.Now()}).ok());
    ended = true;
    return absl::OkStatus();
  };
  const absl::Status status = order_store_->Put(job, {1, 0}, "", end_first).status();
  EXPECT_TRUE(ended);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(kept_.GetOrder(job).status().code(), StatusCode::kNotFound);
}

// What a shell, or a flipped bit, made of the row: told to who asks, mended by another order.
TEST_F(OrderStoreTest, TellsDamageToWhoAsks) {
  const JobId job = NewJob();
  const auto ranks = static_cast<uint32_t>(Reversed(job).size());
  for (const std::vector<uint32_t>& bad :
       {std::vector<uint32_t>{ranks}, {1, 1}, std::vector<uint32_t>(ranks + 1)}) {
    ASSERT_TRUE(kept_.Apply(PutOrder{{job, bad, "", clock_.Now()}}).ok());
    const absl::Status status = order_store_->Get(job).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("find another with coppice-search"));
  }
  ASSERT_TRUE(order_store_->Put(job, {1, 0}, "", Anybody).ok());
  EXPECT_TRUE(order_store_->Get(job).ok());
}

TEST_F(OrderStoreTest, TakesOnlyOrdersOfTheJobsRanks) {
  const JobId job = NewJob();
  const auto ranks = static_cast<uint32_t>(Reversed(job).size());
  ExpectRefused(job, {}, StatusCode::kInvalidArgument, "0 ranks");
  ExpectRefused(job, std::vector<uint32_t>(ranks + 1), StatusCode::kInvalidArgument, "ranks for");
  ExpectRefused(job, {1, 0, 1}, StatusCode::kInvalidArgument, "two ranks at position 1");
  ExpectRefused(job, {ranks}, StatusCode::kInvalidArgument, "rank 0 at position");
  ExpectRefused(job, {0}, StatusCode::kInvalidArgument, "note", std::string(1025, 'x'));
  EXPECT_EQ(order_store_->Get(job).status().code(), StatusCode::kNotFound);
}

TEST_F(OrderStoreTest, AsksWhoseJobItIs) {
  const JobId job = NewJob();
  ASSERT_TRUE(order_store_->Put(job, {0, 1}, "kept", Anybody).ok());
  const auto nobody = [&](const JobRecord& record) {
    EXPECT_EQ(record.id, job);
    return absl::PermissionDeniedError("not yours");
  };
  EXPECT_EQ(order_store_->Put(job, {1, 0}, "", nobody).status().code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(order_store_->Get(job)->note, "kept");
}

TEST_F(OrderStoreTest, WritesWhatLaunchersRead) {
  const JobId job = NewJob();
  const auto order = order_store_->Put(job, Reversed(job), "", Anybody);
  ASSERT_TRUE(order.ok()) << order.status();
  const auto text = order_store_->LaunchTextOf(*order, LaunchFormat::kSlurm);
  ASSERT_TRUE(text.ok()) << text.status();
  // Line r is rank r's host: the last host first.
  const Fabric& fabric = *manager_->fabric()->snapshot->fabric;
  const Guid last = manager_->GetJob(job)->record->endpoints.back();
  const std::string host(fabric.host_name(fabric.host(*fabric.FindEndpoint(last))));
  EXPECT_EQ(text->substr(0, host.size() + 1), host + "\n");
}

}  // namespace
}  // namespace coppice::order_store_test
