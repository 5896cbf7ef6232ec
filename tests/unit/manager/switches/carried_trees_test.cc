// Trees that switches carry, through the whole manager: granted when they are durable and
// installed, round who refuses; revised, released and reconciled after a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "tests/support/tier.h"
#include "tests/unit/manager/manager_fixture.h"
#include "tests/unit/manager/routed_fixture.h"
#include "tests/unit/manager/standing_trees.h"
#include "tests/unit/manager/switches/played_switch.h"

namespace coppice::carried_trees_test {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Batch = std::shared_ptr<const BatchView>;

std::optional<std::string> Refuses(const SwitchEntry&) { return "no memory left"; }
std::optional<std::string> IsSilent(const SwitchEntry&) { return std::nullopt; }

class CarriedTreesTest : public ManagerTest {
 protected:
  CarriedTreesTest() {
    for (uint32_t leaf = 0; leaf < 4; ++leaf) {
      played_[LeafGuid(leaf)] = std::make_unique<PlayedSwitch>(LeafGuid(leaf), Able(8, 7));
    }
    for (uint32_t spine = 0; spine < 2; ++spine) {
      played_[SpineGuid(spine)] = std::make_unique<PlayedSwitch>(SpineGuid(spine), Able(8, 7));
    }
  }
  // Their threads use the manager.
  ~CarriedTreesTest() override { LeaveAll(); }

  void JoinAll() {
    for (auto& [guid, played] : played_) played->Join(manager_->switches());
  }
  void LeaveAll() {
    for (auto& [guid, played] : played_) played->Leave();
  }
  PlayedSwitch& At(Guid guid) { return *played_.at(guid); }
  // With all read, each switch holds exactly the trees that are carried and that it serves.
  void ExpectReconciled() {
    Settle();
    std::map<Guid, std::vector<SwitchGroup>> wanted;
    for (const TreeView& view : manager_->ListTrees(JobId(), TreeId(), 1u << 20)) {
      if (view.record->carriage.key.empty()) continue;
      for (const TreeSwitchRecord& serving : view.record->switches) {
        wanted[serving.guid].push_back({view.record->id, view.record->revision});
        const auto held = At(serving.guid).held();
        const auto entry = held.find(view.record->id);
        if (entry == held.end()) continue;
        EXPECT_EQ(entry->second.key, view.record->carriage.key);
        EXPECT_EQ(entry->second.children, serving.children);
      }
    }
    for (auto& [guid, played] : played_) {
      if (!manager_->switches().HelloOf(guid)) continue;
      played->AwaitRead();
      EXPECT_EQ(played->groups(), wanted[guid]) << ToString(guid);
    }
    ExpectConserved();
  }
  JobId JobOf(uint32_t first, uint32_t last) {
    RegisterJobArgs job = AllHosts();
    job.all_endpoints = false;
    for (uint32_t host = first; host <= last; ++host) {
      job.endpoints.push_back(ToString(PortGuid(host)));
    }
    return Register(job)->record->id;
  }
  static std::vector<Guid> GuidsOf(const TreeRecord& record) {
    std::vector<Guid> guids;
    for (const TreeSwitchRecord& serving : record.switches) guids.push_back(serving.guid);
    return guids;
  }
  static Guid SpineOf(const TreeRecord& record) {
    for (const Guid guid : GuidsOf(record)) {
      if (guid >= SpineGuid(0)) return guid;
    }
    return Guid(0);
  }
  std::map<Guid, std::unique_ptr<PlayedSwitch>> played_;
};

TEST_F(CarriedTreesTest, WithoutSwitchesThatSpeakAllIsAsItWas) {
  Boot();
  const auto tree = Create(TreeOf(NewJob()));
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->record->carriage, CarriageRecord());
  EXPECT_THAT(tree->record->reason, Not(HasSubstr("carr")));
}

