// Placements from request to end: what is held, what is refused and in which words, and what a
// restart, a failing disk, a fabric that moves and a scheduler that forgets leave of them.
#include "daemon/manager/placement/placements.h"

#include "gmock/gmock.h"
#include "tests/unit/manager/placement/placements_fixture.h"

namespace coppice::placements_test {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

#define EXPECT_REFUSED(expression, wanted_code, words)                       \
  do {                                                                       \
    const absl::Status status_under_test = (expression);                     \
    EXPECT_EQ(status_under_test.code(), wanted_code) << status_under_test;   \
    EXPECT_THAT(std::string(status_under_test.message()), HasSubstr(words)); \
  } while (false)

TEST_F(PlacementsTest, HoldsNodesOfOneLeafSwitch) {
  Boot();
  const auto view = Place(Nodes(4));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->record->measures.leaf_switches, 1u);
  EXPECT_TRUE(view->record->is_optimal);
  EXPECT_EQ(view->record->id, PlacementId(1));
  EXPECT_EQ(view->term_left, absl::Minutes(5));
  const auto other = Place(Nodes(12));
  ASSERT_TRUE(other.ok()) << other.status();
  for (const std::string& node : other->record->nodes) EXPECT_FALSE(NodesOf(*view).contains(node));
  EXPECT_THAT(placements().List(PlacementId(), 10), SizeIs(2));
  EXPECT_EQ(manager_->Counts().held_placements, 2u);
  EXPECT_EQ(manager_->Counts().placed_nodes, 16u);
  EXPECT_EQ(store_.Load()->placements.size(), 2u);
  EXPECT_EQ(*store_.GetPlacement(PlacementId(2)), *other->record);
  EXPECT_THAT(EventsOf("placement.created"), SizeIs(2));
}

TEST_F(PlacementsTest, NodesAreFullMembersOfThePartition) {
  auto partitions = std::make_shared<Partitions>();
  for (uint32_t host = 0; host < 16; ++host) {
    const uint16_t key = host < 8 ? 0x8001 : host < 12 ? 0x0001 : 0x8002;
    partitions->Set(PortGuid(host), {0x7fff, key});
  }
  Boot(Options(), /*sweep=*/false);
  SweepResult swept;
  swept.fabric = SmallFabric();
  swept.partitions = partitions;
  port_.Set(absl::StatusOr<SweepResult>(std::move(swept)));
  ASSERT_TRUE(manager_->Sweep().ok());
  const auto in = [](uint16_t partition, CreatePlacementArgs args) {
    args.task.partition = PartitionNum(partition);
    return args;
  };
  const auto view = Place(in(1, Nodes(6)));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->record->partition, PartitionNum(1));
  for (const std::string& node : view->record->nodes) EXPECT_LT(std::stoi(node.substr(1)), 8);
  EXPECT_EQ(*store_.GetPlacement(view->record->id), *view->record);
  EXPECT_REFUSED(Place(in(1, Nodes(3))).status(), StatusCode::kResourceExhausted,
                 "; 8 of 16 nodes are out as their first ports are no full members of partition "
                 "0x0001");
  CreatePlacementArgs limited = in(1, Nodes(1));
  limited.task.include = {"n9"};
  EXPECT_REFUSED(Place(limited).status(), StatusCode::kFailedPrecondition, "n9 to include is out");
  // Without a partition: the one that all of them share.
  EXPECT_REFUSED(Place(Nodes(2)).status(), StatusCode::kFailedPrecondition,
                 "partition 0x7fff: ports n0/1 (0000000000005000) and n1/1");
  const auto shared = Place(Nodes(2, "", {"n[12-15]"}));
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ(shared->record->partition, PartitionNum(2));
  EXPECT_REFUSED(Place(Nodes(2)).status(), StatusCode::kFailedPrecondition,
                 "; or name a partition, whose full members are candidates then");
  // And the job has it.
  EXPECT_EQ(StartOf(view->record->id)->record->partition, PartitionNum(1));
}

