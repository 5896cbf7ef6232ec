// A disk that is full while the subnet changes: who asks is told, what was granted stays granted,
// what the sweeps could not write is written once there is space, and a restart finds all of it.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/small_disk.h"
#include "tests/system/living_daemon.h"
#include "tests/unit/manager/standing_trees.h"

namespace coppice::live_disk_test {
namespace {

class LiveDisk : public LivingDaemon {
 protected:
  ~LiveDisk() override {
    manager_.reset();
    store_.reset();
    directory_.clear();  // the disk's
  }

  void BeginOnIt() {
    directory_ = disk_.path();
    ASSERT_NO_FATAL_FAILURE(
        Begin({absl::Minutes(5), absl::Milliseconds(100), absl::Milliseconds(200)}));
    std::vector<std::string> hosts;
    for (uint32_t host = 8; host < 40; ++host) {
      hosts.push_back(absl::StrCat("n", absl::Dec(host, absl::kZeroPad4)));
    }
    const auto job = Register(std::move(hosts));
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *job;
    ASSERT_TRUE(GrantOne(TreeType::kTypeII).ok());
    ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  }

  absl::Status GrantOne(TreeType type) {
    const auto tree = Grant(job_, type);
    if (!tree.ok()) return tree.status();
    granted_.insert(tree->record->id);
    return absl::OkStatus();
  }

  std::set<TreeId> Trees() const {
    std::set<TreeId> ids;
    for (const TreeView& tree : manager_->ListTrees(JobId(), TreeId(), 1u << 20)) {
      ids.insert(tree.record->id);
    }
    return ids;
  }

  // Grants until there is no space for one more, and as long as there is not.
  absl::Status GrantToTheEnd() {
    absl::Status status;
    while (status.ok()) status = GrantOne(TreeType::kTypeI);
    return status;
  }

  // As the database's errors have it.
  bool NamesTheDisk(const std::string& text) const {
    return absl::StrContains(text, "coppice.db") &&
           (absl::StrContains(text, "disk full") ||
            (!disk_.is_real() && absl::StrContains(text, "check the disk")));
  }

  SmallDisk disk_;
  JobId job_;
  std::set<TreeId> granted_;
};

TEST_F(LiveDisk, AFullDiskIsToldAndLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(BeginOnIt());
  const std::string cable = CableOf(*manager_->GetTree(*granted_.begin())->record);
  const std::shared_ptr<const FabricView> before = manager_->fabric();
  disk_.Fill();
  const absl::Status refused = GrantToTheEnd();
  EXPECT_TRUE(NamesTheDisk(refused.ToString())) << refused;
  EXPECT_EQ(granted_, Trees());

  // What the sweep saw cannot be written, so it is not in force; looking goes on.
  ASSERT_NO_FATAL_FAILURE(Console("Unlink " + cable));
  ASSERT_NO_FATAL_FAILURE(Await("a sweep that cannot be written", [&] {
    EXPECT_FALSE(GrantToTheEnd().ok());
    return NamesTheDisk(manager_->Sweeps().full.last_error);
  }));
  EXPECT_TRUE(NamesTheDisk(manager_->Counts().last_sweep_error));
  EXPECT_EQ(before->snapshot->fabric, manager_->fabric()->snapshot->fabric);
  ASSERT_NO_FATAL_FAILURE(Await("counters that cannot be written", [&] {
    return NamesTheDisk(manager_->Sweeps().counters.last_error);
  }));
  EXPECT_EQ(granted_, Trees());

  disk_.Free();
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  ASSERT_NO_FATAL_FAILURE(
      Await("the counters", [&] { return manager_->Sweeps().counters.last_error.empty(); }));
  EXPECT_EQ(granted_, Trees());
  EXPECT_EQ(1u, EventsOf("link.down").size());
  EXPECT_TRUE(EventsOf("trees.revoked").empty());
  EXPECT_TRUE(GrantOne(TreeType::kTypeII).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());

  const absl::Status opened = OpenDaemon();
  ASSERT_TRUE(opened.ok()) << opened;
  EXPECT_EQ(granted_, Trees());
  ASSERT_TRUE(manager_->Sweep().ok());
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

TEST_F(LiveDisk, ARestartOnAFullDiskLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(BeginOnIt());
  disk_.Fill();
  const absl::Status refused = GrantToTheEnd();
  EXPECT_TRUE(NamesTheDisk(refused.ToString())) << refused;
  const absl::Status opened = OpenDaemon();
  EXPECT_TRUE(opened.ok() || NamesTheDisk(opened.ToString())) << opened;
  disk_.Free();
  if (!opened.ok()) {
    const absl::Status again = OpenDaemon();
    ASSERT_TRUE(again.ok()) << again;
  }
  EXPECT_EQ(granted_, Trees());
  ASSERT_NO_FATAL_FAILURE(Await("a sweep", [&] { return manager_->Sweep().ok(); }));
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  EXPECT_EQ(granted_, Trees());
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

}  // namespace
}  // namespace coppice::live_disk_test