TEST_F(CarriedTreesTest, ATreeIsInItsSwitchesBeforeItIsWritten) {
  Boot();
  JoinAll();
  const JobId job = NewJob();
  store_.HoldBack([](const Mutation& m) { return std::holds_alternative<GrantTree>(m); });
  const Answer<TreeView> answer = StartCreate(TreeOf(job));
  while (store_.held() == 0) std::this_thread::yield();
  std::vector<Guid> holders;
  for (auto& [guid, played] : played_) {
    if (!played->groups().empty()) holders.push_back(guid);
  }
  EXPECT_THAT(holders, Not(IsEmpty()));
  EXPECT_FALSE(answer.answered());
  store_.LetGo();
  const auto tree = Answer<TreeView>(answer).Get();
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_THAT(GuidsOf(*tree->record), testing::UnorderedElementsAreArray(holders));
  EXPECT_THAT(tree->record->carriage.key, SizeIs(16));
  EXPECT_GT(tree->record->carriage.window, 0u);
  ExpectReconciled();
  EXPECT_EQ(manager_->Counts().switches.connected, 6u);
  EXPECT_EQ(manager_->Counts().switches.installs, holders.size());
  // Another tree has another key.
  const auto other = Create(TreeOf(job));
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->record->carriage.key, tree->record->carriage.key);
  ASSERT_TRUE(Release(tree->record->id).ok());
  ExpectReconciled();
  ASSERT_TRUE(End(job).ok());
  ExpectReconciled();
  for (auto& [guid, played] : played_) EXPECT_THAT(played->groups(), IsEmpty());
}

TEST_F(CarriedTreesTest, AnExpiredLeaseTakesItsTreesOut) {
  Boot();
  JoinAll();
  ASSERT_TRUE(Create(TreeOf(NewJob())).ok());
  clock_.Advance(absl::Hours(1));
  manager_->ExpireLeases();
  Settle();
  EXPECT_EQ(manager_->Counts().granted_trees, 0u);
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, WhatTheStoreRefusesIsTakenOut) {
  Boot();
  JoinAll();
  const JobId job = NewJob();
  store_.Refuse<GrantTree>(absl::UnavailableError("disk full"));
  EXPECT_EQ(Create(TreeOf(job)).status().code(), StatusCode::kUnavailable);
  store_.Obey();
  ExpectReconciled();
  EXPECT_EQ(manager_->Counts().entries_taken, 0u);
}

