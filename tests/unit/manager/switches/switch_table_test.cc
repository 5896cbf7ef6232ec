#include "daemon/manager/switches/switch_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/tier.h"
#include "tests/unit/manager/switches/played_switch.h"

namespace coppice::switch_table_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

//        S3 (root)
//       /  |   \        three ranks below S1, one rank and S1 and S2 below S3,
//     r3  S1    S2      two below S2
TreeRecord ThreeSwitches(int64_t id = 7, uint32_t revision = 2) {
  TreeRecord record;
  record.id = TreeId(id);
  record.revision = revision;
  record.type = 2;
  record.ranks = {0, 1, 2, 3, 4, 5};
  record.parents = {6, 6, 6, 8, 7, 7, 8, 8, -1};
  record.switches = {{Guid(1), 3}, {Guid(2), 2}, {Guid(3), 3}};
  record.carriage = {std::string(16, 'k'), 1024, 4};
  return record;
}

TEST(SwitchTableTest, ATreeIsAnEntryInEachOfItsSwitches) {
  EXPECT_THAT(NumbersAtParents(ThreeSwitches()), ElementsAre(0, 1, 2, 0, 0, 1, 1, 2, 0));
  const std::optional<CarriedTree> tree = CarriedTreeOf(ThreeSwitches());
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->group, (SwitchGroup{TreeId(7), 2}));
  EXPECT_THAT(tree->entries, ElementsAre(CarriedEntry{Guid(1), Guid(3), 1, 3},
                                         CarriedEntry{Guid(2), Guid(3), 2, 2},
                                         CarriedEntry{Guid(3), Guid(0), 0, 3}));
}

TEST(SwitchTableTest, WhatHasNoSwitchAboveAMemberIsNotCarried) {
  TreeRecord type1;
  type1.ranks = {0, 1};
  type1.parents = {-1, 0};
  EXPECT_FALSE(CarriedTreeOf(type1).has_value());
  TreeRecord mixed = ThreeSwitches();
  mixed.parents[1] = 0;
  EXPECT_FALSE(CarriedTreeOf(mixed).has_value());
  mixed = ThreeSwitches();
  mixed.parents[6] = 2;
  EXPECT_FALSE(CarriedTreeOf(mixed).has_value());
}

