// Calibration through the manager: what is in force, when, and after a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "daemon/tree/calibration/model.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::manager_calibration_test {
namespace {

using ::testing::HasSubstr;
using View = std::shared_ptr<const CalibrationView>;

// A fabric of slow NICs, as the closed forms measure it: type I, two operations, sizes, widths.
std::string SlowSamples() {
  CostProfile truth = *BuiltInProfile("hdr");
  truth.nic = {6.1, 3e-4, 0.31, 9e-4, truth.nic.send_us};
  truth.init_us = 0.42;
  std::string csv = "operation,bytes,members,type,width,microseconds\n";
  for (const char* operation : {"bcast", "reduce", "allreduce"}) {
    for (const uint64_t bytes : {8, 512, 4096}) {
      for (const uint32_t members : {32, 128, 512}) {
        for (const uint32_t width : {2, 8, 32}) {
          LatencySample sample;
          sample.operation = *ParseOperation(operation);
          sample.bytes = bytes, sample.members = members, sample.width = width;
          absl::StrAppend(&csv, operation, ",", bytes, ",", members, ",I,", width, ",",
                          PredictUs(truth, sample), "\n");
        }
      }
    }
  }
  return csv;
}

CalibrateArgs Slow(bool apply) {
  CalibrateArgs args;
  args.samples_csv = SlowSamples();
  args.origin = "slow.csv";
  args.fixed = {"link_us", "nic.send_us", "switch"};
  args.name = "slow";
  args.apply = apply;
  return args;
}

class ManagerCalibrationTest : public ManagerTest {
 protected:
  void SetUp() override { Boot(); }
  absl::StatusOr<View> Calibrate(const CalibrateArgs& args) {
    Answer<View> answer;
    manager_->Calibrate(args, answer.Callback());
    return answer.Get();
  }
  absl::StatusOr<std::shared_ptr<const CostProfile>> Reset() {
    Answer<std::shared_ptr<const CostProfile>> answer;
    manager_->ResetCalibration(answer.Callback());
    return answer.Get();
  }
  std::string InForce() { return manager_->profile()->name; }
  double TimeOfATree() {
    CreateTreeArgs args = TreeOf(NewJob(), TreeType::kTypeI);
    const auto advice = manager_->AdviseTree(args);
    EXPECT_TRUE(advice.ok()) << advice.status();
    return advice.ok() ? advice->record->total_us : 0;
  }
};

TEST_F(ManagerCalibrationTest, AFitAloneChangesNothing) {
  const auto view = Calibrate(Slow(false));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_FALSE((*view)->applied);
  EXPECT_EQ(81u, (*view)->samples.size());
  EXPECT_EQ(81u, (*view)->fit.residuals_us.size());
  EXPECT_NEAR(6.1, (*view)->fit.profile.nic.forward_us, 0.01);
  EXPECT_EQ("hdr", InForce());
  EXPECT_EQ("", kept_.Load()->profile_toml);
  EXPECT_TRUE(EventsOf("profile.").empty());
}

TEST_F(ManagerCalibrationTest, WhatIsAppliedHoldsUntilItIsReset) {
  const double before = TimeOfATree();
  const auto view = Calibrate(Slow(true));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_TRUE((*view)->applied);
  EXPECT_EQ("slow", InForce());
  const double slow = TimeOfATree();
  EXPECT_GT(slow, 2 * before);
  ASSERT_EQ(1u, EventsOf("profile.changed").size());
  EXPECT_THAT(EventsOf("profile.changed")[0].message, HasSubstr("profile slow"));
  Boot();
  EXPECT_EQ("slow", InForce());
  EXPECT_EQ(slow, TimeOfATree());
  const auto reset = Reset();
  ASSERT_TRUE(reset.ok()) << reset.status();
  EXPECT_EQ("hdr", (*reset)->name);
  EXPECT_EQ(before, TimeOfATree());
  Boot();
  EXPECT_EQ("hdr", InForce());
  EXPECT_EQ(before, TimeOfATree());
  EXPECT_TRUE(Reset().ok());  // nothing to reset is well
}

TEST_F(ManagerCalibrationTest, GrantedTreesStayAsTheyWereAnswered) {
  const auto view = Create(TreeOf(NewJob()));
  ASSERT_TRUE(view.ok()) << view.status();
  ASSERT_TRUE(Calibrate(Slow(true)).ok());
  EXPECT_EQ(view->record, manager_->GetTree(view->record->id)->record);
  ExpectConserved();
  EXPECT_TRUE(Release(view->record->id).ok());
  ExpectConserved();
}

TEST_F(ManagerCalibrationTest, TheProfileInForceIsTheBaseOfTheNext) {
  ASSERT_TRUE(Calibrate(Slow(true)).ok());
  CalibrateArgs args = Slow(false);
  args.name.clear();
  args.fixed = {"link_us", "nic", "switch"};  // only init_us is left, against the slow NICs
  const auto view = Calibrate(args);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ("calibrated", (*view)->fit.profile.name);
  EXPECT_NEAR(0.42, (*view)->fit.profile.init_us, 0.01);
}

TEST_F(ManagerCalibrationTest, BadInputIsNamedAndChangesNothing) {
  const auto refused = [&](const CalibrateArgs& args, const char* words) {
    const absl::Status status = Calibrate(args).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_EQ("hdr", InForce());
    EXPECT_EQ("", kept_.Load()->profile_toml);
  };
  CalibrateArgs args = Slow(true);
  args.fixed = {"gravity"};
  refused(args, "gravity");
  args.fixed.assign(65, "link_us");
  refused(args, "65 constants");
  args.fixed = {std::string(65, 'x')};
  refused(args, "fixed: 65 bytes");
  args = Slow(true);
  args.name.assign(257, 'x');
  refused(args, "name: 257 bytes");
  args = Slow(true);
  args.samples_csv += "bcast,8,nobody,I,2,1\n";
  refused(args, "slow.csv, line 83");
  args.samples_csv = "";
  refused(args, "slow.csv");
  args = Slow(true);
  args.fixed.clear();  // the samples alone cannot tell the constants apart
  refused(args, "slow.csv");
}

TEST_F(ManagerCalibrationTest, AStoreThatFailsLeavesTheProfile) {
  store_.Refuse<PutProfile>(absl::UnavailableError("disk is busy"));
  EXPECT_TRUE(absl::IsUnavailable(Calibrate(Slow(true)).status()));
  EXPECT_TRUE(absl::IsUnavailable(Reset().status()));
  EXPECT_EQ("hdr", InForce());
  EXPECT_TRUE(EventsOf("profile.").empty());
}

TEST_F(ManagerCalibrationTest, AStoredProfileThatIsNoneAnyMoreIsToldAndPassedOver) {
  ASSERT_TRUE(kept_.Apply(PutProfile{"link_us = \"far\"\n"}).ok());
  Boot();
  EXPECT_EQ("hdr", InForce());
  const std::vector<EventRecord> events = EventsOf("profile.unusable");
  ASSERT_EQ(1u, events.size());
  EXPECT_EQ("error", events[0].severity);
  EXPECT_THAT(events[0].message, HasSubstr("link_us"));
  EXPECT_THAT(events[0].message, HasSubstr("--reset"));
  ASSERT_TRUE(Reset().ok());
  Boot();
  EXPECT_EQ(1u, EventsOf("profile.unusable").size());
}

}  // namespace
}  // namespace coppice::manager_calibration_test
