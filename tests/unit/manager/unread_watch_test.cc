// Switches whose counters are not read: told once, with why, and once when they are read again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "daemon/manager/load_keeper.h"

namespace coppice::unread_watch_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

UnansweredNode Entry(uint64_t guid, std::string what, bool is_silent) {
  return {"0,1", Guid(7), PortNum(1), std::move(what), Guid(guid), is_silent};
}

class UnreadWatchTest : public testing::Test {
 protected:
  // "SEVERITY OBJECT" of what is told of a sweep that read switches 1 to `read`, but for these.
  std::vector<std::string> Told(std::vector<UnansweredNode> unanswered, uint64_t read = 20) {
    CounterSweep sweep;
    sweep.readings.resize(read + 1);
    for (uint64_t node = 0; node <= read; ++node) sweep.readings[node].node = Guid(node);
    sweep.unanswered = std::move(unanswered);
    events_.clear();
    watch_.Take(sweep, absl::UnixEpoch(), events_);
    std::vector<std::string> told;
    for (const EventRecord& event : events_) {
      EXPECT_EQ(event.kind, "switch.counters");
      told.push_back(event.severity + " " + event.object);
    }
    return told;
  }

  UnreadWatch watch_;
  std::vector<EventRecord> events_;
};

const char kFive[] = "switch:0000000000000005";

TEST_F(UnreadWatchTest, ARefusalIsToldAtOnceAndItsEnd) {
  const auto refused = Entry(5, "switch S5: PortCounters of port 3: refused", false);
  const auto silent = Entry(5, "switch S5: PortCounters of port 2", true);
  EXPECT_THAT(Told({silent, refused}), ElementsAre(std::string("warning ") + kFive));
  EXPECT_THAT(events_[0].message, HasSubstr("switch S5: PortCounters of port 3: refused, and 1"));
  EXPECT_THAT(Told({refused}), IsEmpty());
  EXPECT_THAT(Told({}), ElementsAre(std::string("info ") + kFive));
  EXPECT_THAT(Told({}), IsEmpty());
}

TEST_F(UnreadWatchTest, ASwitchThatHasLeftIsNotReadAgain) {
  const auto refused = Entry(5, "switch S5: PortCounters of port 3: refused", false);
  EXPECT_THAT(Told({refused}), ElementsAre(std::string("warning ") + kFive));
  EXPECT_THAT(Told({}, 4), IsEmpty());
  EXPECT_THAT(Told({}), IsEmpty());
}

TEST_F(UnreadWatchTest, SilenceIsToldWhenItLasts) {
  const auto silent = Entry(5, "switch S5: PerformanceClassPortInfo", true);
  EXPECT_THAT(Told({silent}), IsEmpty());
  EXPECT_THAT(Told({}), IsEmpty());  // it was a packet
  for (int sweep = 1; sweep < UnreadWatch::kSilentSweeps; ++sweep) {
    EXPECT_THAT(Told({silent}), IsEmpty());
  }
  EXPECT_THAT(Told({silent}), ElementsAre(std::string("warning ") + kFive));
  EXPECT_THAT(Told({silent}), IsEmpty());
}

TEST_F(UnreadWatchTest, ASweepThatAskedNobodySaysNothing) {
  const auto refused = Entry(5, "switch S5: no", false);
  Told({refused});
  watch_.Take(CounterSweep(), absl::UnixEpoch(), events_);
  EXPECT_THAT(Told({refused}), IsEmpty());
}

TEST_F(UnreadWatchTest, ManyAreOneEvent) {
  std::vector<UnansweredNode> all;
  for (uint64_t guid = 1; guid <= UnreadWatch::kMaxTold + 1; ++guid) {
    all.push_back(Entry(guid, "switch S" + std::to_string(guid) + ": no", false));
  }
  EXPECT_THAT(Told(all), ElementsAre("warning fabric"));
  EXPECT_THAT(events_[0].message, HasSubstr("17 of these in one sweep; "));
  EXPECT_THAT(events_[0].message, HasSubstr("switch S3: no; ..."));
  EXPECT_THAT(Told({}), ElementsAre("info fabric"));
}

}  // namespace
}  // namespace coppice::unread_watch_test