TEST(SwitchTableTest, RefusesHellosThatCannotBe) {
  const SwitchHello good{Guid(5), "10.0.0.7:18516", "1.0", Able(), {}};
  EXPECT_TRUE(CheckSwitchHello(good).ok());
  const auto refused = [&](const std::function<void(SwitchHello&)>& spoil, const char* words) {
    SwitchHello hello = good;
    spoil(hello);
    const absl::Status status = CheckSwitchHello(hello);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  refused([](SwitchHello& h) { h.guid = Guid(0); }, "hello.switch_guid");
  refused([](SwitchHello& h) { h.address = "10.0.0.7"; }, "hello.address");
  refused([](SwitchHello& h) { h.address = ""; }, "HOST:PORT");
  refused([](SwitchHello& h) { h.version = std::string(300, 'v'); }, "hello.version");
  refused([](SwitchHello& h) { h.version = "1.0\x1b[31m"; }, "hello.version: holds the control");
  refused([](SwitchHello& h) { h.version = "1.0\xff"; }, "give a version in plain text");
  refused([](SwitchHello& h) { h.abilities.entries = 0; }, "entries: 0");
  refused([](SwitchHello& h) { h.abilities.entries = 4097; }, "1 to 4096");
  refused([](SwitchHello& h) { h.abilities.children = 1; }, "children: 1");
  refused([](SwitchHello& h) { h.abilities.children = 1 << 30; }, "children");
  refused([](SwitchHello& h) { h.abilities.segment_bytes = 63; }, "segment_bytes: 63");
  refused([](SwitchHello& h) { h.abilities.segment_bytes = 65537; }, "segment_bytes: 65537");
  refused([](SwitchHello& h) { h.abilities.window = 0; }, "window: 0");
  refused([](SwitchHello& h) { h.abilities.operations = 0; }, "operations: none");
  refused([](SwitchHello& h) { h.abilities.types = 0; }, "types: none");
  refused([](SwitchHello& h) { h.abilities.memory_bytes = 8 * 32 * 64 - 1; }, "at least 16384");
  refused([](SwitchHello& h) { h.groups.resize(9); }, "9 of a switch of 8 entries");
}

// Whatever trees come, in whatever order: the entries run out, the memory does not.
TEST(SwitchTableTest, TermsKeepEveryEntryWithinItsShareOfTheMemory) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < (FullTier() ? 100'000 : 2'000); ++round) {
    CarriedTree tree;
    std::vector<SwitchAbilities> abilities;
    for (uint64_t i = 0, n = 1 + below(4); i < n; ++i) {
      SwitchAbilities one = Able(static_cast<uint32_t>(1 + below(kMaxSwitchEntries)),
                                 static_cast<uint32_t>(2 + below(200)));
      one.segment_bytes =
          static_cast<uint32_t>(kMinSegmentBytes + below(kMaxSegmentBytes - kMinSegmentBytes + 1));
      one.window = static_cast<uint32_t>(1 + below(64));
      const uint64_t least = uint64_t{one.entries} * one.children * kMinSegmentBytes;
      one.memory_bytes = least + below(4) * below(least * 1000);
      ASSERT_TRUE(CheckSwitchHello({Guid(1), "a:1", "", one, {}}).ok());
      abilities.push_back(one);
      tree.entries.push_back(
          {Guid(i + 1), Guid(0), 0, static_cast<uint32_t>(1 + below(one.children))});
    }
    const CarriageRecord terms = TermsFor(tree, abilities);
    ASSERT_GE(terms.segment_bytes, kMinSegmentBytes);
    ASSERT_EQ(terms.segment_bytes % kMinSegmentBytes, 0u);
    ASSERT_GE(terms.window, 1u);
    for (size_t i = 0; i < abilities.size(); ++i) {
      ASSERT_LE(terms.segment_bytes, abilities[i].segment_bytes);
      ASSERT_LE(terms.window, abilities[i].window);
      ASSERT_LE(uint64_t{terms.segment_bytes} * terms.window * tree.entries[i].children *
                    abilities[i].entries,
                abilities[i].memory_bytes)
          << "round " << round;
    }
  }
}

TEST(SwitchTableTest, TwoInFlightComeBeforeLongSegments) {
  CarriedTree tree;
  tree.entries = {{Guid(1), Guid(0), 0, 4}};
  SwitchAbilities able = Able(1, 4);
  able.memory_bytes = 4 * 4096;  // one long segment of each child
  CarriageRecord terms = TermsFor(tree, {able});
  EXPECT_EQ(terms.segment_bytes, 2048u);
  EXPECT_EQ(terms.window, 2u);
  able.memory_bytes = 4 * 4096 * 8;
  terms = TermsFor(tree, {able});
  EXPECT_EQ(terms.segment_bytes, 4096u);
  EXPECT_EQ(terms.window, 8u);
}

TEST(SwitchTableTest, TheNewestAgentSpeaks) {
  SwitchTable table;
  PlayedSwitch played(Guid(9));
  const auto link = std::make_shared<SwitchLink>(played.NewLink());
  const auto first = table.Enter(played.Hello(), link, absl::UnixEpoch(), "a");
  EXPECT_EQ(first.replaced, 0u);
  const auto second = table.Enter(played.Hello(), link, absl::UnixEpoch(), "a");
  EXPECT_EQ(second.replaced, first.session);
  EXPECT_EQ(table.connected_count(), 1u);
  EXPECT_FALSE(table.Leave(first.session, absl::UnixEpoch(), {}, {}).has_value());
  EXPECT_EQ(table.Leave(second.session, absl::UnixEpoch(), {}, absl::Seconds(5)), Guid(9));
  EXPECT_EQ(table.Find(Guid(9)), nullptr);
  ASSERT_EQ(table.List(Guid(0), 10).size(), 1u);
  EXPECT_FALSE(table.List(Guid(0), 10)[0].connected);
  EXPECT_THAT(table.List(Guid(9), 10), IsEmpty());
}

