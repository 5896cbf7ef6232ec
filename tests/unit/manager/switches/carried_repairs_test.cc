// Trees that switches carry, when something has gone: reconciled after a restart, revised, waited
// for, and through a long random life.
#include <atomic>
#include <random>

#include "tests/support/tier.h"
#include "tests/unit/manager/switches/carried_trees_fixture.h"

namespace coppice::carried_repairs_test {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class CarriedRepairsTest : public CarriedTreesTest {};

TEST_F(CarriedRepairsTest, ARestartOfTheDaemonReconciles) {
  Boot(Options(4, 7));
  JoinAll();
  const JobId job = JobOf(0, 7);
  const auto kept = Create(TreeOf(job)), gone = Create(TreeOf(job));
  ASSERT_TRUE(kept.ok() && gone.ok());
  LeaveAll();
  ASSERT_TRUE(Release(gone->record->id).ok());  // nobody could be told
  Boot(Options(4, 7));
  EXPECT_EQ(manager_->GetTree(kept->record->id)->record->carriage, kept->record->carriage);
  JoinAll();
  ExpectReconciled();
  const auto next = Create(TreeOf(job));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(next->record->carriage.key, SizeIs(16));
  ExpectReconciled();
}

TEST_F(CarriedRepairsTest, AfterARestartWhoStaysAwayIsGoneRound) {
  Boot(Options(4, 7));
  JoinAll();
  const JobId job = JobOf(0, 7);
  const auto tree = Create(TreeOf(job));
  ASSERT_TRUE(tree.ok()) << tree.status();
  const Guid spine = SpineOf(*tree->record);
  LeaveAll();
  Boot(Options(4, 7));
  for (auto& [guid, played] : played_) {
    if (guid != spine) played->Join(manager_->switches());
  }
  const auto another = Create(TreeOf(job));
  ASSERT_TRUE(another.ok()) << another.status();
  EXPECT_NE(SpineOf(*another->record), spine);
  EXPECT_THAT(another->record->carriage.key, SizeIs(16));
  clock_.Advance(SwitchInstaller::kRestartPatience);
  manager_->switches().Expire();
  ASSERT_TRUE(ManagerPeer::RepairTrees(*manager_));
  const auto now = manager_->GetTree(tree->record->id);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->record->revision, 2u);
  EXPECT_NE(SpineOf(*now->record), spine);
  EXPECT_THAT(now->record->carriage.key, SizeIs(16));
  ExpectReconciled();
}

// No switch speaks yet, so that none has an entry for it.
TEST_F(CarriedRepairsTest, WhatBrokeOverARestartWaitsForTheSwitches) {
  Boot(Options(4, 7));
  JoinAll();
  const auto tree = Create(TreeOf(JobOf(0, 7)));
  ASSERT_TRUE(tree.ok()) << tree.status();
  const Guid spine = SpineOf(*tree->record);
  const auto index = static_cast<uint32_t>(spine.value() - SpineGuid(0).value());
  LeaveAll();
  port_.Set(SmallFabric({.missing_cables = {{0, index}}}));
  Boot(Options(0, 7));  // by the rules there are no entries either
  EXPECT_EQ(manager_->GetTree(tree->record->id)->record->revision, 1u);
  EXPECT_THAT(EventsOf("trees.revoked"), IsEmpty());
  JoinAll();
  ASSERT_TRUE(manager_->Sweep().ok());
  const auto now = manager_->GetTree(tree->record->id);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_NE(SpineOf(*now->record), spine);
  EXPECT_THAT(now->record->carriage.key, SizeIs(16));
  ExpectReconciled();
}

TEST_F(CarriedRepairsTest, ARestartOfTheSwitchesReconciles) {
  Boot(Options(4, 7));
  JoinAll();
  ASSERT_TRUE(Create(TreeOf(JobOf(0, 7))).ok());
  LeaveAll();
  for (auto& [guid, played] : played_) played->Forget();
  Boot(Options(4, 7));
  JoinAll();
  ExpectReconciled();
}

