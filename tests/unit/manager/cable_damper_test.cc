// Which changes of links are worth a full sweep.
#include <gtest/gtest.h>

#include <vector>

#include "daemon/manager/fabric_events.h"

namespace coppice::cable_damper_test {
namespace {

constexpr LinkChange kDown{Guid(1), PortNum(1), false}, kUp{Guid(1), PortNum(1), true};
constexpr LinkChange kOther{Guid(2), PortNum(3), false};

class CableDamperTest : public testing::Test {
 protected:
  bool IsWorth(std::vector<LinkChange> changes, absl::Duration later = absl::Seconds(1)) {
    now_ += later;
    return damper_.IsWorthASweep(changes, now_);
  }
  // Down and up again, each worth a sweep, which reads what is then.
  void FlapTwice() {
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(IsWorth({kDown}));
      damper_.ReadAll();
      EXPECT_TRUE(i == 1 || IsWorth({kUp}));
      damper_.ReadAll();
    }
  }

  absl::Duration now_ = absl::Seconds(1000);
  CableDamper damper_;
};

TEST_F(CableDamperTest, ACutIsWorthASweepAsLongAsItIsNotRead) {
  EXPECT_TRUE(IsWorth({kDown}));
  EXPECT_TRUE(IsWorth({kDown}));
  damper_.ReadAll();
  EXPECT_FALSE(IsWorth({}));
  EXPECT_TRUE(IsWorth({kUp}));
}

TEST_F(CableDamperTest, OneThatFlapsIsWorthNoneAndDelaysNoOther) {
  FlapTwice();
  EXPECT_FALSE(IsWorth({kUp}));
  EXPECT_FALSE(IsWorth({}));  // down again, as it was read
  EXPECT_FALSE(IsWorth({kUp}));
  EXPECT_TRUE(IsWorth({kUp, kOther}));
  EXPECT_TRUE(IsWorth({kOther}));
}

TEST_F(CableDamperTest, OneThatRestsIsReadOnceMore) {
  FlapTwice();
  EXPECT_FALSE(IsWorth({kUp}));
  EXPECT_FALSE(IsWorth({kUp}, CableDamper::kRest - absl::Seconds(1)));
  EXPECT_TRUE(IsWorth({kUp}));
  damper_.ReadAll();
  EXPECT_FALSE(IsWorth({}));
  EXPECT_TRUE(IsWorth({kDown}, absl::Seconds(40)));
}

}  // namespace
}  // namespace coppice::cable_damper_test