TEST(SwitchTableTest, WhoIsGoneIsGivenUpOnce) {
  SwitchTable table;
  PlayedSwitch played(Guid(9));
  const auto entered = table.Enter(played.Hello(), std::make_shared<SwitchLink>(played.NewLink()),
                                   absl::UnixEpoch(), "a");
  table.Expect(Guid(9), absl::UnixEpoch(), {}, {});  // it is known
  table.Expect(Guid(10), absl::UnixEpoch(), absl::Seconds(100), absl::Seconds(60));
  table.Leave(entered.session, absl::UnixEpoch(), absl::Seconds(100), absl::Seconds(5));
  absl::Duration next = absl::InfiniteDuration();
  EXPECT_THAT(table.GiveUp(absl::Seconds(104), next), IsEmpty());
  EXPECT_EQ(next, absl::Seconds(1));
  EXPECT_THAT(table.GiveUp(absl::Seconds(105), next), ElementsAre(Guid(9)));
  EXPECT_THAT(table.GiveUp(absl::Seconds(159), next), IsEmpty());
  EXPECT_THAT(table.GiveUp(absl::Seconds(160), next), ElementsAre(Guid(10)));
  EXPECT_THAT(table.List(Guid(0), 10), testing::SizeIs(1));  // of the other nothing is known
}

TEST(SwitchTableTest, HoldsWhatItIsToldUntilItIsDropped) {
  SwitchTable table;
  table.Hold(*CarriedTreeOf(ThreeSwitches(7, 2)));
  table.Hold(*CarriedTreeOf(ThreeSwitches(7, 3)));
  table.Hold(*CarriedTreeOf(ThreeSwitches(8, 1)));
  const SwitchGroup second{TreeId(7), 2}, third{TreeId(7), 3}, other{TreeId(8), 1};
  EXPECT_THAT(table.HeldBy(Guid(2)), ElementsAre(second, third, other));
  EXPECT_THAT(table.RevisionsOf(TreeId(7)), ElementsAre(second, third));
  EXPECT_TRUE(table.Drop(second).has_value());
  EXPECT_FALSE(table.Drop(second).has_value());
  EXPECT_THAT(table.HeldBy(Guid(2)), ElementsAre(third, other));
  EXPECT_FALSE(table.Holds(Guid(2), second));
  EXPECT_THAT(table.HeldBy(Guid(4)), IsEmpty());
}

TEST(SwitchTableTest, AnEntryTellsWhereItsParentListens) {
  SwitchTable table;
  table.Hold(*CarriedTreeOf(ThreeSwitches()));
  const SwitchGroup group{TreeId(7), 2};
  EXPECT_FALSE(table.EntryOf(group, Guid(1)).has_value());  // nobody knows yet
  EXPECT_FALSE(table.EntryOf(group, Guid(4)).has_value());
  const std::optional<SwitchEntry> root = table.EntryOf(group, Guid(3));
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(root->parent_address, "");
  PlayedSwitch parent(Guid(3));
  table.Enter(parent.Hello(), std::make_shared<SwitchLink>(parent.NewLink()), absl::UnixEpoch(),
              "a");
  const std::optional<SwitchEntry> entry = table.EntryOf(group, Guid(2));
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->parent_address, parent.address());
  EXPECT_EQ(entry->parent, Guid(3));
  EXPECT_EQ(entry->number_at_parent, 2u);
  EXPECT_EQ(entry->children, 2u);
  EXPECT_EQ(entry->key, std::string(16, 'k'));
  EXPECT_EQ(entry->segment_bytes, 1024u);
  EXPECT_EQ(entry->window, 4u);
}

}  // namespace
}  // namespace coppice::switch_table_test