// Entries that the partition's jobs may not have do not count for them.
TEST_F(PlacementsTest, TreesToComeAreOfSwitchesThatServeThePartition) {
  auto partitions = std::make_shared<Partitions>();
  for (uint32_t host = 0; host < 16; ++host) partitions->Set(PortGuid(host), {0x8001});
  for (uint32_t leaf = 0; leaf < 3; ++leaf) partitions->Set(LeafGuid(leaf), {0x0001});
  for (const Guid guid : {LeafGuid(3), SpineGuid(0), SpineGuid(1)}) {
    partitions->Set(guid, {0x8001});
  }
  Boot(Options(), /*sweep=*/false);
  SweepResult swept;
  swept.fabric = SmallFabric();
  swept.partitions = std::move(partitions);
  port_.Set(absl::StatusOr<SweepResult>(std::move(swept)));
  ASSERT_TRUE(manager_->Sweep().ok());
  CreatePlacementArgs args = Nodes(2);
  args.task.trees = 1;
  const auto view = Place(args);
  ASSERT_TRUE(view.ok()) << view.status();
  for (const std::string& node : view->record->nodes) EXPECT_GE(std::stoi(node.substr(1)), 12);
  EXPECT_THAT(
      view->record->reason,
      testing::HasSubstr("; 3 switches cannot serve, as their ports 0 are no full member of "
                         "partition 0x0001"));
}

TEST_F(PlacementsTest, TooFewFreeNodesSayWhoHoldsThem) {
  Boot();
  PlaceNodes(10);
  const absl::Status status = Place(Nodes(7)).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  ASSERT_TRUE(status.GetPayload(kHoldersPayload).has_value());
  EXPECT_EQ(std::string(*status.GetPayload(kHoldersPayload)), "placement:1 10 nodes of ada");
  EXPECT_THAT(std::string(status.message()), EndsWith("; held: 10 by placement:1 of ada"));
  NewJob();
  const absl::Status full = Place(Nodes(1)).status();
  EXPECT_REFUSED(full, StatusCode::kResourceExhausted, "only 0 of 16 hosts are free");
  EXPECT_THAT(std::string(full.message()),
              HasSubstr("; held: 10 by placement:1 of ada, 6 by job:1 of "));
  EXPECT_THAT(std::string(full.message()), EndsWith("name nodes as candidates"));
  // A scheduler may name nodes of jobs, but not of placements.
  const auto view = Place(Nodes(6, "", {"n[0-15]"}));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_REFUSED(Place(Nodes(1, "", {"n[0-15]"})).status(), StatusCode::kResourceExhausted, "");
}

TEST_F(PlacementsTest, BadInputIsNamed) {
  Boot();
  EXPECT_REFUSED(Place(Nodes(0)).status(), StatusCode::kInvalidArgument, "at least one");
  EXPECT_REFUSED(Place(Nodes(17)).status(), StatusCode::kInvalidArgument, "17");
  EXPECT_REFUSED(Place(Nodes(1, "", {"n[0-"})).status(), StatusCode::kInvalidArgument,
                 "candidates[0]: node list, letter 2");
  EXPECT_REFUSED(Place(Nodes(1, "", {"n[0-3]", "n2"})).status(), StatusCode::kInvalidArgument,
                 "candidates: node n2 is named twice");
  EXPECT_REFUSED(Place(Nodes(1, "", {"n[14-18]"})).status(), StatusCode::kNotFound,
                 "candidates: the fabric has no node n16, n17, n18;");
  CreatePlacementArgs args = Nodes(2);
  args.task.include = {"n1"};
  args.task.avoid = {"n1"};
  EXPECT_REFUSED(Place(args).status(), StatusCode::kInvalidArgument, "n1");
  args = Nodes(2);
  args.term = absl::Milliseconds(1);
  EXPECT_REFUSED(Place(args).status(), StatusCode::kInvalidArgument, "term");
  args = Nodes(2);
  args.task.ranks_per_node = 0;
  EXPECT_REFUSED(Place(args).status(), StatusCode::kInvalidArgument, "ranks per node");
  EXPECT_REFUSED(BeginPlace({}).Get().status(), StatusCode::kInvalidArgument, "requests");
  EXPECT_REFUSED(BeginPlace({Nodes(1), Nodes(0)}).Get().status(), StatusCode::kInvalidArgument,
                 "requests[1]: nodes");
  EXPECT_THAT(placements().List(PlacementId(), 10), IsEmpty());
}

