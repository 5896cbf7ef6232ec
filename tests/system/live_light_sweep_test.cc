// Light sweeps of a live subnet: cables that are cut and mended on the simulator's console, ports
// that flap, switches that fall silent, packets that are lost, and another subnet manager.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/tier.h"
#include "tests/system/live_subnet.h"

namespace coppice::live_light_sweep_test {
namespace {

class LiveLightSweep : public LiveSubnet {
 protected:
  void Console(const std::string& command) {
    const absl::StatusOr<std::string> said = subnet_->Console(command);
    ASSERT_TRUE(said.ok()) << said.status();
  }

  LightSweepResult LightSweepOrFail() {
    absl::StatusOr<LightSweepResult> result = port_->LightSweep();
    if (!result.ok()) {
      ADD_FAILURE() << result.status();
      return {};
    }
    return *std::move(result);
  }

  void ExpectNoChange() {
    const LightSweepResult result = LightSweepOrFail();
    EXPECT_FALSE(result.has_changed) << result.what;
    EXPECT_TRUE(result.unanswered.empty()) << result.unanswered.front().what;
  }
};

TEST_F(LiveLightSweep, NeedsAFullSweepBefore) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  EXPECT_TRUE(absl::IsFailedPrecondition(port_->LightSweep().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(port_->ReadCounters().status()));
}

// And every switch who it is: another may be behind its cables.
TEST_F(LiveLightSweep, WithoutChangeEverySwitchPortIsAskedOnce) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  const SweepResult swept = SweepOrFail();
  ASSERT_NE(swept.fabric, nullptr);
  EXPECT_NE(swept.subnet_manager_lid, Lid(0));
  uint64_t ports = 0;
  for (uint32_t s = 0; s < swept.fabric->switch_count(); ++s) {
    ports += swept.fabric->switch_info(SwitchIndex(s)).port_count + 1;
  }
  for (int round = 0; round < 3; ++round) {
    const LightSweepResult result = LightSweepOrFail();
    EXPECT_FALSE(result.has_changed) << result.what;
    EXPECT_EQ(result.mads_sent, ports + swept.fabric->switch_count() + 1 + result.mads_resent);
    EXPECT_LT(result.mads_sent, swept.mads_sent);
  }
}

// Every kind of cable, cut and mended, 5 times or 100.
TEST_F(LiveLightSweep, CutAndMendedCablesAreSeenAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  std::mt19937_64 random(TestSeed());
  SweepOrFail();
  for (int round = 0; round < (FullTier() ? 100 : 5) && !HasFailure(); ++round) {
    const std::string host = absl::StrCat("\"n0", 100 + random() % 400, "\"[1]");
    const std::string spine = absl::StrCat("\"S", random() % 16, "\"[", 1 + random() % 32, "]");
    for (const std::string& end : {host, spine}) {
      ASSERT_NO_FATAL_FAILURE(Console("Unlink " + end));
      const LightSweepResult cut = LightSweepOrFail();
      EXPECT_TRUE(cut.has_changed) << end;
      EXPECT_TRUE(absl::StrContains(cut.what, "the link is down")) << cut.what;
      EXPECT_EQ(cut.mads_timed_out, 0u) << end;  // nobody is waited for
      SweepOrFail();
      ExpectNoChange();
      ASSERT_NO_FATAL_FAILURE(Console("ReLink " + end));
      const LightSweepResult mended = LightSweepOrFail();
      EXPECT_TRUE(mended.has_changed) << end;
      EXPECT_TRUE(absl::StrContains(mended.what, "the link is up")) << mended.what;
      EXPECT_EQ(mended.mads_timed_out, 0u) << end;
      SweepOrFail();
      ExpectNoChange();
    }
  }
}

// Every cable of the local leaf to a spine: the way to half of the switches leads over one of them.
TEST_F(LiveLightSweep, CutCablesOnTheWayAndADeadSwitchAreNotWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  for (int spine = 0; spine < 16 && !HasFailure(); ++spine) {
    SweepOrFail();
    const std::string name = absl::StrCat("\"S", spine, "\"");
    for (const std::string& target : {name + "[1]", name}) {
      ASSERT_NO_FATAL_FAILURE(Console("Unlink " + target));
      const LightSweepResult lost = LightSweepOrFail();
      EXPECT_TRUE(absl::StrContains(lost.what, "the link is down")) << target << lost.what;
      EXPECT_EQ(lost.mads_timed_out, 0u) << target;
      ASSERT_NO_FATAL_FAILURE(Console("ReLink " + target));
    }
  }
}

TEST_F(LiveLightSweep, TheSwitchAndPortOfACutCableAreNamed) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  SweepOrFail();
  ASSERT_NO_FATAL_FAILURE(Console("Unlink \"n0100\"[1]"));
  const LightSweepResult result = LightSweepOrFail();
  EXPECT_TRUE(absl::StartsWith(result.what, "switch L6 port ")) << result.what;
}

