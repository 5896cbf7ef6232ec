// Trees that lose links, switches or members: planned anew or revoked, in one step, and told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "db/json_lists.h"
#include "tests/unit/manager/manager_fixture.h"
#include "tests/unit/manager/standing_trees.h"

namespace coppice::repair_test {
namespace {

using testing::HasSubstr;

class RepairTest : public ManagerTest {
 protected:
  JobId JobOf(uint32_t first, uint32_t last) {
    RegisterJobArgs job;
    for (uint32_t host = first; host <= last; ++host) {
      job.endpoints.push_back(ToString(PortGuid(host)));
    }
    const auto view = Register(job);
    EXPECT_TRUE(view.ok()) << view.status();
    return view.ok() ? view->record->id : JobId();
  }
  void SweepTo(const FabricShape& shape) {
    port_.Set(SmallFabric(shape));
    const auto swept = manager_->Sweep();
    ASSERT_TRUE(swept.ok()) << swept.status();
    ExpectAllStand(*manager_);
    ExpectConserved();
  }
  std::shared_ptr<const TreeRecord> Now(const absl::StatusOr<TreeView>& tree) {
    const auto now = manager_->GetTree(tree->record->id);
    EXPECT_TRUE(now.ok()) << now.status();
    return now.ok() ? now->record : nullptr;
  }
  // The spine that serves at the root of a type II tree over several leaves.
  static uint32_t SpineOf(const TreeRecord& record) {
    for (uint32_t spine = 0; spine < 2; ++spine) {
      for (const TreeSwitchRecord& serving : record.switches) {
        if (serving.guid == SpineGuid(spine)) return spine;
      }
    }
    return 99;
  }
};

TEST_F(RepairTest, LostLinkMovesTheTreeToTheOtherSpineAndLeavesOthersAlone) {
  Boot(Options(3, 7));
  const auto moved = Create(TreeOf(JobOf(0, 7))), whole = Create(TreeOf(JobOf(8, 11)));
  ASSERT_TRUE(moved.ok() && whole.ok()) << moved.status() << whole.status();
  const uint32_t spine = SpineOf(*moved->record);
  ASSERT_LT(spine, 2u);
  Picture picture(*manager_);
  EXPECT_EQ(3u, picture.Read().size());
  SweepTo({.missing_cables = {{0, spine}}});
  const auto now = Now(moved);
  EXPECT_EQ(2u, now->revision);
  EXPECT_EQ(2, now->type);
  EXPECT_EQ(1 - spine, SpineOf(*now));
  EXPECT_EQ(moved->record->created, now->created);
  EXPECT_EQ(manager_->fabric()->snapshot->fabric->version(), now->fabric_version);
  EXPECT_EQ(whole->record, Now(whole));
  EXPECT_TRUE(manager_->TreesOfSwitch(SpineGuid(spine)).empty());
  const std::vector<TreeChange> changes = picture.Read();
  ASSERT_EQ(1u, changes.size());
  EXPECT_EQ(TreeChangeKind::kRevised, changes[0].kind);
  EXPECT_EQ(now, changes[0].tree.record);
  EXPECT_THAT(changes[0].reason, HasSubstr("is gone"));
  EXPECT_THAT(changes[0].reason, HasSubstr(ToString(SpineGuid(spine))));
  const auto events = EventsOf("trees.repaired");
  ASSERT_EQ(1u, events.size());
  EXPECT_THAT(events[0].message,
              HasSubstr("1 tree planned anew: " + std::to_string(now->id.value()) + " (link "));
  SweepTo({});  // the link is back: the tree stays where it is
  EXPECT_EQ(now, Now(moved));
  EXPECT_TRUE(picture.Read().empty());
  EXPECT_TRUE(Release(now->id).ok());
  EXPECT_TRUE(Release(whole->record->id).ok());
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
}

TEST_F(RepairTest, LostSwitchMovesAllItsTreesInOneStep) {
  Boot(Options(10, 7));
  std::vector<absl::StatusOr<TreeView>> trees;
  for (int n = 0; n < 4; ++n) trees.push_back(Create(TreeOf(JobOf(0, 7))));
  std::atomic<int> mutations = 0;
  store_.RefuseWhere([&](const Mutation& mutation) {
    mutations += std::holds_alternative<ChangeTrees>(mutation) ? 1 : 0;
    return absl::OkStatus();
  });
  SweepTo({.missing_spines = {0}});
  for (const auto& tree : trees) EXPECT_EQ(1u, SpineOf(*Now(tree)));
  EXPECT_EQ(1, mutations);
  SweepTo({.missing_spines = {1}});
  for (const auto& tree : trees) EXPECT_EQ(0u, SpineOf(*Now(tree)));
  EXPECT_EQ(2, mutations);
}

TEST_F(RepairTest, LostMemberRevokes) {
  Boot(Options(5, 7));
  CreateTreeArgs named = TreeOf(JobOf(0, 5));
  named.request_id = "mine";
  const auto tree = Create(named);
  ASSERT_TRUE(tree.ok()) << tree.status();
  Picture picture(*manager_);
  picture.Read();
  SweepTo({.missing_hosts = {3}});
  EXPECT_EQ(0u, manager_->Counts().granted_trees);
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  const std::vector<TreeChange> changes = picture.Read();
  ASSERT_EQ(1u, changes.size());
  EXPECT_EQ(TreeChangeKind::kRevoked, changes[0].kind);
  EXPECT_EQ(tree->record, changes[0].tree.record);
  EXPECT_THAT(changes[0].reason, HasSubstr("port " + ToString(PortGuid(3)) + " of rank 3 is gone"));
  EXPECT_THAT(EventsOf("trees.revoked").at(0).message, HasSubstr("1 tree revoked"));
  EXPECT_TRUE(absl::IsNotFound(Release(tree->record->id).status()));
  SweepTo({});
  EXPECT_TRUE(Create(named).ok());  // the name is free again
}

// One entry a switch, of four children: the other spine and the other leaf switches are held by
// somebody else, and the two that are left are too few.
TEST_F(RepairTest, FullSpareRevokesWhatDemandsTypeIIAndTurnsTheRestToTypeI) {
  Boot(Options(1, 4));
  const auto other = Create(TreeOf(JobOf(8, 15)));
  CreateTreeArgs any = TreeOf(JobOf(0, 7));
  const auto tree = Create(any);
  ASSERT_TRUE(other.ok() && tree.ok()) << other.status() << tree.status();
  const uint32_t spine = SpineOf(*tree->record);
  ASSERT_NE(spine, SpineOf(*other->record));
  SweepTo({.missing_spines = {spine}});
  EXPECT_TRUE(absl::IsNotFound(manager_->GetTree(tree->record->id).status()));
  EXPECT_EQ(other->record, Now(other));
  EXPECT_THAT(EventsOf("trees.revoked").at(0).message, HasSubstr("is gone"));
  SweepTo({});
  any.type.reset();
  const auto flexible = Create(any);
  ASSERT_TRUE(flexible.ok());
  ASSERT_EQ(2, flexible->record->type);
  SweepTo({.missing_spines = {SpineOf(*flexible->record)}});
  EXPECT_EQ(1, Now(flexible)->type);
  EXPECT_EQ(2u, Now(flexible)->revision);
  EXPECT_EQ(other->record, Now(other));
}

TEST_F(RepairTest, NothingIsWrittenWhereAllStand) {
  Boot();
  const auto tree = Create(TreeOf(JobOf(0, 3)));
  store_.Refuse<ChangeTrees>(absl::InternalError("not to be written"));
  SweepTo({.missing_hosts = {12}});
  SweepTo({.missing_cables = {{3, 1}}});
  EXPECT_EQ(tree->record, Now(tree));
}

TEST_F(RepairTest, WhatTheStoreRefusesIsTriedAgain) {
  Boot(Options(3, 7));
  const auto tree = Create(TreeOf(JobOf(0, 7)));
  const uint32_t spine = SpineOf(*tree->record);
  store_.Refuse<ChangeTrees>(absl::UnavailableError("busy"));
  port_.Set(SmallFabric({.missing_cables = {{0, spine}}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  ExpectConserved();
  EXPECT_EQ(tree->record, Now(tree));
  EXPECT_FALSE(ManagerPeer::RepairTrees(*manager_));
  store_.Obey();
  EXPECT_TRUE(ManagerPeer::RepairTrees(*manager_));
  EXPECT_EQ(2u, Now(tree)->revision);
  ExpectAllStand(*manager_);
  ExpectConserved();
}

TEST_F(RepairTest, SomethingElseComesFirst) {
  Boot(Options(3, 7));
  const auto tree = Create(TreeOf(JobOf(0, 7)));
  std::atomic<int> refusals = 3;
  store_.RefuseWhere([&](const Mutation& mutation) {
    return std::holds_alternative<ChangeTrees>(mutation) && refusals-- > 0
               ? absl::NotFoundError("released meanwhile")
               : absl::OkStatus();
  });
  SweepTo({.missing_cables = {{0, SpineOf(*tree->record)}}});
  EXPECT_EQ(2u, Now(tree)->revision);
  EXPECT_LT(refusals, 0);
}

TEST_F(RepairTest, RestartBetweenSweepAndRepair) {
  Boot(Options(3, 7));
  CreateTreeArgs args = TreeOf(JobOf(0, 7));
  args.nic_degree = 3;
  const auto tree = Create(args);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const uint32_t spine = SpineOf(*tree->record);
  store_.Refuse<ChangeTrees>(absl::UnavailableError("busy"));
  port_.Set(SmallFabric({.missing_cables = {{0, spine}}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  store_.Obey();
  Boot(Options(3, 7));
  ExpectAllStand(*manager_);
  ExpectConserved();
  EXPECT_EQ(2u, Now(tree)->revision);
  EXPECT_EQ(R"({"type":"II","nic_degree":3})", SpecText(*Now(tree)));
  EXPECT_THAT(EventsOf("trees.repaired").at(0).message, HasSubstr("link number "));
}

TEST_F(RepairTest, GrantUnderWayWhileTheSweepTakesItsLink) {
  Boot(Options(3, 7));
  const auto first = Create(TreeOf(JobOf(0, 7)));
  const uint32_t spine = SpineOf(*first->record);
  ASSERT_TRUE(Release(first->record->id).ok());
  const JobId job = JobOf(0, 7);
  store_.HoldBack([](const Mutation& m) { return std::holds_alternative<GrantTree>(m); });
  Answer<TreeView> late = StartCreate(TreeOf(job));
  port_.Set(SmallFabric({.missing_cables = {{0, spine}}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  store_.LetGo();
  const auto tree = late.Get();
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(spine, SpineOf(*tree->record));
  EXPECT_TRUE(ManagerPeer::RepairTrees(*manager_));
  EXPECT_EQ(2u, Now(tree)->revision);
  ExpectAllStand(*manager_);
  ExpectConserved();
}

TEST_F(RepairTest, AReleaseThatFailsLeavesATreeToBeMended) {
  Boot(Options(3, 7));
  const auto tree = Create(TreeOf(JobOf(0, 7)));
  ASSERT_TRUE(tree.ok()) << tree.status();
  store_.HoldBack([](const Mutation& m) { return std::holds_alternative<ReleaseTree>(m); });
  Answer<TreeId> release;
  manager_->ReleaseTree(tree->record->id, release.Callback());
  port_.Set(SmallFabric({.missing_cables = {{0, SpineOf(*tree->record)}}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ(tree->record, Now(tree));
  store_.Refuse<ReleaseTree>(absl::UnavailableError("busy"));
  store_.LetGo();
  EXPECT_TRUE(absl::IsUnavailable(release.Get().status()));
  EXPECT_TRUE(ManagerPeer::RepairTrees(*manager_));
  EXPECT_EQ(2u, Now(tree)->revision);
  ExpectAllStand(*manager_);
  ExpectConserved();
}

TEST_F(RepairTest, AnEndThatFailsLeavesTreesToBeMended) {
  Boot(Options(3, 7));
  const JobId job = JobOf(0, 7);
  const auto first = Create(TreeOf(job)), second = Create(TreeOf(job));
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  store_.HoldBack([](const Mutation& m) { return std::holds_alternative<EndJob>(m); });
  Answer<uint32_t> end = StartEnd(job);
  for (const uint32_t spine : {0u, 1u}) {
    port_.Set(SmallFabric({.missing_spines = {spine}}));
    ASSERT_TRUE(manager_->Sweep().ok());
  }
  EXPECT_EQ(first->record, Now(first));
  store_.Refuse<EndJob>(absl::UnavailableError("busy"));
  store_.LetGo();
  EXPECT_TRUE(absl::IsUnavailable(end.Get().status()));
  EXPECT_TRUE(ManagerPeer::RepairTrees(*manager_));
  EXPECT_EQ(0u, SpineOf(*Now(first)));
  EXPECT_EQ(0u, SpineOf(*Now(second)));
  ExpectAllStand(*manager_);
  ExpectConserved();
}

// The same with the daemon's own threads: nobody asks for the repair.
TEST_F(RepairTest, TheThreadMendsWhatEntersLate) {
  Boot(Options(3, 7));
  manager_->Start();
  ASSERT_TRUE(manager_->Sweep().ok());
  const JobId job = JobOf(0, 7);
  store_.HoldBack([](const Mutation& m) { return std::holds_alternative<GrantTree>(m); });
  Answer<TreeView> late = StartCreate(TreeOf(job));
  Answer<int> woken;
  std::atomic<bool> once = false;
  auto watch = manager_->WatchTrees(job, "", [] {});
  port_.Set(SmallFabric({.missing_spines = {0}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  port_.Set(SmallFabric({.missing_spines = {1}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  store_.RefuseWhere([&](const Mutation& mutation) {
    if (std::holds_alternative<ChangeTrees>(mutation) && !once.exchange(true)) {
      woken.Callback()(1);
    }
    return absl::OkStatus();
  });
  store_.LetGo();
  const auto tree = late.Get();
  ASSERT_TRUE(tree.ok()) << tree.status();
  if (SpineOf(*tree->record) == 1) {
    EXPECT_TRUE(woken.Get().ok());
  }
  manager_->Stop();
  ExpectAllStand(*manager_);
  ExpectConserved();
}

TEST_F(RepairTest, IncompleteSweepsAreGivenTime) {
  Boot(Options(5, 7));
  const auto tree = Create(TreeOf(JobOf(0, 5)));
  SweepResult incomplete;
  incomplete.fabric = SmallFabric({.missing_hosts = {3}});
  incomplete.unanswered.push_back({"0,1", LeafGuid(0), PortNum(6), "NodeInfo"});
  port_.Set(absl::StatusOr<SweepResult>(incomplete));
  for (int sweep = 0; sweep < 3; ++sweep) {
    ASSERT_TRUE(manager_->Sweep().ok());
    ASSERT_EQ(tree->record, Now(tree)) << sweep;
    ExpectConserved();
    clock_.Advance(absl::Seconds(10) - absl::Nanoseconds(1));
  }
  EXPECT_EQ(1u, EventsOf("trees.broken").size());
  EXPECT_FALSE(ManagerPeer::RepairTrees(*manager_));
  EXPECT_EQ(tree->record, Now(tree));
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ(0u, manager_->Counts().granted_trees);
  EXPECT_EQ(1u, EventsOf("trees.revoked").size());
  EXPECT_TRUE(ManagerPeer::RepairTrees(*manager_));
}

// One entry a switch, of four children. `first` loses its spine and finds the other one held by
// `second`, which cannot be planned because a member is out of sight, and so is kept, with its
// entry.
class KeptTreeTest : public RepairTest {
 protected:
  void Boot() {
    RepairTest::Boot(Options(1, 4));
    second_job_ = JobOf(8, 15);
  }
  void LoseBoth(CreateTreeArgs args) {
    first_ = Create(std::move(args));
    second_ = Create(TreeOf(second_job_));
    ASSERT_TRUE(first_.ok() && second_.ok()) << first_.status() << second_.status();
    ASSERT_EQ(2, first_->record->type);
    spare_ = SpineOf(*second_->record);
    ASSERT_EQ(1 - spare_, SpineOf(*first_->record));
    SweepResult incomplete;
    incomplete.fabric = SmallFabric({.missing_hosts = {9}, .missing_spines = {1 - spare_}});
    incomplete.unanswered.push_back({"0,1", LeafGuid(2), PortNum(4), "NodeInfo"});
    port_.Set(absl::StatusOr<SweepResult>(incomplete));
    ASSERT_TRUE(manager_->Sweep().ok());
    ExpectConserved();
  }
  void ExpectOnlyFirstMoved() {
    EXPECT_EQ(1u, manager_->Counts().granted_trees);
    EXPECT_EQ(spare_, SpineOf(*Now(first_)));
    EXPECT_TRUE(ManagerPeer::RepairTrees(*manager_));
    ExpectAllStand(*manager_);
    ExpectConserved();
  }

  JobId second_job_;
  absl::StatusOr<TreeView> first_, second_;
  uint32_t spare_ = 0;
};

TEST_F(KeptTreeTest, ItsEntriesAreNotGivenAway) {
  Boot();
  CreateTreeArgs any = TreeOf(JobOf(0, 7));
  any.type.reset();
  LoseBoth(any);
  EXPECT_EQ(1, Now(first_)->type);
  EXPECT_EQ(2u, Now(first_)->revision);
  EXPECT_EQ(second_->record, Now(second_));
  EXPECT_EQ(1u, EventsOf("trees.broken").size());
}

TEST_F(KeptTreeTest, WhoNeedsThemGetsThemWhenPatienceEnds) {
  Boot();
  LoseBoth(TreeOf(JobOf(0, 7)));
  EXPECT_EQ(first_->record, Now(first_));
  EXPECT_EQ(second_->record, Now(second_));
  clock_.Advance(absl::Seconds(30));
  ASSERT_TRUE(manager_->Sweep().ok());
  ExpectOnlyFirstMoved();
}

TEST_F(KeptTreeTest, PatienceBeginsWithTheVerdict) {
  Boot();
  CreateTreeArgs any = TreeOf(JobOf(0, 7));
  any.type.reset();
  store_.Refuse<ChangeTrees>(absl::UnavailableError("busy"));
  LoseBoth(any);
  EXPECT_EQ(first_->record, Now(first_));
  clock_.Advance(absl::Seconds(30));
  store_.Obey();
  ASSERT_TRUE(manager_->Sweep().ok());
  ExpectOnlyFirstMoved();
}

TEST_F(RepairTest, ACompleteSweepConfirmsTheLoss) {
  Boot(Options(5, 7));
  const auto tree = Create(TreeOf(JobOf(0, 5))), back = Create(TreeOf(JobOf(8, 12)));
  SweepResult incomplete;
  incomplete.fabric = SmallFabric({.missing_hosts = {3, 9}});
  incomplete.unanswered.push_back({"0,1", LeafGuid(0), PortNum(6), "NodeInfo"});
  incomplete.unanswered.push_back({"0,2", LeafGuid(2), PortNum(4), "NodeInfo"});
  port_.Set(absl::StatusOr<SweepResult>(incomplete));
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ(2u, manager_->Counts().granted_trees);
  SweepTo({.missing_hosts = {3}});
  EXPECT_EQ(back->record, Now(back));
  EXPECT_EQ(1u, manager_->Counts().granted_trees);
  EXPECT_TRUE(ManagerPeer::RepairTrees(*manager_));
}

// Asked by a repair between judging and claiming.
class BusyClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch(); }
  absl::Duration Monotonic() const override {
    if (on_monotonic) on_monotonic();
    return absl::ZeroDuration();
  }
  std::function<void()> on_monotonic;
};

// More of them than a repair has rounds.
class OvertakenRepairTest : public RepairTest {
 protected:
  static constexpr size_t kReleased = 8, kTrees = 11;

  // All trees on spine 1.
  void GrantTrees() {
    ASSERT_TRUE(manager_->Sweep().ok());
    const JobId job = JobOf(0, 7);
    SweepTo({.missing_spines = {0}});
    for (size_t n = 0; n < kTrees; ++n) {
      trees_.push_back(Create(TreeOf(job)));
      ASSERT_TRUE(trees_.back().ok()) << trees_.back().status();
      ASSERT_EQ(1u, SpineOf(*trees_.back()->record));
    }
  }
  void ExpectTheOthersMoved() {
    for (size_t n = kReleased; n < kTrees; ++n) {
      EXPECT_EQ(2u, Now(trees_[n])->revision);
      EXPECT_EQ(0u, SpineOf(*Now(trees_[n])));
    }
    EXPECT_EQ(kTrees - kReleased, manager_->Counts().granted_trees);
    ExpectAllStand(*manager_);
    ExpectConserved();
  }

  std::vector<absl::StatusOr<TreeView>> trees_;
};

TEST_F(OvertakenRepairTest, ReleasesBetweenJudgingAndClaiming) {
  BusyClock busy;
  port_.Set(SmallFabric());
  manager_ = *Manager::Create(&store_, &port_, &busy, Options(kTrees, 7));
  GrantTrees();
  size_t released = 0;
  std::vector<Answer<TreeId>> answers(kReleased);
  store_.HoldBack([](const Mutation& m) { return std::holds_alternative<ReleaseTree>(m); });
  busy.on_monotonic = [&] {
    if (released == kReleased) return;
    const TreeId tree = trees_[released]->record->id;
    manager_->ReleaseTree(tree, answers[released++].Callback());
  };
  port_.Set(SmallFabric({.missing_spines = {1}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ(2u, Now(trees_.back())->revision);
  EXPECT_EQ(1u, Now(trees_.front())->revision);  // on its way out: left alone
  while (released < kReleased) busy.on_monotonic();
  busy.on_monotonic = nullptr;
  store_.LetGo();
  for (Answer<TreeId>& answer : answers) EXPECT_TRUE(answer.Get().ok());
  ExpectTheOthersMoved();
  manager_.reset();
}

TEST_F(OvertakenRepairTest, ReleasesBetweenClaimingAndWriting) {
  Boot(Options(kTrees, 7), false);
  GrantTrees();
  std::counting_semaphore<> arrived{0};
  store_.HoldBack([&](const Mutation& m) {
    const bool is_change = std::holds_alternative<ChangeTrees>(m);
    if (is_change) arrived.release();
    return is_change;
  });
  port_.Set(SmallFabric({.missing_spines = {1}}));
  std::thread sweep([&] { EXPECT_TRUE(manager_->Sweep().ok()); });
  for (size_t n = 0; n < kReleased; ++n) {
    arrived.acquire();
    EXPECT_TRUE(Release(trees_[n]->record->id).ok());
    if (n + 1 < kReleased) store_.LetThrough();
  }
  store_.LetGo();
  sweep.join();
  ExpectTheOthersMoved();
}

TEST_F(RepairTest, GrantsReleasesAndEndsBesideSweepsThatTakeLinks) {
  Boot(Options(6, 7));
  std::atomic<bool> stop = false;
  std::vector<std::thread> tenants;
  for (uint32_t tenant = 0; tenant < 3; ++tenant) {
    tenants.emplace_back([&, tenant] {
      while (!stop) {
        const auto job = Register(AllHosts());
        if (!job.ok()) continue;
        std::vector<TreeId> trees;
        for (int n = 0; n < 6; ++n) {
          CreateTreeArgs args = TreeOf(job->record->id);
          args.ranks = {tenant, tenant + 4, tenant + 8};
          const auto tree = Create(args);
          if (tree.ok()) trees.push_back(tree->record->id);
        }
        if (!trees.empty()) Release(trees[0]).IgnoreError();
        EXPECT_TRUE(End(job->record->id).ok());
      }
    });
  }
  const FabricShape shapes[] = {{.missing_cables = {{0, 0}, {1, 1}}},
                                {.missing_spines = {1}},
                                {},
                                {.missing_cables = {{0, 1}, {2, 0}}},
                                {.missing_spines = {0}}};
  for (int round = 0; round < 40; ++round) {
    port_.Set(SmallFabric(shapes[round % 5]));
    ASSERT_TRUE(manager_->Sweep().ok());
  }
  stop = true;
  for (std::thread& tenant : tenants) tenant.join();
  EXPECT_TRUE(ManagerPeer::RepairTrees(*manager_));
  ExpectAllStand(*manager_);
  ExpectConserved();
}

}  // namespace
}  // namespace coppice::repair_test
