// Another subnet manager takes over while trees are granted: one after the other, with its own idea
// of LIDs, or a standby of higher or lower priority. Cables, and so trees, stay as they are.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/tier.h"
#include "tests/system/living_daemon.h"
#include "tests/unit/manager/standing_trees.h"

namespace coppice::live_takeover_test {
namespace {

class LiveTakeover : public LivingDaemon {
 protected:
  // The daemon, and trees of both types over hosts of every leaf.
  void BeginWithTrees() {
    ForgetAtOnce();
    ASSERT_NO_FATAL_FAILURE(
        Begin({absl::Minutes(5), absl::Milliseconds(100), absl::Milliseconds(200)}));
    std::vector<std::string> hosts;
    for (uint32_t host = 1; host < 64; host += 4) {
      hosts.push_back(absl::StrCat("n", absl::Dec(host, absl::kZeroPad4)));
    }
    const auto job = Register(std::move(hosts));
    ASSERT_TRUE(job.ok()) << job.status();
    for (const TreeType type : {TreeType::kTypeI, TreeType::kTypeII}) {
      const auto tree = Grant(*job, type);
      ASSERT_TRUE(tree.ok()) << tree.status();
      granted_.push_back(*tree);
    }
    ASSERT_NO_FATAL_FAILURE(AwaitSettled());
    before_ = manager_->fabric();
  }

  // The daemon knows who manages the subnet, and nothing but routes has moved.
  void ExpectNothingButRoutesMoved() {
    ASSERT_NO_FATAL_FAILURE(AwaitSettled());
    for (const TreeView& was : granted_) {
      const auto now = manager_->GetTree(was.record->id);
      ASSERT_TRUE(now.ok()) << now.status();
      EXPECT_EQ(was.record->parents, now->record->parents);
      EXPECT_EQ(was.record->switches, now->record->switches);
      EXPECT_EQ(RouteKind::kForwardingTables, now->route_kind);
    }
    for (const char* kind : {"trees.repaired", "trees.revoked", "trees.broken", "link.", "node."}) {
      EXPECT_TRUE(EventsOf(kind).empty()) << kind;
    }
    EXPECT_EQ(12u, CheckLoads(12, &random_));
    ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
  }

  size_t OtherLids() const {
    const Fabric& was = *before_->snapshot->fabric;
    const Fabric& now = *manager_->fabric()->snapshot->fabric;
    size_t others = 0;
    for (uint32_t e = 0; e < was.endpoint_count(); ++e) {
      const auto same = now.FindEndpoint(was.endpoint(EndpointIndex(e)).port_guid);
      others += same && now.endpoint(*same).lid != was.endpoint(EndpointIndex(e)).lid;
    }
    return others;
  }

  std::vector<TreeView> granted_;
  std::shared_ptr<const FabricView> before_;
  std::mt19937_64 random_{TestSeed()};
};

TEST_F(LiveTakeover, TheNextManagerOnAnotherHostKeepsLids) {
  ASSERT_NO_FATAL_FAILURE(BeginWithTrees());
  ASSERT_NO_FATAL_FAILURE(ManageSubnet({"ftree", "n0063"}));
  ASSERT_NO_FATAL_FAILURE(Await("its event", [&] { return !EventsOf("sm.changed").empty(); }));
  ASSERT_NO_FATAL_FAILURE(ExpectNothingButRoutesMoved());
  EXPECT_EQ(1u, EventsOf("sm.changed").size());
  EXPECT_NE(before_->subnet_manager_lid, manager_->fabric()->subnet_manager_lid);
  EXPECT_EQ(0u, OtherLids());
}

// Two LIDs for each port instead of one.
TEST_F(LiveTakeover, TheNextManagerGivesOtherLids) {
  ASSERT_NO_FATAL_FAILURE(BeginWithTrees());
  ASSERT_NO_FATAL_FAILURE(ManageSubnet({"minhop", "n0063", {"-r", "-l", "1"}}));
  ASSERT_NO_FATAL_FAILURE(Await("the event", [&] { return !EventsOf("lids.changed").empty(); }));
  ASSERT_NO_FATAL_FAILURE(ExpectNothingButRoutesMoved());
  EXPECT_FALSE(EventsOf("sm.changed").empty());
  EXPECT_GE(OtherLids(), 32u);
  const Fabric& now = *manager_->fabric()->snapshot->fabric;
  EXPECT_EQ(1, now.endpoint(EndpointIndex(5)).lmc);
}

TEST_F(LiveTakeover, AManagerOfHigherPriorityTakesOverAndIsSurvived) {
  ASSERT_NO_FATAL_FAILURE(BeginWithTrees());
  const std::string patience = subnet_->directory() + "/opensm.conf";
  std::ofstream(patience) << "sminfo_polling_timeout 200\npolling_retry_number 2\n";
  ASSERT_NO_FATAL_FAILURE(ManageSubnet({"ftree", "", {"-p", "1", "-F", patience}}));
  std::unique_ptr<ChildProcess> higher = StartManager({"ftree", "n0063", {"-p", "14"}});
  ASSERT_NE(higher, nullptr);
  ASSERT_NO_FATAL_FAILURE(
      Await("the takeover", [&] { return EventsOf("sm.changed").size() == 1; }));
  const Lid lid_of_higher = manager_->fabric()->subnet_manager_lid;
  EXPECT_NE(before_->subnet_manager_lid, lid_of_higher);
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  higher.reset();
  ASSERT_NO_FATAL_FAILURE(
      Await("the one that waited", [&] { return EventsOf("sm.changed").size() == 2; }));
  EXPECT_EQ(before_->subnet_manager_lid, manager_->fabric()->subnet_manager_lid);
  ASSERT_NO_FATAL_FAILURE(ExpectNothingButRoutesMoved());
}

}  // namespace
}  // namespace coppice::live_takeover_test
