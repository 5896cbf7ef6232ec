// What is behind a silent switch: unreachable like the switch itself, for as long as it is silent,
// and not new when it is seen again. What somebody has seen to be gone is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/manager/fabric_events.h"
#include "daemon/manager/inventory.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::hidden_test {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

using Words = std::vector<std::string>;

// A run of sweeps, each told against the one before.
class HiddenTest : public testing::Test {
 protected:
  // "KIND OBJECT" of what is told of nodes.
  Words SweepTo(const FabricShape& shape, std::vector<UnansweredNode> silent = {}) {
    FabricView view;
    view.snapshot = *MakeSnapshot(SmallFabric(shape), nullptr);
    view.unanswered = std::move(silent);
    when_ += absl::Minutes(10);
    view.unseen = FindUnseen(view.unanswered, *view.snapshot->fabric,
                             view_ ? view_->snapshot->fabric.get() : nullptr,
                             view_ ? view_->unseen : Unseen(), when_);
    Words told;
    for (const EventRecord& event :
         FabricEvents(view_ ? &*view_ : nullptr, view, absl::UnixEpoch())) {
      if (event.kind.substr(0, 5) != "link.") told.push_back(event.kind + " " + event.object);
    }
    view_ = std::move(view);
    return told;
  }
  static UnansweredNode Silent(Guid neighbour, int port) {
    return {"0,1", neighbour, PortNum(static_cast<uint8_t>(port)), "NodeInfo"};
  }
  static std::vector<UnansweredNode> SilentLeaf(int leaf) {
    return {Silent(SpineGuid(0), leaf + 1), Silent(SpineGuid(1), leaf + 1)};
  }
  static Words Hosts(const std::string& kind, uint32_t first, uint32_t last) {
    Words words;
    for (uint32_t host = first; host <= last; ++host) {
      words.push_back("node." + kind + " host:n" + std::to_string(host));
    }
    return words;
  }
  static std::string Switch(const std::string& kind, Guid guid) {
    return "switch." + kind + " switch:" + ToString(guid);
  }
  static Words And(Words words, const Words& others) {
    words.insert(words.end(), others.begin(), others.end());
    return words;
  }

  std::optional<FabricView> view_;
  absl::Duration when_;
};

TEST_F(HiddenTest, HostsOfASilentLeafAreUnreachableAndComeBack) {
  SweepTo({});
  const FabricShape less{.missing_leaves = {1}};
  EXPECT_THAT(SweepTo(less, SilentLeaf(1)),
              UnorderedElementsAreArray(
                  And(Hosts("unreachable", 4, 7), {Switch("unreachable", LeafGuid(1))})));
  EXPECT_EQ(4u, view_->unseen.hidden->nodes.size());
  EXPECT_THAT(SweepTo(less, SilentLeaf(1)), IsEmpty());
  // Something else happens meanwhile.
  EXPECT_THAT(SweepTo({.missing_hosts = {9}, .missing_leaves = {1}}, SilentLeaf(1)),
              UnorderedElementsAreArray(Hosts("gone", 9, 9)));
  EXPECT_THAT(
      SweepTo({.missing_hosts = {9}}),
      UnorderedElementsAreArray(And(Hosts("reachable", 4, 7), {Switch("reachable", LeafGuid(1))})));
  EXPECT_EQ(nullptr, view_->unseen.hidden);
}

// First leaf 1 is silent, then both spines are, the only way to it.
TEST_F(HiddenTest, WhatIsSilentBehindTheSilentIsNotGone) {
  SweepTo({});
  SweepTo({.missing_leaves = {1}}, SilentLeaf(1));
  const FabricShape alone{.missing_spines = {0, 1}, .missing_leaves = {1, 2, 3}};
  const Words spines = {Switch("unreachable", SpineGuid(0)), Switch("unreachable", SpineGuid(1))};
  const Words leaves = {Switch("unreachable", LeafGuid(2)), Switch("unreachable", LeafGuid(3))};
  EXPECT_THAT(SweepTo(alone, {Silent(LeafGuid(0), 1), Silent(LeafGuid(0), 2)}),
              UnorderedElementsAreArray(And(And(Hosts("unreachable", 8, 15), spines), leaves)));
  const Words back = SweepTo({});
  EXPECT_THAT(back, testing::IsSupersetOf(
                        And(Hosts("reachable", 4, 15), {Switch("reachable", LeafGuid(1))})));
  EXPECT_THAT(back, testing::Each(testing::HasSubstr(".reachable ")));
}

