#include "daemon/manager/entry_ledger.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/support/tier.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::entry_ledger_test {
namespace {

std::vector<EntryUse> UsesOf(const Fabric& fabric, uint32_t total, uint32_t reserved) {
  std::vector<EntryUse> uses;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    uses.push_back({{fabric.switch_info(SwitchIndex(s)).guid, total, reserved, 8}, 0});
  }
  return uses;
}

std::vector<TreeSwitchRecord> RecordsOf(const Fabric& fabric,
                                        const std::vector<SwitchIndex>& switches) {
  std::vector<TreeSwitchRecord> records;
  for (const SwitchIndex s : switches) records.push_back({fabric.switch_info(s).guid, 1});
  return records;
}

constexpr absl::Time kCame = absl::UnixEpoch();

std::vector<TreeId> TreesOf(const EntryLedger& ledger, Guid guid) {
  std::vector<TreeId> trees;
  for (const EntryLedger::Holder& holder : ledger.TreesOf(guid)) trees.push_back(holder.tree);
  return trees;
}

TEST(EntryLedgerTest, ReservesAllOrNothing) {
  const auto fabric = SmallFabric();
  EntryLedger ledger;
  ledger.Rebase(*fabric, UsesOf(*fabric, 3, 1));
  const std::vector<SwitchIndex> one = {SwitchIndex(0)}, both = {SwitchIndex(1), SwitchIndex(0)};
  EXPECT_EQ(2u, ledger.capacity()[0].entries_free);
  EXPECT_EQ(3u * fabric->switch_count(), ledger.entries_total());
  EXPECT_EQ(fabric->switch_count(), ledger.entries_reserved());
  EXPECT_TRUE(ledger.Reserve(one));
  EXPECT_TRUE(ledger.Reserve(one));
  EXPECT_FALSE(ledger.Reserve(both));
  EXPECT_EQ(2u, ledger.capacity()[1].entries_free);
  EXPECT_EQ(2u, ledger.entries_taken());
  EXPECT_TRUE(ledger.TreesOf(LeafGuid(0)).empty());  // reserved, not granted
  ledger.Settle(TreeId(9), RecordsOf(*fabric, one), kCame);
  ledger.Cancel(RecordsOf(*fabric, one));
  EXPECT_EQ(std::vector<TreeId>{TreeId(9)}, TreesOf(ledger, LeafGuid(0)));
  EXPECT_EQ(1u, ledger.Use(LeafGuid(0)).entries_taken);
  EXPECT_TRUE(ledger.Reserve(both));
  ledger.Unsettle(TreeId(9), RecordsOf(*fabric, one));
  EXPECT_TRUE(ledger.TreesOf(LeafGuid(0)).empty());
  EXPECT_FALSE(ledger.Reserve(one));
  ledger.Cancel(RecordsOf(*fabric, one));
  EXPECT_TRUE(ledger.Reserve(one));
}

TEST(EntryLedgerTest, ReservesManyTreesOrNone) {
  const auto fabric = SmallFabric();
  EntryLedger ledger;
  ledger.Rebase(*fabric, UsesOf(*fabric, 2, 0));
  const std::vector<SwitchIndex> one = {SwitchIndex(0)}, both = {SwitchIndex(1), SwitchIndex(0)};
  EXPECT_FALSE(ledger.ReserveAll({one, both, one}));  // switch 0 has two entries
  EXPECT_EQ(0u, ledger.entries_taken());
  EXPECT_EQ(2u, ledger.capacity()[0].entries_free);
  EXPECT_EQ(2u, ledger.capacity()[1].entries_free);
  EXPECT_TRUE(ledger.ReserveAll({one, both, {}}));
  EXPECT_EQ(3u, ledger.entries_taken());
  EXPECT_EQ(0u, ledger.capacity()[0].entries_free);
  EXPECT_FALSE(ledger.ReserveAll({one}));
  EXPECT_TRUE(ledger.ReserveAll({}));
  ledger.Cancel(RecordsOf(*fabric, one));
  ledger.Cancel(RecordsOf(*fabric, both));
  EXPECT_EQ(0u, ledger.entries_taken());
}