TEST_F(CarriedTreesTest, WhereSomeAreSilentTheTreeIsGrantedAndCarriesNothing) {
  Boot(Options(4, 7));
  const auto before = Create(TreeOf(JobOf(0, 7)));
  ASSERT_TRUE(before.ok());
  At(GuidsOf(*before->record)[0]).Join(manager_->switches());
  const auto tree = Create(TreeOf(JobOf(0, 7)));
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->record->carriage, CarriageRecord());
  EXPECT_THAT(tree->record->reason, HasSubstr("it carries no data, as switch "));
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, ThePlannerGoesRoundWhoRefuses) {
  Boot(Options(4, 7));
  JoinAll();
  const JobId job = JobOf(0, 7);
  const auto first = Create(TreeOf(job));
  ASSERT_TRUE(first.ok()) << first.status();
  const Guid spine = SpineOf(*first->record);
  ASSERT_NE(spine, Guid(0));
  ASSERT_TRUE(Release(first->record->id).ok());
  At(spine).Say(Refuses);
  const auto second = Create(TreeOf(job));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(SpineOf(*second->record), spine);
  EXPECT_THAT(second->record->carriage.key, SizeIs(16));
  EXPECT_THAT(second->record->reason, HasSubstr("round switch " + ToString(spine)));
  EXPECT_THAT(second->record->reason, HasSubstr("no memory left"));
  const auto events = EventsOf("switch.refused");
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].object, "switch:" + ToString(spine));
  EXPECT_EQ(manager_->Counts().switches.refusals, 1u);
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, ThePlannerGoesRoundWhoIsSilent) {
  Boot(Options(4, 7));
  JoinAll();
  const JobId job = JobOf(0, 7);
  const auto first = Create(TreeOf(job));
  ASSERT_TRUE(first.ok());
  const Guid spine = SpineOf(*first->record);
  ASSERT_TRUE(Release(first->record->id).ok());
  At(spine).Say(IsSilent);
  const Answer<TreeView> answer = StartCreate(TreeOf(job));
  for (const Guid guid : GuidsOf(*first->record)) At(guid).AwaitRead();
  EXPECT_FALSE(answer.answered());
  clock_.Advance(SwitchInstaller::kAnswerWithin);
  manager_->switches().Expire();
  const auto second = Answer<TreeView>(answer).Get();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(SpineOf(*second->record), spine);
  EXPECT_THAT(second->record->reason, HasSubstr("did not answer"));
  // The timer, which this thread plays, only handed it on.
  EXPECT_NE(At(SpineOf(*second->record)).told_by(), std::this_thread::get_id());
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, WhereAllRefuseTheRequestIs) {
  Boot(Options(4, 32));
  JoinAll();
  for (auto& [guid, played] : played_) played->Say(Refuses);
  const JobId job = NewJob();
  const auto refused = Create(TreeOf(job));
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("no memory left"));
  EXPECT_EQ(manager_->Counts().entries_taken, 0u);
  // Whoever leaves the type open gets type I.
  CreateTreeArgs open = TreeOf(job);
  open.type.reset();
  const auto tree = Create(open);
  ASSERT_TRUE(tree.ok()) << tree.status();
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, WhoeverRefusedTheLastAttemptIsNamed) {
  const uint32_t spines = Grants::kMaxAttempts + 2;
  Boot(Options(4, 7));
  port_.Set(SmallFabric({.spines = spines}));
  ASSERT_TRUE(manager_->Sweep().ok());
  for (uint32_t spine = 0; spine < spines; ++spine) {
    auto& played = played_[SpineGuid(spine)];
    played = std::make_unique<PlayedSwitch>(SpineGuid(spine), Able(8, 7));
    played->Say(Refuses);
  }
  JoinAll();
  const JobId job = JobOf(0, 7);
  const auto tree = Create(TreeOf(job));
  EXPECT_EQ(tree.status().code(), StatusCode::kAborted) << tree.status();
  const std::string words(tree.status().message());
  EXPECT_THAT(words, HasSubstr("or switches refused, during 8 attempts to plan a tree"));
  EXPECT_THAT(words, HasSubstr("round switch 000000000000020"));
  EXPECT_THAT(words, HasSubstr("no memory left"));
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, ASwitchThatGoesInTheMiddleIsGoneRound) {
  Boot(Options(4, 7));
  JoinAll();
  const JobId job = JobOf(0, 7);
  const auto first = Create(TreeOf(job));
  ASSERT_TRUE(first.ok());
  const Guid spine = SpineOf(*first->record);
  ASSERT_TRUE(Release(first->record->id).ok());
  At(spine).Say(IsSilent);
  const Answer<TreeView> answer = StartCreate(TreeOf(job));
  At(spine).AwaitRead();
  At(spine).Leave();
  const auto second = Answer<TreeView>(answer).Get();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(SpineOf(*second->record), spine);
  EXPECT_NE(At(SpineOf(*second->record)).told_by(), std::this_thread::get_id());
  ExpectReconciled();
  EXPECT_THAT(EventsOf("switch.disconnected"), SizeIs(1));
  // As long as it is away it gets no new tree.
  for (int i = 0; i < 3; ++i) {
    const auto next = Create(TreeOf(job));
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_NE(SpineOf(*next->record), spine);
  }
  At(spine).Say(nullptr);
  At(spine).Join(manager_->switches());
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, ASwitchThatReturnsWithFewerEntriesKeepsSoMany) {
  Boot(Options(4, 7));
  JoinAll();
  const JobId job = JobOf(0, 7);
  std::map<Guid, std::vector<TreeId>> over;
  for (int i = 0; i < 6; ++i) {
    const auto tree = Create(TreeOf(job));
    ASSERT_TRUE(tree.ok()) << tree.status();
    over[SpineOf(*tree->record)].push_back(tree->record->id);
  }
  const Guid spine = over[SpineGuid(0)].size() >= 3 ? SpineGuid(0) : SpineGuid(1);
  ASSERT_GE(over[spine].size(), 3u);
  played_[spine] = std::make_unique<PlayedSwitch>(spine, Able(2, 7));  // the first one leaves
  At(spine).Join(manager_->switches());
  const auto entries = [&] {
    const auto fabric = manager_->fabric()->snapshot->fabric;
    return manager_->Entries()[fabric->FindSwitch(spine)->value()];
  };
  EXPECT_EQ(entries().entries_total, 2u);
  EXPECT_EQ(manager_->Counts().entries_total, 5u * 8u + 2u);
  // Over sweeps, too.
  port_.Set(SmallFabric({.missing_hosts = {15}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ(entries().entries_total, 2u);
  const auto next = Create(TreeOf(job));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_NE(SpineOf(*next->record), spine);
  Settle();
  At(spine).AwaitRead();
  EXPECT_THAT(At(spine).groups(), SizeIs(2));
  const uint64_t refusals = manager_->Counts().switches.refusals;
  EXPECT_EQ(refusals, over[spine].size() - 2);
  ASSERT_TRUE(ManagerPeer::RepairTrees(*manager_));
  size_t kept = 0;
  for (const TreeId id : over[spine]) {
    const auto now = manager_->GetTree(id);
    ASSERT_TRUE(now.ok()) << now.status();
    if (SpineOf(*now->record) == spine) ++kept;
    EXPECT_EQ(now->record->revision, SpineOf(*now->record) == spine ? 1u : 2u);
    EXPECT_THAT(now->record->carriage.key, SizeIs(16));
  }
  EXPECT_EQ(kept, 2u);
  EXPECT_EQ(manager_->Counts().switches.refusals, refusals);  // nothing was planned beyond its two
  EXPECT_EQ(entries().entries_total, 2u);
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, AnAgentThatComesAndGoesDoesNotFillTheEvents) {
  Boot(Options(4, 7));
  PlayedSwitch& leaf = At(LeafGuid(0));
  for (int i = 0; i < 100; ++i) {
    leaf.Join(manager_->switches());
    leaf.Leave();
    clock_.Advance(absl::Milliseconds(10));
  }
  Settle();
  EXPECT_EQ(EventsOf("switch.connected").size() + EventsOf("switch.disconnected").size(),
            static_cast<size_t>(FlapFilter::kFlaps) - 1);
  EXPECT_THAT(EventsOf("switch.flapping"), SizeIs(1));
  EXPECT_THAT(EventsOf("switch.steady"), IsEmpty());
  clock_.Advance(FlapFilter::kWithin - absl::Milliseconds(10));
  EXPECT_LE(manager_->switches().Expire(), FlapFilter::kWithin);
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(manager_->switches().Expire(), absl::InfiniteDuration());
  Settle();
  const auto steady = EventsOf("switch.steady");
  ASSERT_THAT(steady, SizeIs(1));
  EXPECT_EQ(steady[0].object, "switch:" + ToString(leaf.guid()));
  EXPECT_EQ(steady[0].severity, "warning");
  EXPECT_THAT(steady[0].message, HasSubstr("after 200 of them"));
}

TEST_F(CarriedTreesTest, ASwitchesOwnWordRulesTheLedger) {
  Boot(Options(4, 7));
  const auto entries = [&](Guid guid) {
    const auto fabric = manager_->fabric()->snapshot->fabric;
    return manager_->Entries()[fabric->FindSwitch(guid)->value()];
  };
  PlayedSwitch small(LeafGuid(0), Able(2, 9));
  small.Join(manager_->switches());
  EXPECT_EQ(entries(LeafGuid(0)).entries_total, 2u);
  EXPECT_EQ(entries(LeafGuid(0)).degree_limit, 9u);
  EXPECT_EQ(entries(LeafGuid(1)).entries_total, 4u);
  // Over sweeps and other rules, too.
  port_.Set(SmallFabric({.missing_hosts = {15}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ(entries(LeafGuid(0)).entries_total, 2u);
  ASSERT_TRUE(manager_->Reconfigure(Options(5, 7)).ok());
  EXPECT_EQ(entries(LeafGuid(0)).entries_total, 2u);
  EXPECT_EQ(entries(LeafGuid(1)).entries_total, 5u);
  const auto uses = store_.Entries();
  ASSERT_TRUE(uses.ok());
  EXPECT_EQ(uses->front().capability, (CapabilityRecord{LeafGuid(0), 2, 0, 9}));
  // The third tree of hosts below it finds none.
  const JobId job = JobOf(0, 3);
  CreateTreeArgs args = TreeOf(job);
  args.root_switch = LeafGuid(0);
  ASSERT_TRUE(Create(args).ok());
  ASSERT_TRUE(Create(args).ok());
  EXPECT_EQ(Create(args).status().code(), StatusCode::kResourceExhausted);
  small.Leave();
  EXPECT_EQ(manager_->Counts().entries_total, 5u * 5u);  // it gives none while it is away
}

TEST_F(CarriedTreesTest, WhoMayNotSpeakIsTold) {
  Boot(Options(), /*sweep=*/false);
  PlayedSwitch played(LeafGuid(0));
  Switches& switches = manager_->switches();
  EXPECT_EQ(switches.Connect(played.Hello(), played.NewLink(), "a").status().code(),
            StatusCode::kUnavailable);
  ASSERT_TRUE(manager_->Sweep().ok());
  PlayedSwitch stranger(Guid(0xabc));
  const auto unknown = switches.Connect(stranger.Hello(), stranger.NewLink(), "a");
  EXPECT_EQ(unknown.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("0000000000000abc"));
  const auto connected = switches.Connect(played.Hello(), played.NewLink(), "a");
  ASSERT_TRUE(connected.ok());
  EXPECT_EQ(connected->name, "leaf0");
  EXPECT_EQ(switches.Connect(played.Hello(), played.NewLink(), "b").status().code(),
            StatusCode::kAlreadyExists);
  store_.Refuse<PutCapabilities>(absl::UnavailableError("disk full"));
  PlayedSwitch other(LeafGuid(1));
  EXPECT_EQ(switches.Connect(other.Hello(), other.NewLink(), "a").status().code(),
            StatusCode::kUnavailable);
  store_.Obey();
  EXPECT_EQ(manager_->Counts().switches.connected, 1u);
  switches.Disconnect(connected->session);
  EXPECT_EQ(manager_->Counts().switches.connected, 0u);
}

TEST_F(CarriedTreesTest, ARefusalOfWhatIsGoneIsNotTold) {
  Boot(Options(4, 7));
  JoinAll();
  const auto kept = Create(TreeOf(JobOf(0, 7))), gone = Create(TreeOf(JobOf(0, 7)));
  ASSERT_TRUE(kept.ok() && gone.ok());
  PlayedSwitch& leaf = At(LeafGuid(0));
  leaf.Leave();
  leaf.Forget();
  leaf.Say(IsSilent);
  leaf.Join(manager_->switches());
  ASSERT_TRUE(Release(gone->record->id).ok());
  for (const uint64_t task : {1u, 2u}) {
    EXPECT_TRUE(manager_->switches().TakeResult(leaf.session(), task, "stale revision").ok());
  }
  const auto events = EventsOf("switch.refused");
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(events[0].message, HasSubstr(absl::StrCat("tree ", kept->record->id.value(), " ")));
  leaf.Say(nullptr);
  ASSERT_TRUE(ManagerPeer::RepairTrees(*manager_));
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, ARestartOfTheDaemonReconciles) {
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

TEST_F(CarriedTreesTest, AfterARestartWhoStaysAwayIsGoneRound) {
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
TEST_F(CarriedTreesTest, WhatBrokeOverARestartWaitsForTheSwitches) {
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

TEST_F(CarriedTreesTest, ARestartOfTheSwitchesReconciles) {
  Boot(Options(4, 7));
  JoinAll();
  ASSERT_TRUE(Create(TreeOf(JobOf(0, 7))).ok());
  LeaveAll();
  for (auto& [guid, played] : played_) played->Forget();
  Boot(Options(4, 7));
  JoinAll();
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, ARepairInstallsTheNewRevisionAndRemovesTheOld) {
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

TEST_F(CarriedTreesTest, ARepairGoesRoundWhoRefuses) {
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

TEST_F(CarriedTreesTest, ARefusalInARepairCostsNoOtherTree) {
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

// Another tree of the same repair is released meanwhile, so that the rest is given once more.
TEST_F(CarriedTreesTest, ARepairSaysOnceThatNothingIsCarried) {
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

TEST_F(CarriedTreesTest, TreesLeaveASwitchThatStaysAway) {
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

TEST_F(CarriedTreesTest, ATreeThatMovedWaitsForASwitchThatIsAway) {
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

TEST_F(CarriedTreesTest, ABrokenGroupIsRevisedInItsPlace) {
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

TEST_F(CarriedTreesTest, ADaemonThatStopsLeavesItsTreesAsTheyAre) {
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

TEST_F(CarriedTreesTest, WhatIsLostBeforeItIsDurableIsMended) {
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

TEST_F(CarriedTreesTest, ABatchIsInstalledAsAWholeOrPlannedAgain) {
  Boot(Options(8, 32));
  JoinAll();
  CreateBatchArgs args;
  args.job = NewJob();
  args.grid = ProcessGrid{{4, 4}, GridOrder::kLastAxisFastest, {}};
  const auto grant = [&] {
    Answer<Batch> answer;
    manager_->BatchCreateTrees(args, {}, answer.Callback());
    return answer.Get();
  };
  const auto first = grant();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_THAT((*first)->trees, SizeIs(8));
  for (const BatchView::Tree& tree : (*first)->trees) {
    EXPECT_THAT(tree.view.record->carriage.key, SizeIs(16));
  }
  ExpectReconciled();
  for (const BatchView::Tree& tree : (*first)->trees) {
    ASSERT_TRUE(Release(tree.view.record->id).ok());
  }
  At(SpineGuid(0)).Say(Refuses);
  const auto second = grant();
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_THAT((*second)->trees, SizeIs(8));
  for (const BatchView::Tree& tree : (*second)->trees) {
    EXPECT_THAT(GuidsOf(*tree.view.record), Not(testing::Contains(SpineGuid(0))));
  }
  ExpectReconciled();
  At(SpineGuid(1)).Say(Refuses);
  for (const BatchView::Tree& tree : (*second)->trees) {
    ASSERT_TRUE(Release(tree.view.record->id).ok());
  }
  const auto third = grant();
  if (!third.ok()) {
    EXPECT_THAT(std::string(third.status().message()), HasSubstr("no memory left"));
  }
  ExpectReconciled();
}

TEST_F(CarriedTreesTest, WhoeverRefusedTheLastAttemptAtABatchIsNamed) {
  const uint32_t spines = Grants::kMaxAttempts + 2;
  Boot(Options(8, 7));
  port_.Set(SmallFabric({.spines = spines}));
  ASSERT_TRUE(manager_->Sweep().ok());
  for (uint32_t spine = 0; spine < spines; ++spine) {
    auto& played = played_[SpineGuid(spine)];
    played = std::make_unique<PlayedSwitch>(SpineGuid(spine), Able(8, 7));
    played->Say(Refuses);
  }
  // As many children as a leaf has hosts: the root is a spine.
  for (uint32_t leaf = 0; leaf < 4; ++leaf) {
    played_[LeafGuid(leaf)] = std::make_unique<PlayedSwitch>(LeafGuid(leaf), Able(8, 4));
  }
  JoinAll();
  CreateBatchArgs args;
  args.job = JobOf(0, 7);
  args.communicators = {{0, 1, 2, 3, 4, 5, 6, 7}};
  Answer<Batch> answer;
  manager_->BatchCreateTrees(args, {}, answer.Callback());
  const auto batch = answer.Get();
  EXPECT_EQ(batch.status().code(), StatusCode::kAborted) << batch.status();
  const std::string words(batch.status().message());
  EXPECT_THAT(words, HasSubstr("or switches refused, during 8 attempts to plan a batch"));
  EXPECT_THAT(words, HasSubstr("round switch 000000000000020"));
  EXPECT_THAT(words, HasSubstr("no memory left"));
  EXPECT_EQ(manager_->Counts().entries_taken, 0u);
  ExpectReconciled();
}

// The switches never refuse what the ledger granted: each enforces what it said, and nothing else.
TEST_F(CarriedTreesTest, LedgerAndSwitchesAgreeThroughRestarts) {
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
}  // namespace coppice::carried_trees_test
