// The streams themselves, without a server: a reactor that no call has been given to holds back
// what it is to do.
#include <functional>
#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/rpc/calls/streams.h"
#include "gtest/gtest.h"

namespace coppice::pulled_stream_test {
namespace {

using Streams = PulledStreams<v1::Event>;

// Calls `on_next` whenever it is asked, has nothing to say, and tells when it goes.
class QuietSource final : public MessageSource<v1::Event> {
 public:
  QuietSource(std::function<void()> on_next, absl::Notification* gone)
      : on_next_(std::move(on_next)), gone_(gone) {}
  ~QuietSource() override { gone_->Notify(); }
  absl::StatusOr<bool> Next(v1::Event&) override {
    on_next_();
    return false;
  }

 private:
  const std::function<void()> on_next_;
  absl::Notification* const gone_;
};

// A source that is woken may read the store: nobody who asks how many streams there are, opens one
// or ends one waits for that.
TEST(PulledStreamTest, OthersDoNotWaitWhileASourceReads) {
  MethodStatistics statistics;
  Streams streams(statistics.AddStream("Fabric.WatchEvents"), "watch again");
  absl::Notification reads, may_go_on, gone, other_gone;
  std::function<void()> wake;
  int asked = 0;
  PulledStream<v1::Event>* const slow =
      streams.Open("events", [&](std::function<void()> wakes) -> absl::StatusOr<Streams::Source> {
        wake = std::move(wakes);
        return std::make_unique<QuietSource>(
            [&] {
              if (++asked == 1) return;  // at the opening
              reads.Notify();
              may_go_on.WaitForNotification();
            },
            &gone);
      });
  wake();
  reads.WaitForNotification();
  EXPECT_EQ(statistics.Numbers()[0].open, 1U);
  PulledStream<v1::Event>* const other =
      streams.Open("events", [&](const std::function<void()>&) -> absl::StatusOr<Streams::Source> {
        return std::make_unique<QuietSource>([] {}, &other_gone);
      });
  EXPECT_EQ(statistics.Numbers()[0].open, 2U);
  other->End(absl::OkStatus());
  other->OnDone();
  EXPECT_TRUE(other_gone.HasBeenNotified());
  EXPECT_EQ(statistics.Numbers()[0].open, 1U);
  EXPECT_FALSE(gone.HasBeenNotified());
  may_go_on.Notify();
  slow->End(absl::OkStatus());
  slow->OnDone();
  gone.WaitForNotification();  // on this thread or that of the streams, whoever lets go last
  EXPECT_EQ(statistics.Numbers()[0].open, 0U);
}

TEST(PulledStreamTest, AStreamThatIsWokenTooLateIsNotPumped) {
  MethodStatistics statistics;
  absl::Notification gone;
  std::function<void()> wake;
  int asked = 0;
  {
    Streams streams(statistics.AddStream("Fabric.WatchEvents"), "watch again");
    PulledStream<v1::Event>* const stream =
        streams.Open("events", [&](std::function<void()> wakes) -> absl::StatusOr<Streams::Source> {
          wake = std::move(wakes);
          return std::make_unique<QuietSource>([&] { ++asked; }, &gone);
        });
    streams.Close();
    wake();
    stream->OnDone();
    wake();
  }
  EXPECT_TRUE(gone.HasBeenNotified());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(statistics.Numbers()[0].open, 0U);
}

}  // namespace
}  // namespace coppice::pulled_stream_test