TEST_F(PlacementsTest, AnOrderOfRanksHasPositionsWithinLimits) {
  ManagerOptions options = Options();
  options.max_job_ranks = 16;
  Boot(options);
  CreatePlacementArgs args = Nodes(4);
  args.task.ranks_per_node = 5;
  EXPECT_TRUE(placements().Advise({args.task}, {}, nullptr).ok());  // no memory for each
  args.task.pattern = Pattern::Make(2, {}).value();
  EXPECT_REFUSED(Place(args).status(), StatusCode::kInvalidArgument,
                 "20 positions to order a pattern's ranks on, over the daemon's limits.job_ranks");
  EXPECT_REFUSED(placements().Advise({args.task}, {}, nullptr).status(),
                 StatusCode::kInvalidArgument, "limits.job_ranks of 16");
  args.task.ranks_per_node = 4;
  EXPECT_TRUE(Place(args).ok());
}

TEST_F(PlacementsTest, NoFabricYet) {
  Boot(Options(), /*sweep=*/false);
  EXPECT_EQ(Place(Nodes(1)).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(placements().Advise({Nodes(1).task}, {}, nullptr).status().code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(placements().Distances({"n1"}).status().code(), StatusCode::kUnavailable);
}

TEST_F(PlacementsTest, ARequestIdHoldsOnce) {
  Boot();
  const auto first = Place(Nodes(2, "r"));
  const auto again = Place(Nodes(2, "r"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(first->record->id, again->record->id);
  EXPECT_REFUSED(Place(Nodes(3, "r")).status(), StatusCode::kAlreadyExists, "other content");
  ASSERT_TRUE(ReleaseOf(first->record->id).ok());
  EXPECT_REFUSED(Place(Nodes(2, "r")).status(), StatusCode::kAlreadyExists, "is over");
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);  // and nothing of the refused one stayed
}

TEST_F(PlacementsTest, WhoAsksWhileItIsUnderWayGetsTheSame) {
  Boot();
  store_.HoldBack();
  auto first = BeginPlace({Nodes(2, "r")});
  auto second = BeginPlace({Nodes(2, "r")});
  EXPECT_FALSE(second.answered());
  store_.LetGo();
  EXPECT_EQ(first.Get()->front().record->id, second.Get()->front().record->id);
  EXPECT_EQ(manager_->Counts().held_placements, 1u);
}

TEST_F(PlacementsTest, ABatchIsAllOrNoneAndEachBesideTheOthers) {
  Boot();
  const auto views = BeginPlace({Nodes(4, "a"), Nodes(4, "b"), Nodes(8, "c")}).Get();
  ASSERT_TRUE(views.ok()) << views.status();
  std::set<std::string> all;
  for (const PlacementView& view : *views) all.merge(NodesOf(view));
  EXPECT_EQ(all.size(), 16u);
  const auto again = BeginPlace({Nodes(4, "a"), Nodes(4, "b"), Nodes(8, "c")}).Get();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)[2].record->id, (*views)[2].record->id);
  for (const PlacementView& view : *views) ASSERT_TRUE(ReleaseOf(view.record->id).ok());
  EXPECT_REFUSED(BeginPlace({Nodes(12), Nodes(5)}).Get().status(), StatusCode::kResourceExhausted,
                 "requests[1]");
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
}

TEST_F(PlacementsTest, AdviceTakesNothingAndGoesOnBehindWhatCannotBe) {
  Boot();
  const auto views =
      placements().Advise({Nodes(12).task, Nodes(5).task, Nodes(4).task}, {}, nullptr);
  ASSERT_TRUE(views.ok()) << views.status();
  EXPECT_THAT((*views)[0].record->nodes, SizeIs(12));
  EXPECT_THAT((*views)[1].why_not, HasSubstr("5"));
  EXPECT_THAT((*views)[2].record->nodes, SizeIs(4));
  EXPECT_EQ((*views)[2].record->id, PlacementId());
  EXPECT_THAT(placements().List(PlacementId(), 10), IsEmpty());
  EXPECT_REFUSED(placements().Advise({Nodes(1).task, Nodes(99).task}, {}, nullptr).status(),
                 StatusCode::kInvalidArgument, "requests[1]");
}

TEST_F(PlacementsTest, AStartMakesAJobOnTheNodes) {
  Boot();
  CreatePlacementArgs args = Nodes(2, "r");
  args.task.ranks_per_node = 2;
  const auto view = Place(args);
  StartPlacementArgs start;
  start.request_id = "start";
  const auto job = StartOf(view->record->id, start);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->record->name, "melt");
  EXPECT_EQ(job->record->owner, "ada");
  const auto port_of = [](const std::string& node) {
    return PortGuid(static_cast<uint32_t>(std::stoi(node.substr(1))));
  };
  const auto& nodes = view->record->nodes;
  EXPECT_THAT(job->record->endpoints, ElementsAre(port_of(nodes[0]), port_of(nodes[0]),
                                                  port_of(nodes[1]), port_of(nodes[1])));
  EXPECT_EQ(StartOf(view->record->id)->record->id, job->record->id);  // once more
  const auto started = placements().Get(view->record->id);
  EXPECT_EQ(started->record->state, PlacementState::kStarted);
  EXPECT_EQ(started->record->job, job->record->id);
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
  // The nodes are the job's now.
  const auto rest = Place(Nodes(14));
  ASSERT_TRUE(rest.ok()) << rest.status();
  for (const std::string& node : nodes) EXPECT_FALSE(NodesOf(*rest).contains(node));
  ASSERT_TRUE(End(job->record->id).ok());
  EXPECT_TRUE(Place(Nodes(2)).ok());
  EXPECT_THAT(EventsOf("placement.started"), SizeIs(1));
  EXPECT_REFUSED(placements().Renew(view->record->id).status(), StatusCode::kFailedPrecondition,
                 "is over: started");
}

