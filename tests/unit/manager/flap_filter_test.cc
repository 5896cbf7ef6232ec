#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/manager/fabric_events.h"

namespace coppice::flap_filter_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

EventRecord Event(const std::string& kind, const std::string& object = "link:1/2-3/4") {
  EventRecord event;
  event.severity = "info";
  event.kind = kind;
  event.object = object;
  event.message = "it is";
  return event;
}

class FlapFilterTest : public testing::Test {
 protected:
  std::vector<std::string> Pass(int second, std::vector<EventRecord> events) {
    return Kinds(filter_.Pass(std::move(events), absl::Seconds(second)));
  }
  std::vector<std::string> Kinds(const std::vector<EventRecord>& events) {
    std::vector<std::string> kinds;
    for (const EventRecord& event : events) {
      kinds.push_back(event.kind);
      last_ = event;
    }
    return kinds;
  }
  std::vector<std::string> End(int second) {
    return Kinds(filter_.End(absl::UnixEpoch(), absl::Seconds(second)));
  }

  FlapFilter filter_;
  EventRecord last_;
};

TEST_F(FlapFilterTest, AFewChangesAreToldAsTheyCome) {
  EXPECT_THAT(Pass(0, {Event("link.down")}), ElementsAre("link.down"));
  EXPECT_THAT(Pass(5, {Event("link.up")}), ElementsAre("link.up"));
  EXPECT_THAT(Pass(29, {Event("link.down")}), ElementsAre("link.down"));
  EXPECT_THAT(Pass(31, {Event("link.up")}), ElementsAre("link.up"));  // the first is too long ago
  EXPECT_THAT(End(62), IsEmpty());
}

TEST_F(FlapFilterTest, FlappingIsOneEventAndItsEndAnother) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Pass(i, {Event(i % 2 == 0 ? "link.down" : "link.up")}), testing::SizeIs(1));
  }
  EXPECT_THAT(Pass(3, {Event("link.up")}), ElementsAre("link.flapping"));
  EXPECT_EQ("warning", last_.severity);
  EXPECT_THAT(last_.message, HasSubstr("4 changes within 30s"));
  for (int i = 4; i < 20; ++i) EXPECT_THAT(Pass(i, {Event("link.down")}), IsEmpty());
  EXPECT_THAT(End(49), IsEmpty());
  EXPECT_THAT(End(50), ElementsAre("link.steady"));
  EXPECT_EQ("link:1/2-3/4", last_.object);
  EXPECT_EQ("warning", last_.severity);  // it is down
  EXPECT_THAT(last_.message, HasSubstr("after 20 of them; the last was link.down"));
  EXPECT_THAT(End(51), IsEmpty());
  EXPECT_THAT(Pass(52, {Event("link.up")}), ElementsAre("link.up"));
}

TEST_F(FlapFilterTest, WhatIsUpInTheEndIsNoWarning) {
  for (int i = 0; i < 6; ++i) Pass(i, {Event(i % 2 == 0 ? "link.down" : "link.up")});
  EXPECT_THAT(End(60), ElementsAre("link.steady"));
  EXPECT_EQ("info", last_.severity);
}

TEST_F(FlapFilterTest, SilenceNowAndThenFlapsToo) {
  for (int i = 0; i < 3; ++i) {
    Pass(i, {Event(i % 2 == 0 ? "switch.unreachable" : "switch.reachable")});
  }
  EXPECT_THAT(Pass(3, {Event("switch.reachable")}), ElementsAre("switch.flapping"));
  EXPECT_THAT(Pass(4, {Event("switch.unreachable")}), IsEmpty());
  EXPECT_THAT(End(50), ElementsAre("switch.steady"));
  EXPECT_EQ("warning", last_.severity);
}

// A host with eight adapters starts anew.
TEST_F(FlapFilterTest, ManyChangesOfOneSweepCountOnce) {
  const std::vector<EventRecord> gone(8, Event("node.gone", "host:n1")),
      back(8, Event("node.new", "host:n1"));
  EXPECT_THAT(Pass(0, gone), testing::SizeIs(8));
  EXPECT_THAT(Pass(1, back), testing::SizeIs(8));
  EXPECT_THAT(Pass(2, gone), testing::SizeIs(8));
  EXPECT_THAT(Pass(3, back), testing::Contains("node.flapping"));
  EXPECT_THAT(Pass(4, gone), IsEmpty());
  EXPECT_THAT(End(50), ElementsAre("node.steady"));
  EXPECT_THAT(last_.message, HasSubstr("after 5 of them"));
}

TEST_F(FlapFilterTest, ObjectsAndOtherKindsAreApart) {
  for (int i = 0; i < 10; ++i) {
    const std::string object = "switch:" + std::to_string(i);
    EXPECT_THAT(Pass(i, {Event("switch.gone", object), Event("link.rate"),
                         Event("link.down", "fabric"), Event("lids.changed")}),
                testing::SizeIs(4));
  }
}

}  // namespace
}  // namespace coppice::flap_filter_test