TEST(EntryLedgerTest, ASwitchesOwnWordCountsAndWhoIsAwayGivesNothing) {
  const auto fabric = SmallFabric();
  EntryLedger ledger;
  ledger.Rebase(*fabric, UsesOf(*fabric, 3, 1));
  const std::vector<SwitchIndex> one = {SwitchIndex(0)};
  ASSERT_TRUE(ledger.Reserve(one));
  ledger.Settle(TreeId(9), RecordsOf(*fabric, one), kCame);
  ledger.SetCapability({LeafGuid(0), 5, 0, 7});
  EXPECT_EQ(4u, ledger.capacity()[0].entries_free);
  EXPECT_EQ(7u, ledger.capacity()[0].degree_limit);
  EXPECT_EQ(5u + 3u * (fabric->switch_count() - 1), ledger.entries_total());
  ledger.SetAway(LeafGuid(0), true);
  EXPECT_FALSE(ledger.Reserve(one));
  EXPECT_FALSE(ledger.ClaimMore(std::vector<EntryLedger::Claim>{{LeafGuid(0), 1}}));
  EXPECT_EQ(0u, ledger.capacity()[0].entries_total);
  EXPECT_EQ(3u * (fabric->switch_count() - 1), ledger.entries_total());
  EXPECT_EQ(fabric->switch_count() - 1, ledger.entries_reserved());
  EXPECT_EQ(1u, ledger.Use(LeafGuid(0)).entries_taken);  // what it gave stays given
  ledger.Rebase(*fabric, UsesOf(*fabric, 3, 1));         // a sweep brings nobody back
  EXPECT_FALSE(ledger.Reserve(one));
  ledger.SetAway(LeafGuid(0), false);
  EXPECT_TRUE(ledger.Reserve(one));
}

// By its own word alone, for as long as it is there: what an administrator or a sweep says of it
// does not make it speak.
TEST(EntryLedgerTest, WhoSpokeSpeaksUnlessAway) {
  const auto fabric = SmallFabric();
  EntryLedger ledger;
  const auto speaking = [&] {
    std::vector<uint32_t> those;
    for (uint32_t s = 0; s < ledger.capacity().size(); ++s) {
      if (ledger.capacity()[s].speaks) those.push_back(s);
    }
    return those;
  };
  using Those = std::vector<uint32_t>;
  ledger.Rebase(*fabric, UsesOf(*fabric, 3, 1));
  EXPECT_EQ(Those{}, speaking());
  ledger.SetCapability({LeafGuid(0), 5, 0, 7});
  EXPECT_EQ(Those{0}, speaking());
  ledger.Rebase(*fabric, UsesOf(*fabric, 3, 1));
  EXPECT_EQ(Those{0}, speaking());
  ASSERT_TRUE(ledger.Reserve({SwitchIndex(0)}));  // as entries come and go
  EXPECT_EQ(Those{0}, speaking());
  ledger.SetAway(LeafGuid(0), true);
  EXPECT_EQ(Those{}, speaking());
  ledger.Rebase(*fabric, UsesOf(*fabric, 3, 1));
  EXPECT_EQ(Those{}, speaking());
  ledger.SetAway(LeafGuid(0), false);
  EXPECT_EQ(Those{0}, speaking());
  // One that the fabric lacks so far speaks once it is cabled.
  EntryLedger early;
  early.SetCapability({LeafGuid(1), 5, 0, 7});
  EXPECT_TRUE(early.capacity().empty());
  early.Rebase(*fabric, UsesOf(*fabric, 3, 1));
  EXPECT_FALSE(early.capacity()[0].speaks);
  EXPECT_TRUE(early.capacity()[1].speaks);
}

TEST(EntryLedgerTest, ASwitchThatCannotAggregateGivesNothing) {
  const auto fabric = SmallFabric();
  EntryLedger ledger;
  ledger.Rebase(*fabric, {});
  EXPECT_FALSE(ledger.Reserve({SwitchIndex(0)}));
  EXPECT_FALSE(ledger.Reserve({SwitchIndex(600)}));  // nor one that does not exist
  EXPECT_TRUE(ledger.Reserve({}));
}

