#include <gtest/gtest.h>

#include "daemon/manager/tables.h"

namespace coppice::activity_test {
namespace {

TEST(ActivityTest, NothingHappenedGivesNoEvent) {
  Activity activity;
  EXPECT_TRUE(activity.Take(absl::UnixEpoch()).empty());
}

TEST(ActivityTest, OneEventForAllTreesAndOnePerExhaustedSwitch) {
  Activity activity;
  for (int i = 0; i < 1000; ++i) activity.Granted();
  activity.Released(7);
  activity.Refused({{Guid(0x100), 4}, {Guid(0x101), 0}});
  activity.Refused({{Guid(0x100), 4}});
  const std::vector<EventRecord> events = activity.Take(absl::UnixEpoch());
  ASSERT_EQ(2u, events.size());
  EXPECT_EQ("trees.changed", events[0].kind);
  EXPECT_EQ(
      "since the last such event 1000 trees were granted, 7 released, 2 refused for want of "
      "entries",
      events[0].message);
  EXPECT_EQ("entries.exhausted", events[1].kind);
  EXPECT_EQ("switch:0000000000000100", events[1].object);
  EXPECT_EQ("none of its 4 entries was free for 2 trees that asked for one", events[1].message);
  EXPECT_TRUE(activity.Take(absl::UnixEpoch()).empty());
}

TEST(ActivityTest, TotalsGoOnOverPeriods) {
  Activity activity;
  for (int period = 0; period < 3; ++period) {
    activity.Granted(5);
    activity.Released(2);
    activity.Refused({});
    activity.Repaired();
    activity.Revoked();
    EXPECT_EQ(1u, activity.Take(absl::UnixEpoch()).size());
  }
  EXPECT_EQ(15u, activity.totals().granted);
  EXPECT_EQ(6u, activity.totals().released);
  EXPECT_EQ(3u, activity.totals().refused);
  EXPECT_EQ(3u, activity.totals().repaired);
  EXPECT_EQ(3u, activity.totals().revoked);
}

TEST(ActivityTest, AFloodOfSwitchesIsCutShort) {
  Activity activity;
  for (uint64_t i = 0; i < 100; ++i) activity.Refused({{Guid(i + 1), 4}});
  const std::vector<EventRecord> events = activity.Take(absl::UnixEpoch());
  ASSERT_EQ(34u, events.size());
  EXPECT_EQ("68 more switches had no entry left; see `entries`", events.back().message);
}

}  // namespace
}  // namespace coppice::activity_test
