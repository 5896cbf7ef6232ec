// Trees that switches carry, through the whole manager: granted when they are durable and
// installed, round who refuses, one by one and in batches; and what switches say of themselves.
#include "tests/unit/manager/switches/carried_trees_fixture.h"

namespace coppice::carried_trees_test {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Batch = std::shared_ptr<const BatchView>;

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
  BootWithRefusingSpines(4);
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
  BootWithRefusingSpines(8);
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

}  // namespace
}  // namespace coppice::carried_trees_test
