// The table's bounds, which the switch enforces whatever the daemon believes: each refusal names
// its bound, and after any number of installs and removals the count is what is there.
#include "agents/switch/entry_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/tier.h"

namespace coppice::entry_table_test {
namespace {

using ::testing::HasSubstr;

TableLimits SmallLimits() {
  TableLimits limits;
  limits.entries = 3;
  limits.children = 8;
  limits.segment_bytes = 1024;
  limits.window = 4;
  limits.memory_bytes = 40'000;
  return limits;
}

EntrySpec Spec(uint64_t tree, uint32_t revision = 1, uint32_t children = 2, uint32_t window = 1) {
  EntrySpec spec;
  spec.group = {tree, revision};
  spec.key.fill(static_cast<char>(tree));
  spec.children = children;
  spec.segment_bytes = 1000;
  spec.window = window;
  return spec;
}

std::string MessageOf(const absl::StatusOr<EntryTable::Installed>& installed) {
  return std::string(installed.status().message());
}

TEST(EntryTable, RefusesWhatIsAboveABoundAndNamesIt) {
  EntryTable table(SmallLimits());
  EXPECT_TRUE(absl::IsInvalidArgument(table.Install(Spec(1, 1, 0)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(table.Install(Spec(1, 1, 2, 0)).status()));
  EXPECT_THAT(MessageOf(table.Install(Spec(1, 1, 2, 5))), HasSubstr("window"));
  EntrySpec longer = Spec(1);
  longer.segment_bytes = 1025;
  EXPECT_THAT(MessageOf(table.Install(longer)), HasSubstr("segment_bytes"));
  EntrySpec nowhere = Spec(1);
  nowhere.parent = EntryParent{"nowhere", "", 0};
  EXPECT_THAT(MessageOf(table.Install(nowhere)), HasSubstr("parent_address"));
  const auto children = table.Install(Spec(1, 1, 9));
  EXPECT_TRUE(absl::IsResourceExhausted(children.status()));
  EXPECT_THAT(MessageOf(children), HasSubstr("--children"));
  ASSERT_TRUE(table.Install(Spec(1, 1, 8, 4)).ok());  // 32,000 bytes
  const auto memory = table.Install(Spec(2, 1, 3, 3));
  EXPECT_TRUE(absl::IsResourceExhausted(memory.status()));
  EXPECT_THAT(MessageOf(memory), HasSubstr("--memory"));
  ASSERT_TRUE(table.Install(Spec(2)).ok());
  ASSERT_TRUE(table.Install(Spec(3)).ok());
  const auto entries = table.Install(Spec(4));
  EXPECT_TRUE(absl::IsResourceExhausted(entries.status()));
  EXPECT_THAT(MessageOf(entries), HasSubstr("--entries"));
  // A new revision needs no other entry, and not the memory of the old one besides its own.
  EXPECT_EQ(*table.Install(Spec(1, 2, 8, 4)), EntryTable::Installed::kReplaced);
  EXPECT_TRUE(table.Remove({2, 1}));
  EXPECT_TRUE(table.Install(Spec(4)).ok());
}

TEST(EntryTable, TakesHigherRevisionsOnly) {
  EntryTable table(SmallLimits());
  EXPECT_EQ(*table.Install(Spec(1, 5)), EntryTable::Installed::kNew);
  EXPECT_EQ(*table.Install(Spec(1, 5)), EntryTable::Installed::kAlready);
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Install(Spec(1, 4)).status()));
  EXPECT_THAT(MessageOf(table.Install(Spec(1, 5, 3))), HasSubstr("other content"));
  EXPECT_TRUE(table.Find(1)->Break());
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Install(Spec(1, 5)).status()));
  EXPECT_THAT(table.Broken(), testing::ElementsAre(Group{1, 5}));
  EXPECT_EQ(*table.Install(Spec(1, 6)), EntryTable::Installed::kReplaced);
  EXPECT_THAT(table.Broken(), testing::IsEmpty());
  EXPECT_FALSE(table.Remove({1, 5}));
  EXPECT_TRUE(table.Remove({1, 6}));
  EXPECT_EQ(table.memory_bytes(), 0);
}

TEST(EntryTable, AdmitsWhoHasTheKeyOfThisRevision) {
  EntryTable table(SmallLimits());
  ASSERT_TRUE(table.Install(Spec(1, 5)).ok());
  FrameHeader hello;
  hello.kind = FrameKind::kHello;
  hello.group = {1, 5};
  LinkKey key = Spec(1).key, wrong = key;
  wrong.back() ^= 1;
  EXPECT_EQ(table.Admit(hello, wrong), Refusal::kWrongKey);
  hello.group = {1, 4};
  EXPECT_EQ(table.Admit(hello, key), Refusal::kStaleRevision);
  hello.group = {2, 5};
  EXPECT_EQ(table.Admit(hello, key), Refusal::kNoSuchTree);
  hello.group = {1, 5};
  hello.child = 2;
  EXPECT_EQ(table.Admit(hello, key), Refusal::kNoSuchChild);
  hello.child = 1;
  EXPECT_EQ(table.Admit(hello, key), Refusal::kNone);
  EXPECT_EQ(table.Admit(hello, key), Refusal::kChildTaken);
}

TEST(EntryTable, KeepsWhatTheDaemonLists) {
  EntryTable table(SmallLimits());
  for (const uint64_t tree : {7, 3, 5}) ASSERT_TRUE(table.Install(Spec(tree, 2)).ok());
  const std::vector<Group> keep = {{5, 2}, {9, 1}, {3, 1}};
  EXPECT_THAT(table.Strangers(keep), testing::ElementsAre(Group{3, 2}, Group{7, 2}));
  EXPECT_THAT(table.Groups(), testing::ElementsAre(Group{3, 2}, Group{5, 2}, Group{7, 2}));
}

TEST(EntryTable, CountsRightAfterAnyInstallsAndRemovals) {
  std::mt19937_64 random(TestSeed());
  const TableLimits limits = SmallLimits();
  EntryTable table(limits);
  std::map<uint64_t, EntrySpec> oracle;
  int refused = 0;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t tree = 1 + random() % 6;
    const EntrySpec spec = Spec(tree, 1 + random() % 5, 1 + random() % 9, 1 + random() % 4);
    if (random() % 3 == 0) {
      const auto there = oracle.find(tree);
      const bool is_there = there != oracle.end() && there->second.group == spec.group;
      ASSERT_EQ(table.Remove(spec.group), is_there);
      if (is_there) oracle.erase(tree);
    } else {
      std::map<uint64_t, EntrySpec> after = oracle;
      after[tree] = spec;
      uint64_t memory = 0;
      for (const auto& [number, entry] : after) memory += entry.MemoryBytes();
      const auto there = oracle.find(tree);
      const bool is_newer =
          there == oracle.end() || there->second.group.revision < spec.group.revision;
      const bool is_same = there != oracle.end() && there->second == spec;
      const bool fits = after.size() <= limits.entries && memory <= limits.memory_bytes &&
                        spec.children <= limits.children;
      ASSERT_EQ(table.Install(spec).ok(), is_same || (is_newer && fits));
      if (is_newer && fits) oracle = after;
      refused += !fits;
    }
    uint64_t memory = 0;
    for (const auto& [number, entry] : oracle) memory += entry.MemoryBytes();
    ASSERT_EQ(table.memory_bytes(), memory);
    ASSERT_EQ(table.size(), oracle.size());
  }
  EXPECT_GT(refused, 1'000);
}

}  // namespace
}  // namespace coppice::entry_table_test