TEST_F(HiddenTest, WhoeverIsMissingWhenItAnswersAgainIsGone) {
  SweepTo({});
  SweepTo({.missing_leaves = {1}}, SilentLeaf(1));
  EXPECT_THAT(
      SweepTo({.missing_hosts = {6}}),
      UnorderedElementsAreArray(And(And(Hosts("reachable", 4, 5), Hosts("reachable", 7, 7)),
                                    {Switch("reachable", LeafGuid(1)), "node.gone host:n6"})));
}

TEST_F(HiddenTest, TheyGoWithTheSwitch) {
  SweepTo({});
  SweepTo({.missing_leaves = {1}}, SilentLeaf(1));
  EXPECT_THAT(SweepTo({.missing_leaves = {1}}),
              UnorderedElementsAreArray(And(Hosts("gone", 4, 7), {Switch("gone", LeafGuid(1))})));
  EXPECT_THAT(SweepTo({}),
              UnorderedElementsAreArray(And(Hosts("new", 4, 7), {Switch("new", LeafGuid(1))})));
}

// Leaf 2 has lost power: its neighbours say so, and leaf 1's silence is no excuse.
TEST_F(HiddenTest, SilenceElsewhereHidesNobody) {
  SweepTo({});
  EXPECT_THAT(SweepTo({.missing_leaves = {1, 2}}, SilentLeaf(1)),
              UnorderedElementsAreArray(
                  And(And(Hosts("unreachable", 4, 7), Hosts("gone", 8, 11)),
                      {Switch("unreachable", LeafGuid(1)), Switch("gone", LeafGuid(2))})));
  EXPECT_EQ(absl::InfiniteDuration(), HiddenSince(view_->unseen, PortGuid(8)));
  EXPECT_EQ(when_, HiddenSince(view_->unseen, PortGuid(4)));
}

// Both spines are silent: from leaf 0 nobody sees the other leaves, nor their hosts.
TEST_F(HiddenTest, WhoIsBehindWhoIsBehindIsHiddenToo) {
  SweepTo({});
  const FabricShape less{.missing_spines = {0, 1}, .missing_leaves = {1, 2, 3}};
  const std::vector<UnansweredNode> silent = {Silent(LeafGuid(0), 1), Silent(LeafGuid(0), 2)};
  const auto all = [](const std::string& kind) {
    Words words = Hosts(kind, 4, 15);
    for (int spine = 0; spine < 2; ++spine) words.push_back(Switch(kind, SpineGuid(spine)));
    for (int leaf = 1; leaf < 4; ++leaf) words.push_back(Switch(kind, LeafGuid(leaf)));
    return words;
  };
  EXPECT_THAT(SweepTo(less, silent), UnorderedElementsAreArray(all("unreachable")));
  EXPECT_THAT(SweepTo(less, silent), IsEmpty());
  EXPECT_THAT(SweepTo({}), UnorderedElementsAreArray(all("reachable")));
}

// A second silence that begins while the first lasts, and outlasts it.
TEST_F(HiddenTest, FromOneSilenceToTheNext) {
  SweepTo({});
  SweepTo({.missing_leaves = {1}}, SilentLeaf(1));
  auto both = SilentLeaf(1);
  const auto second = SilentLeaf(2);
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_THAT(SweepTo({.missing_leaves = {1, 2}}, both),
              UnorderedElementsAreArray(
                  And(Hosts("unreachable", 8, 11), {Switch("unreachable", LeafGuid(2))})));
  EXPECT_THAT(
      SweepTo({.missing_leaves = {2}}, second),
      UnorderedElementsAreArray(And(Hosts("reachable", 4, 7), {Switch("reachable", LeafGuid(1))})));
  EXPECT_THAT(SweepTo({}), UnorderedElementsAreArray(
                               And(Hosts("reachable", 8, 11), {Switch("reachable", LeafGuid(2))})));
}

}  // namespace
}  // namespace coppice::hidden_test