TEST_F(CarriedRepairsTest, ARepairInstallsTheNewRevisionAndRemovesTheOld) {
  Boot(Options(4, 7));
  JoinAll();
  const auto tree = Create(TreeOf(JobOf(0, 7)));
  ASSERT_TRUE(tree.ok());
  const Guid spine = SpineOf(*tree->record);
  const auto index = static_cast<uint32_t>(spine.value() - SpineGuid(0).value());
  port_.Set(SmallFabric({.missing_cables = {{0, index}}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  const auto now = manager_->GetTree(tree->record->id);
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now->record->revision, 2u);
  EXPECT_NE(SpineOf(*now->record), spine);
  EXPECT_THAT(now->record->carriage.key, SizeIs(16));
  EXPECT_NE(now->record->carriage.key, tree->record->carriage.key);
  ExpectReconciled();
  EXPECT_THAT(At(spine).groups(), IsEmpty());
}

TEST_F(CarriedRepairsTest, ARepairGoesRoundWhoRefuses) {
  Boot(Options(4, 7));
  JoinAll();
  const auto tree = Create(TreeOf(JobOf(0, 7)));
  ASSERT_TRUE(tree.ok());
  const Guid spine = SpineOf(*tree->record);
  const Guid other = SpineGuid(spine == SpineGuid(0) ? 1 : 0);
  At(other).Say(Refuses);
  const auto index = static_cast<uint32_t>(spine.value() - SpineGuid(0).value());
  port_.Set(SmallFabric({.missing_cables = {{0, index}}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  // There is no third spine: it has no tree, or one without that switch.
  const auto now = manager_->GetTree(tree->record->id);
  if (now.ok()) {
    EXPECT_NE(SpineOf(*now->record), other);
  } else {
    EXPECT_THAT(EventsOf("trees.revoked"), SizeIs(1));
  }
  ExpectReconciled();
}

TEST_F(CarriedRepairsTest, ARefusalInARepairCostsNoOtherTree) {
  Boot(Options(8, 7));
  port_.Set(SmallFabric({.spines = 3}));
  ASSERT_TRUE(manager_->Sweep().ok());
  played_[SpineGuid(2)] = std::make_unique<PlayedSwitch>(SpineGuid(2), Able(8, 7));
  JoinAll();
  const auto tree = Create(TreeOf(JobOf(0, 7)));
  ASSERT_TRUE(tree.ok()) << tree.status();
  const Guid spine = SpineOf(*tree->record);
  const JobId others = JobOf(8, 15);
  TreeId refused;
  for (int i = 0; i < 6 && refused == TreeId(); ++i) {
    const auto other = Create(TreeOf(others));
    ASSERT_TRUE(other.ok()) << other.status();
    if (SpineOf(*other->record) == spine) refused = other->record->id;
  }
  ASSERT_NE(refused, TreeId()) << "no tree over " << ToString(spine);
  At(LeafGuid(3)).Say(Refuses);
  std::atomic<int> installs = 0;
  At(LeafGuid(0)).Say([&](const SwitchEntry&) {
    ++installs;
    return std::string();
  });
  const auto index = static_cast<uint32_t>(spine.value() - SpineGuid(0).value());
  port_.Set(SmallFabric({.spines = 3, .missing_spines = {index}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  const auto now = manager_->GetTree(tree->record->id);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->record->revision, 2u);
  EXPECT_THAT(now->record->carriage.key, SizeIs(16));
  EXPECT_EQ(installs, 1);
  const auto events = EventsOf("trees.repaired");
  ASSERT_THAT(events, Not(IsEmpty()));
  EXPECT_THAT(events[0].message, HasSubstr(absl::StrCat(tree->record->id.value(), " (")));
  const auto planned = manager_->GetTree(refused);
  if (planned.ok()) {
    EXPECT_THAT(GuidsOf(*planned->record), Not(testing::Contains(LeafGuid(3))));
  }
  ExpectReconciled();
}

// Each of two trees fills a spine; both are broken, and take what the other leaves.
TEST_F(CarriedRepairsTest, TreesThatChangePlacesInFullSwitchesAreTaken) {
  BootWithSmallSpines();
  const auto one = Create(TreeOf(JobOf(0, 7))), other = Create(TreeOf(JobOf(8, 15)));
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  const Guid spine = SpineOf(*one->record);
  ASSERT_NE(SpineOf(*other->record), spine);
  const auto index = static_cast<uint32_t>(spine.value() - SpineGuid(0).value());
  port_.Set(SmallFabric({.missing_cables = {{0, index}, {2, 1 - index}}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  const auto moved = manager_->GetTree(one->record->id),
             back = manager_->GetTree(other->record->id);
  ASSERT_TRUE(moved.ok() && back.ok()) << moved.status() << back.status();
  EXPECT_EQ(SpineOf(*moved->record), SpineOf(*other->record));
  EXPECT_EQ(SpineOf(*back->record), spine);
  EXPECT_EQ(manager_->Counts().switches.refusals, 0u);
  ExpectReconciled();
}

TEST_F(CarriedRepairsTest, EntriesOfATreeThatIsReleasedInItsRepairAreFreeAfterThat) {
  BootWithSmallSpines();
  const JobId job = JobOf(0, 7);
  const auto tree = Create(TreeOf(job));
  ASSERT_TRUE(tree.ok()) << tree.status();
  const Guid spine = SpineOf(*tree->record);
  absl::StatusOr<TreeView> next = absl::UnknownError("");
  At(spine).Say([&](const SwitchEntry& entry) -> std::optional<std::string> {
    if (entry.group != SwitchGroup{tree->record->id, 2}) return "";
    EXPECT_TRUE(Release(tree->record->id).ok());
    next = Create(TreeOf(job));
    return "";
  });
  SwitchReport report;
  report.broken = {{tree->record->id, 1}};
  manager_->switches().TakeReport(At(spine).session(), report);
  ManagerPeer::RepairTrees(*manager_);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_NE(SpineOf(*next->record), spine);
  const auto after = Create(TreeOf(job));
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(SpineOf(*after->record), spine);
  EXPECT_EQ(manager_->Counts().switches.refusals, 0u);
  ExpectReconciled();
}

// Another tree of the same repair is released meanwhile, so that the rest is given once more.
TEST_F(CarriedRepairsTest, ARepairSaysOnceThatNothingIsCarried) {
  Boot(Options(8, 7));
  const JobId job = JobOf(0, 7);
  const auto first = Create(TreeOf(job));
  ASSERT_TRUE(first.ok()) << first.status();
  const Guid spine = SpineOf(*first->record);
  ASSERT_TRUE(Release(first->record->id).ok());
  for (auto& [guid, played] : played_) {
    if (guid == spine || guid < SpineGuid(0)) played->Join(manager_->switches());
  }
  const auto next = [&] {
    for (int i = 0; i < 4; ++i) {
      const auto tree = Create(TreeOf(job));
      EXPECT_TRUE(tree.ok()) << tree.status();
      if (tree.ok() && SpineOf(*tree->record) == spine) return tree->record->id;
    }
    ADD_FAILURE() << "no tree over " << ToString(spine);
    return TreeId();
  };
  const TreeId tree = next(), gone = next();
  ASSERT_THAT(manager_->GetTree(tree)->record->carriage.key, SizeIs(16));
  const auto index = static_cast<uint32_t>(spine.value() - SpineGuid(0).value());
  port_.Set(SmallFabric({.missing_cables = {{0, index}}}));
  store_.HoldBack([](const Mutation& m) { return std::holds_alternative<ChangeTrees>(m); });
  std::thread sweeping([&] { EXPECT_TRUE(manager_->Sweep().ok()); });
  while (store_.held() == 0) std::this_thread::yield();
  EXPECT_TRUE(Release(gone).ok());
  store_.LetGo();
  sweeping.join();
  const auto now = manager_->GetTree(tree);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->record->revision, 2u);
  const std::string& reason = now->record->reason;
  const size_t at = reason.find("; it carries no data");
  ASSERT_NE(at, std::string::npos) << reason;
  EXPECT_EQ(reason.find("; it carries no data", at + 1), std::string::npos) << reason;
  ExpectReconciled();
}

TEST_F(CarriedRepairsTest, TreesLeaveASwitchThatStaysAway) {
  Boot(Options(4, 7));
  JoinAll();
  const auto tree = Create(TreeOf(JobOf(0, 7))), apart = Create(TreeOf(JobOf(8, 11)));
  ASSERT_TRUE(tree.ok() && apart.ok());
  const Guid spine = SpineOf(*tree->record);
  At(spine).Leave();
  ASSERT_TRUE(ManagerPeer::RepairTrees(*manager_));
  EXPECT_EQ(manager_->GetTree(tree->record->id)->record->revision, 1u);  // it is waited for
  clock_.Advance(SwitchInstaller::kPatience);
  manager_->switches().Expire();
  ASSERT_TRUE(ManagerPeer::RepairTrees(*manager_));
  const auto now = manager_->GetTree(tree->record->id);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->record->revision, 2u);
  EXPECT_NE(SpineOf(*now->record), spine);
  EXPECT_EQ(manager_->GetTree(apart->record->id)->record, apart->record);
  const auto events = EventsOf("trees.repaired");
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(events[0].message, HasSubstr("does not speak any more"));
  ExpectReconciled();
  At(spine).Join(manager_->switches());  // it still had the old revision
  ExpectReconciled();
  EXPECT_THAT(At(spine).groups(), IsEmpty());
}

TEST_F(CarriedRepairsTest, ATreeThatMovedWaitsForASwitchThatIsAway) {
  Boot(Options(4, 7), /*sweep=*/false);
  port_.Set(absl::StatusOr<SweepResult>(RoutedSweep({}, {})));
  ASSERT_TRUE(manager_->Sweep().ok());
  JoinAll();
  const auto tree = Create(TreeOf(JobOf(0, 7)));
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_THAT(tree->record->carriage.key, SizeIs(16));
  const auto now = [&] { return manager_->GetTree(tree->record->id)->record; };
  PlayedSwitch& spine = At(SpineOf(*tree->record));
  const auto index = static_cast<uint32_t>(spine.guid().value() - SpineGuid(0).value());
  // No table leads over its spine: it is judged by shortest paths.
  const absl::StatusOr<SweepResult> behind(RoutedSweep({}, {.missing_spines = {index}}));
  spine.Leave();
  port_.Set(behind);
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ(now(), tree->record);
  spine.Join(manager_->switches());
  ASSERT_TRUE(ManagerPeer::RepairTrees(*manager_));
  EXPECT_EQ(now()->revision, 2u);
  EXPECT_THAT(now()->carriage.key, SizeIs(16));
  EXPECT_EQ(SpineOf(*now()), spine.guid());
  ExpectReconciled();
  // One that does not come back in time is gone round.
  spine.Leave();
  port_.Set(absl::StatusOr<SweepResult>(RoutedSweep({}, {})));
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ(now()->revision, 2u);
  clock_.Advance(SwitchInstaller::kPatience);
  manager_->switches().Expire();
  ASSERT_TRUE(ManagerPeer::RepairTrees(*manager_));
  EXPECT_EQ(now()->revision, 3u);
  EXPECT_NE(SpineOf(*now()), spine.guid());
  EXPECT_THAT(now()->carriage.key, SizeIs(16));
  ExpectReconciled();
}

TEST_F(CarriedRepairsTest, ABrokenGroupIsRevisedInItsPlace) {
  Boot(Options(4, 7));
  JoinAll();
  const auto tree = Create(TreeOf(JobOf(0, 7)));
  ASSERT_TRUE(tree.ok());
  PlayedSwitch& spine = At(SpineOf(*tree->record));
  SwitchReport report;
  report.broken = {{tree->record->id, 1}};
  manager_->switches().TakeReport(spine.session(), report);
  ASSERT_TRUE(ManagerPeer::RepairTrees(*manager_));
  const auto now = manager_->GetTree(tree->record->id);
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now->record->revision, 2u);
  EXPECT_NE(now->record->carriage.key, tree->record->carriage.key);
  const auto events = EventsOf("group.broken");
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(events[0].message, HasSubstr("tree 1 revision 1"));
  EXPECT_THAT(events[0].message, Not(HasSubstr(tree->record->carriage.key)));
  ExpectReconciled();
}

TEST_F(CarriedRepairsTest, ADaemonThatStopsLeavesItsTreesAsTheyAre) {
  Boot(Options(4, 7));
  JoinAll();
  const JobId job = JobOf(0, 7);
  const auto tree = Create(TreeOf(job));
  ASSERT_TRUE(tree.ok()) << tree.status();
  for (auto& [guid, played] : played_) played->Say(IsSilent);
  const Answer<TreeView> late = StartCreate(TreeOf(job));
  manager_->switches().Stop();
  LeaveAll();
  EXPECT_EQ(Answer<TreeView>(late).Get().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Create(TreeOf(job)).status().code(), StatusCode::kUnavailable);  // nor without carriage
  clock_.Advance(absl::Hours(1));
  manager_->switches().Expire();
  ManagerPeer::RepairTrees(*manager_);
  EXPECT_EQ(manager_->GetTree(tree->record->id)->record, tree->record);
  EXPECT_THAT(EventsOf("switch.disconnected"), IsEmpty());
  ExpectConserved();
  for (auto& [guid, played] : played_) played->Say(nullptr);
  Boot(Options(4, 7));
  JoinAll();
  EXPECT_EQ(manager_->GetTree(tree->record->id)->record->carriage, tree->record->carriage);
  ExpectReconciled();
}

TEST_F(CarriedRepairsTest, WhatIsLostBeforeItIsDurableIsMended) {
  Boot(Options(4, 7));
  JoinAll();
  const JobId job = JobOf(0, 7);
  store_.HoldBack([](const Mutation& m) { return std::holds_alternative<GrantTree>(m); });
  const Answer<TreeView> answer = StartCreate(TreeOf(job));
  while (store_.held() == 0) std::this_thread::yield();
  for (auto& [guid, played] : played_) {
    SwitchReport report;
    report.broken = played->groups();
    manager_->switches().TakeReport(played->session(), report);
  }
  EXPECT_THAT(EventsOf("group.broken"), SizeIs(1));
  store_.LetGo();
  const auto tree = Answer<TreeView>(answer).Get();
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->record->revision, 1u);
  ASSERT_TRUE(ManagerPeer::RepairTrees(*manager_));
  EXPECT_EQ(manager_->GetTree(tree->record->id)->record->revision, 2u);
  ExpectReconciled();
}

// The switches never refuse what the ledger granted: each enforces what it said, and nothing else.
TEST_F(CarriedRepairsTest, LedgerAndSwitchesAgreeThroughRestarts) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint64_t n) { return random() % n; };
  for (auto& [guid, played] : played_) {
    played = std::make_unique<PlayedSwitch>(guid, Able(static_cast<uint32_t>(2 + below(4)), 7));
  }
  Boot(Options(4, 7));
  JoinAll();
  std::vector<JobId> jobs = {JobOf(0, 7), JobOf(4, 11), JobOf(8, 15), NewJob()};
  std::vector<TreeId> trees;
  uint64_t granted = 0, full = 0;
  const int steps = FullTier() ? 10'000 : 400;
  for (int step = 0; step < steps; ++step) {
    const uint64_t die = below(100);
    if (die < 55) {
      const auto tree = Create(TreeOf(jobs[below(jobs.size())]));
      if (tree.ok()) {
        ASSERT_THAT(tree->record->carriage.key, SizeIs(16)) << tree->record->reason;
        trees.push_back(tree->record->id);
        ++granted;
      } else {
        ASSERT_EQ(tree.status().code(), StatusCode::kResourceExhausted) << tree.status();
        ++full;
      }
    } else if (die < 95 && !trees.empty()) {
      const size_t i = below(trees.size());
      ASSERT_TRUE(Release(trees[i]).ok());
      trees.erase(trees.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (die < 98) {
      auto it = played_.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(below(played_.size())));
      it->second->Leave();
      if (below(2) == 0) it->second->Forget();
      it->second->Join(manager_->switches());
    } else {
      LeaveAll();
      Boot(Options(4, 7));
      JoinAll();
    }
    if (step % 50 == 0) ExpectReconciled();
  }
  ExpectReconciled();
  EXPECT_EQ(manager_->Counts().switches.refusals, 0u);
  EXPECT_THAT(EventsOf("switch.refused"), IsEmpty());
  EXPECT_GT(granted, static_cast<uint64_t>(steps) / 10);
  EXPECT_GT(full, 0u);
}

}  // namespace
}  // namespace coppice::carried_repairs_test
