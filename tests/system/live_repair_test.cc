// A granted tree on a live subnet: its cable is cut, the sweep moves it, the watcher is told, and
// the database holds the new revision only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/manager/change_feed.h"
#include "tests/system/live_manager.h"

namespace coppice::live_repair_test {
namespace {

class LiveRepair : public LiveManager {
 protected:
  // A tree of type II over the first hosts of two leaves.
  absl::StatusOr<TreeView> GrantTree() {
    RegisterJobArgs job;
    for (int host = 0; host < 32; ++host) {
      job.endpoints.push_back(absl::StrCat("n", absl::Dec(host, absl::kZeroPad4)));
    }
    const auto registered = Register(std::move(job));
    if (!registered.ok()) return registered.status();
    CreateTreeArgs args;
    args.job = registered->record->id;
    args.type = TreeType::kTypeII;
    return Create(std::move(args));
  }
  // The end at a leaf of a cable between switches that the tree crosses: "L0"[17].
  std::string CableOf(const TreeRecord& record) {
    const FabricView& view = *manager_->fabric();
    const Fabric& fabric = *view.snapshot->fabric;
    for (uint32_t l = 0; l < fabric.link_count(); ++l) {
      const LinkInfo& link = fabric.link(LinkIndex(l));
      if (!std::binary_search(record.links.begin(), record.links.end(), (*view.link_ids)[l])) {
        continue;
      }
      if (!fabric.IsSwitch(link.a) || !fabric.IsSwitch(link.b)) continue;
      lost_ = (*view.link_ids)[l];
      return absl::StrCat("\"", fabric.switch_info(fabric.AsSwitch(link.a)).description, "\"[",
                          link.a_port.value(), "]");
    }
    return "";
  }

  int64_t lost_ = 0;  // id of the link that CableOf named
};

TEST_F(LiveRepair, ACutCableMovesItsTree) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  ASSERT_NO_FATAL_FAILURE(Boot());
  const auto tree = GrantTree();
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_EQ(2, tree->record->type);
  auto watch = manager_->WatchTrees(JobId(), "", [] {});
  ASSERT_TRUE(watch.ok());
  ASSERT_EQ(2u, (*watch)->Next(10)->size());
  const std::string cable = CableOf(*tree->record);
  ASSERT_NE("", cable);
  const auto said = subnet_->Console("Unlink " + cable);
  ASSERT_TRUE(said.ok()) << said.status();
  const auto view = manager_->Sweep();
  ASSERT_TRUE(view.ok()) << view.status();
  const auto changes = (*watch)->Next(10);
  ASSERT_TRUE(changes.ok());
  ASSERT_EQ(1u, changes->size()) << cable;
  const TreeChange& change = (*changes)[0];
  EXPECT_EQ(TreeChangeKind::kRevised, change.kind);
  EXPECT_THAT(change.reason, testing::HasSubstr("gone"));
  const TreeRecord& now = *change.tree.record;
  EXPECT_EQ(tree->record->id, now.id);
  EXPECT_EQ(2u, now.revision);
  EXPECT_EQ(2, now.type);
  EXPECT_FALSE(std::binary_search(now.links.begin(), now.links.end(), lost_));
  for (const int64_t link : now.links) {
    EXPECT_NE((*view)->link_ids->end(),
              std::find((*view)->link_ids->begin(), (*view)->link_ids->end(), link));
  }
  const auto stored = store_->Load();
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_EQ(1u, stored->trees.size());
  EXPECT_EQ(now, stored->trees[0]);
  uint64_t taken = 0;
  for (const EntryUse& use : stored->entries) taken += use.entries_taken;
  EXPECT_EQ(now.switches.size(), taken);
  EXPECT_EQ(taken, manager_->Counts().entries_taken);
}

}  // namespace
}  // namespace coppice::live_repair_test