TEST(EntryLedgerTest, TreesOfAnEarlierRunCountBeforeAnyFabricIsKnown) {
  const auto fabric = SmallFabric();
  EntryLedger ledger;
  ledger.SetCapabilities(UsesOf(*fabric, 2, 0));
  ledger.Restore(TreeId(4), {{LeafGuid(0), 3}, {Guid(0xdead), 3}}, kCame);
  EXPECT_EQ(2u, ledger.entries_taken());
  ledger.Rebase(*fabric, UsesOf(*fabric, 2, 0));
  EXPECT_EQ(1u, ledger.capacity()[0].entries_free);
  EXPECT_EQ(std::vector<TreeId>{TreeId(4)}, TreesOf(ledger, Guid(0xdead)));
  ledger.Release(TreeId(4), {{LeafGuid(0), 3}, {Guid(0xdead), 3}});
  EXPECT_EQ(0u, ledger.entries_taken());
  EXPECT_EQ(2u, ledger.capacity()[0].entries_free);
}

TEST(EntryLedgerTest, RandomOperationsAgreeWithAModel) {
  const auto whole = SmallFabric(), part = SmallFabric({.leaves = 3, .spines = 1});
  std::mt19937_64 random(TestSeed());
  constexpr uint32_t kTotal = 4, kReserved = 1;
  EntryLedger ledger;
  const Fabric* fabric = whole.get();
  ledger.Rebase(*fabric, UsesOf(*fabric, kTotal, kReserved));
  struct Held {
    std::vector<TreeSwitchRecord> records;
    bool granted = false;
  };
  std::map<int64_t, Held> held;
  std::map<Guid, std::vector<TreeId>> came;  // granted, as they came
  int64_t next = 1;
  const auto taken_of = [&](Guid guid) {
    uint32_t taken = 0;
    for (const auto& [id, tree] : held) {
      for (const TreeSwitchRecord& record : tree.records) taken += record.guid == guid;
    }
    return taken;
  };
  for (int step = 0; step < (FullTier() ? 200'000 : 5'000); ++step) {
    const uint64_t action = random() % 10;
    if (action < 5) {
      std::set<SwitchIndex> chosen;
      for (uint64_t n = random() % 3; n > 0; --n) {
        chosen.insert(SwitchIndex(static_cast<uint32_t>(random() % fabric->switch_count())));
      }
      const std::vector<SwitchIndex> switches(chosen.begin(), chosen.end());
      bool fits = true;
      for (const TreeSwitchRecord& record : RecordsOf(*fabric, switches)) {
        fits = fits && taken_of(record.guid) < kTotal - kReserved;
      }
      ASSERT_EQ(fits, ledger.Reserve(switches));
      if (fits) held[next++] = {RecordsOf(*fabric, switches), false};
    } else if (action < 9 && !held.empty()) {
      const auto it = std::next(held.begin(), static_cast<int64_t>(random() % held.size()));
      if (!it->second.granted && random() % 2 == 0) {
        ledger.Settle(TreeId(it->first), it->second.records, kCame);
        for (const TreeSwitchRecord& record : it->second.records) {
          came[record.guid].push_back(TreeId(it->first));
        }
        it->second.granted = true;
      } else {
        if (it->second.granted) {
          ledger.Release(TreeId(it->first), it->second.records);
          for (const TreeSwitchRecord& record : it->second.records) {
            std::erase(came[record.guid], TreeId(it->first));
          }
        } else {
          ledger.Cancel(it->second.records);
        }
        held.erase(it);
      }
    } else if (action == 9 && step % 50 == 0) {
      fabric = fabric == whole.get() ? part.get() : whole.get();
      ledger.Rebase(*fabric, UsesOf(*fabric, kTotal, kReserved));
    }
    uint64_t sum = 0;
    for (const auto& [id, tree] : held) sum += tree.records.size();
    ASSERT_EQ(sum, ledger.entries_taken());
    for (uint32_t s = 0; s < fabric->switch_count(); ++s) {
      const uint32_t taken = taken_of(fabric->switch_info(SwitchIndex(s)).guid);
      ASSERT_EQ(kTotal - kReserved - taken, ledger.capacity()[s].entries_free);
    }
    for (const auto& [guid, trees] : came) ASSERT_EQ(trees, TreesOf(ledger, guid));
  }
}

}  // namespace
}  // namespace coppice::entry_ledger_test
