// What tells of another daemon, and for how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/manager/background.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::other_daemons_test {
namespace {

using testing::HasSubstr;

TEST(OtherDaemonsTest, ASignIsOneEventAndAWarningForAnHour) {
  ScratchStore store;
  ManualClock clock;
  StoreCalls calls(&store);
  EventLog events(&calls, &clock, LiveOptions(ManagerOptions()), [] {});
  OtherDaemons others(5, &events, &clock);
  const auto told = [&] {
    calls.AwaitAll();
    return *store.Events({});
  };
  others.Hear(0, "a new agent");
  others.Hear(5, "an agent of ours");
  EXPECT_TRUE(others.Signs().empty());
  EXPECT_TRUE(told().empty());
  others.Hear(0xab, "the agent of host n1");
  others.Hear(0xab, "the agent of host n2");
  ASSERT_EQ(1u, others.Signs().size());
  EXPECT_THAT(others.Signs()[0], HasSubstr("host n2 was served by the daemon with database "
                                           "00000000000000ab"));
  ASSERT_EQ(1u, told().size());
  EXPECT_EQ("daemon.other", told()[0].kind);
  EXPECT_EQ("database:00000000000000ab", told()[0].object);
  clock.Advance(OtherDaemons::kKept + absl::Seconds(1));
  EXPECT_TRUE(others.Signs().empty());
  others.Hear(0xab, "the agent of host n1");
  EXPECT_EQ(2u, told().size());
}

}  // namespace
}  // namespace coppice::other_daemons_test
