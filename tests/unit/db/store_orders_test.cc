// Orders of jobs' ranks in the store: one for each active job, gone with its end, bounded in all.
// And in the database: whatever a shell makes of a row is an error of who asks for it alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/db/raw_database.h"
#include "tests/unit/db/store_records.h"

namespace coppice::store_orders_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

OrderRecord Order(int64_t job, std::vector<uint32_t> positions, std::string note = "by hand") {
  return {JobId(job), std::move(positions), std::move(note), At(17)};
}

class StoreOrdersTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    for (int64_t job : {1, 2, 3}) ASSERT_APPLIED(store_->Apply(PutJob{Job(job)}));
  }
  absl::Status Put(OrderRecord order, int64_t max_positions = INT64_MAX) {
    return store_->Apply(PutOrder{std::move(order), max_positions});
  }
  // What is kept now, and after it was opened again.
  absl::StatusOr<OrderRecord> Get(int64_t job) {
    const absl::StatusOr<OrderRecord> now = store_->GetOrder(JobId(job));
    Load();
    const absl::StatusOr<OrderRecord> then = store_->GetOrder(JobId(job));
    EXPECT_EQ(now.status(), then.status());
    if (now.ok() && then.ok()) {
      EXPECT_EQ(*now, *then);
    }
    return then;
  }
};

TEST_F(StoreOrdersTest, AreKeptExactly) {
  EXPECT_STATUS(Get(1).status(), StatusCode::kNotFound, "no order is kept for job 1");
  const OrderRecord odd = Order(1, {UINT32_MAX, 0, 7}, "quotes ' and \" and \xc3\xa9\n");
  ASSERT_APPLIED(Put(odd));
  ASSERT_APPLIED(Put(Order(3, {0}, "")));
  EXPECT_EQ(*Get(1), odd);
  EXPECT_EQ(*Get(3), Order(3, {0}, ""));
  EXPECT_STATUS(Get(2).status(), StatusCode::kNotFound, "job 2");
}

TEST_F(StoreOrdersTest, TakeThePlaceOfTheOneBefore) {
  ASSERT_APPLIED(Put(Order(1, {0, 1, 2})));
  OrderRecord next = Order(1, {1, 0}, "better");
  next.created = At(18);
  ASSERT_APPLIED(Put(next));
  EXPECT_EQ(*Get(1), next);
}

TEST_F(StoreOrdersTest, GoWithTheEndOfTheirJob) {
  ASSERT_APPLIED(Put(Order(1, {1, 0})));
  ASSERT_APPLIED(Put(Order(2, {1, 0})));
  ASSERT_APPLIED(Put(Order(3, {1, 0})));
  ASSERT_APPLIED(store_->Apply(EndJob{JobId(1), JobState::kEnded, At(50)}));
  ASSERT_APPLIED(store_->Apply(EndJob{JobId(2), JobState::kExpired, At(50)}));
  EXPECT_STATUS(Get(1).status(), StatusCode::kNotFound, "job 1");
  EXPECT_STATUS(Get(2).status(), StatusCode::kNotFound, "job 2");
  EXPECT_EQ(*Get(3), Order(3, {1, 0}));
  EXPECT_STATUS(Put(Order(1, {0})), StatusCode::kFailedPrecondition, "job 1 is not active");
  EXPECT_STATUS(Put(Order(9, {0})), StatusCode::kFailedPrecondition, "job 9 is not active");
  // Nor does one come back for a later job.
  ASSERT_APPLIED(store_->Apply(PruneJobs{0, absl::InfiniteFuture(), 16}));
  EXPECT_STATUS(Get(1).status(), StatusCode::kNotFound, "job 1");
}

TEST_F(StoreOrdersTest, AreBoundedTogether) {
  ASSERT_APPLIED(Put(Order(1, {0, 1, 2}), 5));
  EXPECT_STATUS(Put(Order(2, {0, 1, 2}), 5), StatusCode::kResourceExhausted,
                "order of job 2 has 3 positions, and those of other jobs hold 3 of the 5");
  EXPECT_STATUS(Get(2).status(), StatusCode::kNotFound, "job 2");
  ASSERT_APPLIED(Put(Order(2, {0, 1}), 5));
  // In place of its own, which does not count; what is refused leaves the one before.
  ASSERT_APPLIED(Put(Order(1, {2, 1, 0}), 5));
  EXPECT_STATUS(Put(Order(1, {3, 2, 1, 0}), 5), StatusCode::kResourceExhausted, "hold 2");
  EXPECT_EQ(*Get(1), Order(1, {2, 1, 0}));
  ASSERT_APPLIED(store_->Apply(EndJob{JobId(2), JobState::kEnded, At(50)}));
  ASSERT_APPLIED(Put(Order(1, {4, 3, 2, 1, 0}), 5));
  EXPECT_STATUS(Put(Order(1, {0, 1, 2, 3, 4, 5}), 5), StatusCode::kResourceExhausted, "hold 0");
}