TEST_F(LiveLightSweep, ALinkThatCameBackBetweenTwoLooksIsNoChange) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  SweepOrFail();
  ASSERT_NO_FATAL_FAILURE(Console("Unlink \"S5\"[3]"));
  ASSERT_NO_FATAL_FAILURE(Console("ReLink \"S5\"[3]"));
  ExpectNoChange();
}

TEST_F(LiveLightSweep, ASwitchThatFallsSilentIsAChangeOnceAndItsVoiceAgain) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  SweepOrFail();
  ASSERT_NO_FATAL_FAILURE(Console("Error \"S3\" 100"));
  const LightSweepResult lost = LightSweepOrFail();
  EXPECT_TRUE(lost.has_changed);
  EXPECT_EQ(lost.what, "switch S3 does not answer any more");
  EXPECT_EQ(lost.unanswered.size(), 1u);
  ASSERT_TRUE(port_->Sweep({}).ok());
  const LightSweepResult known = LightSweepOrFail();
  EXPECT_FALSE(known.has_changed) << known.what;
  EXPECT_FALSE(known.unanswered.empty());
  ASSERT_NO_FATAL_FAILURE(Console("Error \"S3\" 0"));
  const LightSweepResult back = LightSweepOrFail();
  EXPECT_TRUE(back.has_changed);
  EXPECT_TRUE(absl::StrContains(back.what, "answers now")) << back.what;
  SweepOrFail();
  ExpectNoChange();
}

TEST_F(LiveLightSweep, LostPacketsAreNoChange) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  SweepOrFail();
  for (const char* rate : {"1", "10"}) {
    for (int s = 0; s < 16; ++s) {
      ASSERT_NO_FATAL_FAILURE(Console(absl::StrCat("Error \"S", s, "\" ", rate)));
    }
    uint64_t resent = 0;
    for (int round = 0; round < 5; ++round) {
      const LightSweepResult result = LightSweepOrFail();
      EXPECT_FALSE(result.has_changed) << result.what;
      resent += result.mads_resent;
    }
    EXPECT_GT(resent, 0u);
  }
}

TEST_F(LiveLightSweep, AnotherSubnetManagerIsSeen) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  const Lid before = SweepOrFail().subnet_manager_lid;
  const auto opensm_elsewhere = [&] {
    return subnet_->Run(
        {"env", "SIM_HOST=n0300", "opensm", "--once", "-R", "ftree", "-f", "osm-elsewhere.log"},
        absl::Minutes(5));
  };
  const absl::StatusOr<std::string> moved = opensm_elsewhere();
  ASSERT_TRUE(moved.ok()) << moved.status();
  const LightSweepResult result = LightSweepOrFail();
  EXPECT_TRUE(result.has_changed);
  EXPECT_TRUE(absl::StrContains(result.what, "subnet manager")) << result.what;
  const Lid after = SweepOrFail().subnet_manager_lid;
  EXPECT_NE(after, before);
  ExpectNoChange();
}

TEST_F(LiveLightSweep, AFrozenSubnetIsUnavailableAndThenThereAgain) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  SweepOrFail();
  ASSERT_TRUE(port_->ReadCounters().ok());
  subnet_->Freeze();
  EXPECT_TRUE(absl::IsUnavailable(port_->LightSweep().status()));
  EXPECT_TRUE(absl::IsUnavailable(port_->ReadCounters().status()));
  subnet_->Thaw();
  ExpectNoChange();
  EXPECT_TRUE(port_->ReadCounters()->unanswered.empty());
}

TEST_F(LiveLightSweep, AnUnpluggedLocalPortIsUnavailable) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  SweepOrFail();
  ASSERT_NO_FATAL_FAILURE(Console("Unlink \"n0000\"[1]"));
  const absl::Status status = port_->LightSweep().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "umad:ibsim0:1")) << status;
}

}  // namespace
}  // namespace coppice::live_light_sweep_test