TEST_F(PlacementsTest, NodesThatLeftTheFabricAreNamedAtTheStart) {
  Boot();
  const auto view = Place(Nodes(3, "", {"n[4-6]"}));
  port_.Set(SmallFabric({.missing_hosts = {5, 6}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_REFUSED(StartOf(view->record->id).status(), StatusCode::kFailedPrecondition,
                 "node n5, n6");
  EXPECT_EQ(placements().Get(view->record->id)->record->state, PlacementState::kHeld);
  port_.Set(SmallFabric());
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_TRUE(StartOf(view->record->id).ok());
}

// As after SIGSTOP: no renewal could come in meanwhile.
TEST_F(PlacementsTest, AStallEndsNoTerm) {
  Boot();
  const PlacementId held = PlaceNodes(4);
  clock_.Advance(absl::Hours(1));
  manager_->ForgiveStall(absl::Hours(1));
  manager_->ExpireLeases();
  Settle();
  EXPECT_EQ(placements().Get(held)->term_left, absl::Minutes(5));
  clock_.Advance(absl::Minutes(5));
  manager_->ForgiveStall(absl::Milliseconds(999));  // as any machine may be late
  manager_->ExpireLeases();
  Settle();
  EXPECT_EQ(placements().Get(held)->record->state, PlacementState::kExpired);
}

TEST_F(PlacementsTest, TermsEndWhereASchedulerForgets) {
  Boot();
  const PlacementId kept = PlaceNodes(4), forgotten = PlaceNodes(4);
  clock_.Advance(absl::Minutes(3));
  ASSERT_TRUE(placements().Renew(kept).ok());
  clock_.Advance(absl::Minutes(3));
  EXPECT_EQ(manager_->ExpireLeases(), absl::Minutes(2));
  Settle();
  EXPECT_EQ(placements().Get(forgotten)->record->state, PlacementState::kExpired);
  EXPECT_EQ(placements().Get(kept)->term_left, absl::Minutes(2));
  EXPECT_EQ(manager_->Counts().placed_nodes, 4u);
  EXPECT_REFUSED(StartOf(forgotten).status(), StatusCode::kFailedPrecondition, "term has run out");
  EXPECT_TRUE(ReleaseOf(forgotten).ok());  // of one that is over is OK
  EXPECT_THAT(EventsOf("placement.expired"), SizeIs(1));
  EXPECT_REFUSED(ReleaseOf(PlacementId(77)).status(), StatusCode::kNotFound, "77");
}

TEST_F(PlacementsTest, ARestartKeepsThemAndBeginsTheirTermsAnew) {
  Boot();
  CreatePlacementArgs args = Nodes(4, "r");
  args.task.constraints.exclusive_switches = true;
  const auto view = Place(args);
  clock_.Advance(absl::Minutes(4));
  Boot();
  const auto held = placements().Get(view->record->id);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(held->term_left, absl::Minutes(5));
  EXPECT_EQ(held->record->measures.leaf_switches, 1u);
  EXPECT_EQ(Place(args)->record->id, view->record->id);
  EXPECT_REFUSED(Place(Nodes(13)).status(), StatusCode::kResourceExhausted, "");
  EXPECT_TRUE(Place(Nodes(12)).ok());
  EXPECT_EQ(placements().List(PlacementId(), 9).back().record->id, PlacementId(2));
}

TEST_F(PlacementsTest, ExclusiveSwitchesStayTheJobs) {
  Boot();
  CreatePlacementArgs args = Nodes(2);
  args.task.constraints.exclusive_switches = true;
  const auto view = Place(args);
  EXPECT_REFUSED(Place(Nodes(13)).status(), StatusCode::kResourceExhausted, "");
  const auto job = StartOf(view->record->id);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_REFUSED(Place(Nodes(13)).status(), StatusCode::kResourceExhausted, "");
  Boot();  // also after a restart
  EXPECT_REFUSED(Place(Nodes(13)).status(), StatusCode::kResourceExhausted, "");
  ASSERT_TRUE(End(job->record->id).ok());
  EXPECT_TRUE(Place(Nodes(16)).ok());
}

TEST_F(PlacementsTest, WhoHoldsTooManyIsTold) {
  ManagerOptions options = Options();
  options.placement.most_held = 3;
  options.placement.most_held_per_owner = 2;
  Boot(options);
  PlaceNodes(1);
  PlaceNodes(1);
  const absl::Status own = Place(Nodes(1)).status();
  EXPECT_REFUSED(own, StatusCode::kResourceExhausted, "placement.held_per_owner");
  EXPECT_EQ(std::string(*own.GetPayload(kHoldersPayload)), "user:ada 2 placements held");
  CreatePlacementArgs others = Nodes(1);
  others.owner = "bob";
  ASSERT_TRUE(Place(others).ok());
  EXPECT_REFUSED(Place(others).status(), StatusCode::kResourceExhausted, "(placement.held)");
  options.placement.most_held = 4;
  ASSERT_TRUE(manager_->Reconfigure(options).ok());
  EXPECT_TRUE(Place(others).ok());
}

TEST_F(PlacementsTest, AFailingDiskHoldsNothing) {
  Boot();
  store_.Refuse<PutPlacements>(absl::UnavailableError("disk"));
  EXPECT_EQ(Place(Nodes(4, "r")).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
  store_.Obey();
  const auto view = Place(Nodes(16, "r"));
  ASSERT_TRUE(view.ok()) << view.status();
  store_.Refuse<EndPlacement>(absl::UnavailableError("disk"));
  EXPECT_EQ(ReleaseOf(view->record->id).status().code(), StatusCode::kUnavailable);
  store_.Refuse<StartPlacement>(absl::UnavailableError("disk"));
  EXPECT_EQ(StartOf(view->record->id).status().code(), StatusCode::kUnavailable);
  store_.Obey();
  EXPECT_EQ(placements().Get(view->record->id)->record->state, PlacementState::kHeld);
  EXPECT_TRUE(StartOf(view->record->id).ok());
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
}

TEST_F(PlacementsTest, AWriteThatFailedButIsDurableHoldsNothing) {
  Boot();
  bool ends = true;
  store_.RefuseWhere([&](const Mutation& mutation) -> absl::Status {
    if (std::holds_alternative<PutPlacements>(mutation)) {
      EXPECT_TRUE(kept_.Apply(mutation).ok());
      return absl::UnavailableError("disk");
    }
    const bool refuses = std::holds_alternative<EndPlacement>(mutation) && !ends;
    return refuses ? absl::UnavailableError("disk") : absl::OkStatus();
  });
  EXPECT_EQ(Place(Nodes(4)).status().code(), StatusCode::kUnavailable);
  Settle();
  EXPECT_EQ(placements().Get(PlacementId(1))->record->state, PlacementState::kReleased);
  ends = false;
  EXPECT_EQ(Place(Nodes(16)).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(ReleaseOf(PlacementId(2)).status().code(), StatusCode::kUnavailable);
  store_.Obey();
  EXPECT_EQ(Place(Nodes(16)).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(ReleaseOf(PlacementId(2)).ok());
  EXPECT_TRUE(Place(Nodes(16)).ok());
}

TEST_F(PlacementsTest, AReleaseDuringAStartThatFailsStillReleases) {
  Boot();
  const PlacementId id = PlaceNodes(2);
  store_.HoldBack();
  Answer<JobView> start;
  StartPlacementArgs args;
  args.id = id;
  placements().Start(args, start.Callback());
  Answer<PlacementId> release;
  placements().Release(id, release.Callback());
  store_.Refuse<StartPlacement>(absl::UnavailableError("disk"));
  store_.LetGo();
  EXPECT_EQ(start.Get().status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(release.Get().ok());
  EXPECT_EQ(manager_->Counts().held_placements, 0u);
}

TEST_F(PlacementsTest, AReleaseDuringAStartThatSucceedsNamesTheJob) {
  Boot();
  StartPlacementArgs args;
  args.id = PlaceNodes(2);
  store_.HoldBack();
  Answer<JobView> start;
  placements().Start(args, start.Callback());
  Answer<PlacementId> release;
  placements().Release(args.id, release.Callback());
  store_.LetGo();
  const auto job = start.Get();
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_REFUSED(release.Get().status(), StatusCode::kFailedPrecondition,
                 "started as job " + std::to_string(job->record->id.value()));
}

TEST_F(PlacementsTest, WhatIsEndingIsNotRenewed) {
  Boot();
  const PlacementId id = PlaceNodes(2);
  store_.HoldBack();
  Answer<PlacementId> release;
  placements().Release(id, release.Callback());
  EXPECT_REFUSED(placements().Renew(id).status(), StatusCode::kFailedPrecondition,
                 "is being released");
  store_.LetGo();
  EXPECT_TRUE(release.Get().ok());
}

TEST_F(PlacementsTest, AFabricThatMovesMeansPlanningAgain) {
  Boot();
  // The candidates' fabric goes away between plan and commit, once.
  int calls = 0;
  Answer<Views> answer;
  placements().Create(
      {Nodes(2)},
      [&] {
        if (++calls == 2) {
          port_.Set(SmallFabric({.missing_hosts = {3}}));
          EXPECT_TRUE(manager_->Sweep().ok());
        }
        return false;
      },
      answer.Callback());
  const auto views = answer.Get();
  ASSERT_TRUE(views.ok()) << views.status();
  EXPECT_EQ(views->front().record->fabric_version, manager_->fabric()->snapshot->fabric->version());
  EXPECT_GT(calls, 2);
}

TEST_F(PlacementsTest, AJobThatComesDuringAPlanKeepsItsNodes) {
  Boot();
  const auto place_while_a_job_comes = [this](CreatePlacementArgs args, const char* node) {
    Answer<Views> answer;
    int calls = 0;
    placements().Create(
        {std::move(args)},
        [&] {
          if (++calls == 2) {  // planned, not taken yet
            RegisterJobArgs job = AllHosts();
            job.all_endpoints = false;
            job.endpoints = {node};
            EXPECT_TRUE(Register(job).ok());
          }
          return false;
        },
        answer.Callback());
    return answer.Get();
  };
  CreatePlacementArgs args = Nodes(1);
  args.task.avoid = {"n[1-15]"};
  EXPECT_REFUSED(place_while_a_job_comes(args, "n0").status(), StatusCode::kResourceExhausted, "");
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
  // Whoever names the nodes knows of the job.
  EXPECT_TRUE(place_while_a_job_comes(Nodes(1, "", {"n1"}), "n1").ok());
  // A leaf switch that was to be one's own.
  args = Nodes(3, "", {"n[8-10]"});
  args.task.constraints.exclusive_switches = true;
  EXPECT_REFUSED(place_while_a_job_comes(args, "n11").status(), StatusCode::kResourceExhausted, "");
}

TEST_F(PlacementsTest, AFabricThatNeverRestsMeansAborted) {
  Boot();
  Answer<Views> answer;
  int calls = 0;
  placements().Create(
      {Nodes(1)},
      [&] {
        if (++calls % 2 == 0) {  // planned, not taken yet
          port_.Set(SmallFabric({.missing_hosts = {calls % 4 == 0 ? 3U : 2U}}));
          EXPECT_TRUE(manager_->Sweep().ok());
        }
        return false;
      },
      answer.Callback());
  EXPECT_EQ(answer.Get().status().code(), StatusCode::kAborted);
  EXPECT_EQ(calls, 2 * Placements::kMaxAttempts);
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
}

TEST_F(PlacementsTest, ACallHasOneBudgetForAllItsSearches) {
  PlacementTask task = Nodes(1).task;
  CallBudget single(&clock_);
  single.BeginAttempt(1);
  EXPECT_EQ(single.NextOf(task), absl::Seconds(1));
  task.pattern = Pattern::Make(2, {}).value();
  EXPECT_EQ(single.NextOf(task), absl::Seconds(1));
  task.budget = kMaxBudget;
  CallBudget budget(&clock_);
  absl::Duration sum;
  for (int attempt = 0; attempt < 8; ++attempt) {
    budget.BeginAttempt(100);
    for (int i = 0; i < 100; ++i) {
      const absl::Duration share = budget.NextOf(task);
      clock_.Advance(share);
      sum += share;
    }
  }
  EXPECT_LE(sum, kMaxBudget);
  EXPECT_GT(sum, kMaxBudget / 2);
  EXPECT_TRUE(budget.Check().ok());
  clock_.Advance(kMaxBudget);
  EXPECT_EQ(budget.Check().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(PlacementsTest, ACallThatTakesTooLongEnds) {
  Boot();
  const auto slow = [this] {
    clock_.Advance(absl::Seconds(90));
    return false;
  };
  EXPECT_REFUSED(placements().Advise({Nodes(1).task, Nodes(1).task}, {}, slow).status(),
                 StatusCode::kDeadlineExceeded, "fewer at once");
  Answer<Views> answer;
  placements().Create({Nodes(1), Nodes(1)}, slow, answer.Callback());
  EXPECT_EQ(answer.Get().status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
}

TEST_F(PlacementsTest, WhoGoesAwayHoldsNothing) {
  Boot();
  Answer<Views> answer;
  placements().Create(
      {Nodes(1)}, [] { return true; }, answer.Callback());
  EXPECT_EQ(answer.Get().status().code(), StatusCode::kCancelled);
  EXPECT_EQ(manager_->Counts().placed_nodes, 0u);
}

TEST_F(PlacementsTest, DistancesAreLinksAndLevels) {
  Boot();
  const auto view = placements().Distances({"n[0-1],n4"});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_THAT(view->nodes, ElementsAre("n0", "n1", "n4"));
  EXPECT_THAT(view->hops, ElementsAre(0, 2, 4, 2, 0, 4, 4, 4, 0));
  EXPECT_EQ(view->levels[1], 1u);
  EXPECT_GE(view->levels[2], 2u);
  EXPECT_THAT(placements().DistancesOfJob(NewJob())->nodes, SizeIs(16));
  EXPECT_EQ(placements().DistancesOfJob(JobId(9)).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(placements().Distances({"x"}).status().code(), StatusCode::kNotFound);
}

TEST_F(PlacementsTest, NodeListsRegisterJobs) {
  Boot();
  RegisterJobArgs args = AllHosts();
  args.all_endpoints = false;
  args.endpoints = {"n[2-3]/1", "n0"};
  const auto job = Register(args);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->record->endpoints, ElementsAre(PortGuid(2), PortGuid(3), PortGuid(0)));
  args.endpoints = {"n0", "n[2-"};
  EXPECT_REFUSED(Register(args).status(), StatusCode::kInvalidArgument,
                 "endpoints[1]: node list, letter 2");
}

}  // namespace
}  // namespace coppice::placements_test