TEST_F(StoreOrdersTest, RefuseWhatIsNoOrder) {
  EXPECT_STATUS(Put(Order(0, {0})), StatusCode::kInvalidArgument, "job 0");
  EXPECT_STATUS(Put(Order(1, {})), StatusCode::kInvalidArgument, "no positions");
  for (const absl::Time never : {absl::InfinitePast(), absl::InfiniteFuture()}) {
    OrderRecord order = Order(1, {0});
    order.created = never;
    EXPECT_STATUS(Put(order), StatusCode::kInvalidArgument, "time of its creation");
  }
  EXPECT_STATUS(Get(1).status(), StatusCode::kNotFound, "job 1");
}

// In one group: a put that comes after the end of its job is refused, one before it goes with it.
TEST_F(StoreOrdersTest, MeetTheEndOfTheirJobInOneGroup) {
  std::vector<StatusCode> answers;
  const auto submit = [&](Mutation mutation) {
    store_->Submit(std::move(mutation),
                   [&answers](const absl::Status& status) { answers.push_back(status.code()); });
  };
  submit(PutOrder{Order(1, {1, 0})});
  submit(EndJob{JobId(1), JobState::kEnded, At(50)});
  submit(PutOrder{Order(1, {0, 1})});
  submit(PutOrder{Order(2, {1, 0})});
  ASSERT_APPLIED(store_->Apply(AppendEvents{}));  // answered after all before it
  EXPECT_THAT(answers, testing::ElementsAre(StatusCode::kOk, StatusCode::kOk,
                                            StatusCode::kFailedPrecondition, StatusCode::kOk));
  EXPECT_STATUS(Get(1).status(), StatusCode::kNotFound, "job 1");
  EXPECT_EQ(*Get(2), Order(2, {1, 0}));
}

TEST_F(StoreOrdersTest, OfAMillionRanks) {
  std::vector<uint32_t> positions(1 << 20);
  for (uint32_t rank = 0; rank < positions.size(); ++rank) {
    positions[rank] = static_cast<uint32_t>(positions.size()) - 1 - rank;
  }
  ASSERT_APPLIED(Put(Order(1, positions)));
  EXPECT_TRUE(*Get(1) == Order(1, positions));
}

class SqliteOrdersTest : public StoreOrdersTest {
 protected:
  std::string Run(const std::string& sql) { return RawDatabase(path_).Run(sql); }
};

TEST_F(SqliteOrdersTest, DamagedRowsAreErrorsOfWhoAsks) {
  ASSERT_APPLIED(Put(Order(2, {1, 0})));
  const std::pair<const char*, const char*> damages[] = {
      {"positions = '[1,0'", "wrong character at position 4"},
      {"positions = '[1,-1]'", "wrong character"},
      {"positions = '[1]'", "1 positions where there were 2"},
      {"positions = '[]'", "0 positions"},
      {"position_count = 3", "2 positions where there were 3"},
      {"positions = '[1,4294967296]'", "position 4294967296 is beyond all ranks"}};
  for (const auto& [change, words] : damages) {
    ASSERT_APPLIED(Put(Order(1, {1, 0})));
    ASSERT_EQ(Run(std::string("UPDATE job_order SET ") + change + " WHERE job_id = 1"), "");
    const absl::Status status = Get(1).status();  // also after it was opened again
    EXPECT_STATUS(status, StatusCode::kDataLoss, words);
    EXPECT_THAT(std::string(status.message()), HasSubstr("coppice.db: order of job 1: "));
    EXPECT_EQ(*Get(2), Order(2, {1, 0})) << change;
  }
  ASSERT_APPLIED(Put(Order(1, {0, 1})));  // another mends it
  EXPECT_EQ(*Get(1), Order(1, {0, 1}));
}

TEST_F(SqliteOrdersTest, TheDatabaseKeepsOrdersToActiveJobs) {
  ASSERT_APPLIED(Put(Order(1, {1, 0})));
  EXPECT_EQ(Run("SELECT job_id || ' ' || position_count || ' ' || note || ' ' || created "
                "FROM job_order_list"),
            "1 2 by hand 2023-11-14 22:13:37\n");
  ASSERT_APPLIED(store_->Apply(EndJob{JobId(3), JobState::kEnded, At(50)}));
  for (const char* job : {"3", "77"}) {
    EXPECT_THAT(Run(std::string("INSERT INTO job_order VALUES (") + job + ", 1, '', 0, '[0]')"),
                HasSubstr("the job of the order is not active"));
  }
  EXPECT_THAT(Run("UPDATE job_order SET job_id = 2"), HasSubstr("stays with its job"));
  EXPECT_THAT(Run("UPDATE job_order SET position_count = 0"), HasSubstr("error: "));
  EXPECT_EQ(Run("UPDATE job SET state = 'ended', ended_ns = 1 WHERE id = 1"), "");
  EXPECT_EQ(Run("SELECT count(*) FROM job_order"), "0\n");
  ASSERT_APPLIED(Put(Order(2, {1, 0})));
  EXPECT_EQ(Run("DELETE FROM job WHERE id = 2"), "");
  EXPECT_EQ(Run("SELECT count(*) FROM job_order"), "0\n");
}

}  // namespace
}  // namespace coppice::store_orders_test
