// The stream of one long call, without a server: a reactor that no call has been given to holds
// back what it is to write.
#include <memory>

#include "absl/synchronization/notification.h"
#include "coppice/v1/mapping.pb.h"
#include "daemon/rpc/calls/streams.h"
#include "gtest/gtest.h"

namespace coppice::update_stream_test {
namespace {

using absl::StatusCode;
using Stream = UpdateStream<v1::MapRanksUpdate>;

class UpdateStreamTest : public ::testing::Test {
 protected:
  std::shared_ptr<Stream> Open() {
    std::shared_ptr<Stream> opened;
    Stream::Open(streams_, "job:7", absl::OkStatus(), [&](const std::shared_ptr<Stream>& stream) {
      opened = stream;
      return absl::OkStatus();
    });
    return opened;
  }
  uint64_t Ended(StatusCode code) const {
    return statistics_.Numbers()[0].by_code[static_cast<size_t>(code)];
  }
  uint64_t open() const { return statistics_.Numbers()[0].open; }
  static v1::MapRanksUpdate Progress(double score) {
    v1::MapRanksUpdate update;
    update.mutable_progress()->set_score(score);
    return update;
  }
  // `count` messages, and how many of them were asked for.
  static Stream::Answers Answers(int count, int* asked) {
    return [count, asked](v1::MapRanksUpdate& update) {
      if (*asked == count) return false;
      update.mutable_result()->set_seconds(++*asked);
      return true;
    };
  }

  MethodStatistics statistics_;
  OpenStreams streams_{statistics_.AddStream("Mapping.MapRanks")};
};

TEST_F(UpdateStreamTest, WritesTheAnswerMessageByMessageAndEndsWell) {
  const std::shared_ptr<Stream> stream = Open();
  int asked = 0;
  stream->Answer(Answers(2, &asked));
  EXPECT_EQ(asked, 1);  // the second waits until the first is written
  stream->OnWriteDone(true);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(open(), 1U);
  stream->OnWriteDone(true);
  EXPECT_EQ(Ended(StatusCode::kOk), 1U);
  EXPECT_EQ(open(), 0U);
  stream->OnDone();
  EXPECT_EQ(stream.use_count(), 1);
}

TEST_F(UpdateStreamTest, OnlyTheNewestProgressWaitsForASlowReader) {
  const std::shared_ptr<Stream> stream = Open();
  int asked = 0;
  stream->Tell(Progress(0.9));
  for (const double score : {0.8, 0.7, 0.6}) stream->Tell(Progress(score));
  stream->Answer(Answers(1, &asked));
  stream->OnWriteDone(true);  // the first; now the newest
  EXPECT_EQ(asked, 0);
  stream->OnWriteDone(true);
  EXPECT_EQ(asked, 1);
  stream->OnWriteDone(true);
  EXPECT_EQ(Ended(StatusCode::kOk), 1U);
  stream->OnDone();
}

TEST_F(UpdateStreamTest, AWriteThatFailsIsNoSuccess) {
  const std::shared_ptr<Stream> stream = Open();
  stream->Tell(Progress(0.9));
  stream->OnWriteDone(false);
  EXPECT_EQ(Ended(StatusCode::kOk), 0U);
  EXPECT_EQ(Ended(StatusCode::kCancelled), 1U);
  int asked = 0;
  stream->Answer(Answers(1, &asked));  // the work goes on until it hears of it
  stream->Tell(Progress(0.5));
  stream->End(absl::InternalError("too late"));
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(open(), 0U);
  stream->OnDone();
}

TEST_F(UpdateStreamTest, TheLastWriteThatFailsIsNoSuccessEither) {
  const std::shared_ptr<Stream> stream = Open();
  int asked = 0;
  stream->Answer(Answers(1, &asked));
  stream->OnWriteDone(false);
  EXPECT_EQ(Ended(StatusCode::kOk), 0U);
  EXPECT_EQ(Ended(StatusCode::kCancelled), 1U);
  stream->OnDone();
}

TEST_F(UpdateStreamTest, EndsOnceAndWithTheFirstStatus) {
  const std::shared_ptr<Stream> stream = Open();
  stream->End(absl::NotFoundError("no such pattern"));
  stream->End(absl::OkStatus());
  stream->OnCancel();
  EXPECT_TRUE(stream->is_over());
  EXPECT_EQ(Ended(StatusCode::kNotFound), 1U);
  EXPECT_EQ(statistics_.Numbers()[0].calls(), 1U);
  stream->OnDone();
}

TEST_F(UpdateStreamTest, WhatWaitsForAWorkerGoesWithItsClient) {
  absl::Notification started, go_on;
  WorkerPool pool(1);
  pool.Submit([&] {
    started.Notify();
    go_on.WaitForNotification();
  });
  started.WaitForNotification();
  const std::shared_ptr<Stream> stream = Open(), other = Open();
  const auto request = std::make_shared<int>(7);
  bool has_run = false;
  ASSERT_TRUE(stream
                  ->RunOn(
                      &pool, [stream, request, &has_run] { has_run = true; }, 1)
                  .ok());
  EXPECT_FALSE(other
                   ->RunOn(
                       &pool, [] {}, 1)
                   .ok());
  stream->OnCancel();
  EXPECT_EQ(request.use_count(), 1);
  EXPECT_EQ(Ended(StatusCode::kCancelled), 1U);
  absl::Notification ran;
  EXPECT_TRUE(other
                  ->RunOn(
                      &pool, [&] { ran.Notify(); }, 1)
                  .ok());
  go_on.Notify();
  ran.WaitForNotification();
  EXPECT_FALSE(has_run);
  other->OnCancel();  // nothing waits any more
  stream->OnDone();
  other->OnDone();
  EXPECT_EQ(stream.use_count(), 1);
}

TEST_F(UpdateStreamTest, ATaskOfAClientThatHasGoneBeforeIsDropped) {
  absl::Notification started, go_on;
  WorkerPool pool(1);
  pool.Submit([&] {
    started.Notify();
    go_on.WaitForNotification();
  });
  started.WaitForNotification();
  const std::shared_ptr<Stream> stream = Open();
  stream->OnCancel();
  EXPECT_TRUE(stream
                  ->RunOn(
                      &pool, [] { ADD_FAILURE() << "nobody waits for it"; }, 1)
                  .ok());
  EXPECT_EQ(pool.waiting(), 0U);
  go_on.Notify();
  stream->OnDone();
}

}  // namespace
}  // namespace coppice::update_stream_test
