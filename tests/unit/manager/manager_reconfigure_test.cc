// Other options for a manager that runs: what holds at once, what stays, and that a store which
// refuses leaves all as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice::manager_reconfigure_test {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;

class ManagerReconfigureTest : public ManagerTest {
 protected:
  void SetUp() override { Boot(Options(/*entries=*/4)); }
  auto EachHasEntries(uint32_t total) {
    return Each(Field("entries_total", &SwitchEntries::entries_total, total));
  }
};

TEST_F(ManagerReconfigureTest, RulesHoldForThePublishedFabric) {
  const uint64_t version = manager_->fabric()->snapshot->fabric->version();
  const JobId job = NewJob();
  const auto tree = StartCreate(TreeOf(job)).Get();
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_THAT(manager_->Entries(), EachHasEntries(4));
  ASSERT_TRUE(manager_->Reconfigure(Options(/*entries=*/9)).ok());
  EXPECT_THAT(manager_->Entries(), EachHasEntries(9));
  EXPECT_EQ(manager_->fabric()->snapshot->fabric->version(), version);
  // Fewer than are taken: what is taken stays, and nothing more is granted there.
  ManagerOptions none = Options();
  none.capability_rules.clear();
  ASSERT_TRUE(manager_->Reconfigure(none).ok());
  EXPECT_TRUE(manager_->GetTree(tree->record->id).ok());
  EXPECT_FALSE(StartCreate(TreeOf(job)).Get().ok());
  // And the next sweep that sees a change goes by the same rules.
  port_.Set(SmallFabric({.missing_hosts = {3}}));
  ASSERT_TRUE(manager_->Reconfigure(Options(/*entries=*/7)).ok());
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_THAT(manager_->Entries(), EachHasEntries(7));
}

TEST_F(ManagerReconfigureTest, LeasesAndLimitsHoldForWhatIsAskedNext) {
  const JobId before = NewJob();
  ManagerOptions options = Options();
  options.default_lease = absl::Seconds(90);
  options.max_trees_per_job = 1;
  ASSERT_TRUE(manager_->Reconfigure(options).ok());
  EXPECT_EQ(manager_->GetJob(before)->record->lease, absl::Seconds(60));
  EXPECT_EQ(manager_->GetJob(NewJob())->record->lease, absl::Seconds(90));
  EXPECT_TRUE(StartCreate(TreeOf(before)).Get().ok());
  const absl::Status second = StartCreate(TreeOf(before)).Get().status();
  EXPECT_TRUE(absl::IsResourceExhausted(second)) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr("trees_per_job is 1"));
}

TEST_F(ManagerReconfigureTest, AProfileIsInForceUnlessACalibratedOneIs) {
  ManagerOptions options = Options();
  options.profile = *BuiltInProfile("paper");
  ASSERT_TRUE(manager_->Reconfigure(options).ok());
  EXPECT_EQ(manager_->profile()->name, "paper");
  Answer<std::shared_ptr<const CostProfile>> reset;
  manager_->ResetCalibration(reset.Callback());
  EXPECT_EQ((*reset.Get())->name, "paper");
}

TEST_F(ManagerReconfigureTest, AStoreThatRefusesLeavesAllAsItWas) {
  store_.Refuse<PutCapabilities>(absl::ResourceExhaustedError("disk full"));
  ManagerOptions options = Options(/*entries=*/9);
  options.default_lease = absl::Seconds(90);
  options.profile = *BuiltInProfile("paper");
  EXPECT_TRUE(absl::IsResourceExhausted(manager_->Reconfigure(options)));
  EXPECT_THAT(manager_->Entries(), EachHasEntries(4));
  EXPECT_EQ(manager_->profile()->name, "hdr");
  EXPECT_EQ(manager_->GetJob(NewJob())->record->lease, absl::Seconds(60));
  store_.Obey();
  EXPECT_TRUE(manager_->Reconfigure(options).ok());
  EXPECT_THAT(manager_->Entries(), EachHasEntries(9));
}

}  // namespace
}  // namespace coppice::manager_reconfigure_test
