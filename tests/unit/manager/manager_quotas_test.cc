// Quotas where grants are decided: each refusal names the holder, what is given back counts no
// more, and after a restart the same counts.
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/manager/placement/placement_view.h"
#include "daemon/manager/quota_ledger.h"
#include "tests/support/tier.h"
#include "tests/unit/manager/placement/placements_fixture.h"

namespace coppice::manager_quotas_test {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

class ManagerQuotasTest : public PlacementsTest {
 protected:
  void BootWith(QuotaOptions quotas) {
    ManagerOptions options = Options(/*entries=*/4);
    options.quotas = quotas;
    Boot(options);
  }
  static QuotaOptions Only(Quota quota, QuotaLimit limit) {
    QuotaOptions options;
    options[quota] = limit;
    return options;
  }
  static RegisterJobArgs JobOf(const std::string& owner, bool is_administrator = false,
                               const std::string& request_id = "") {
    RegisterJobArgs args = AllHosts(request_id);
    args.owner = args.actor.user = owner;
    args.actor.is_administrator = is_administrator;
    return args;
  }
  int64_t Used(const std::string& user, Quota quota) {
    return manager_->quotas()
        .StandingOf({QuotaHolder::kUser, user})[static_cast<size_t>(quota)]
        .used;
  }
  static void ExpectRefused(const absl::Status& status, const std::string& holder,
                            const std::string& quota) {
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
    const auto payload = status.GetPayload(kHoldersPayload);
    ASSERT_TRUE(payload.has_value()) << status;
    EXPECT_THAT(std::string(*payload), HasSubstr("user:" + holder));
    EXPECT_THAT(std::string(*payload), HasSubstr(quota));
  }
  // A job that leaves nodes to placements.
  static RegisterJobArgs SmallJobOf(const std::string& owner, bool is_administrator = false,
                                    const std::string& request_id = "") {
    RegisterJobArgs args = JobOf(owner, is_administrator, request_id);
    args.all_endpoints = false;
    args.endpoints = {"n[0-3]"};
    return args;
  }
  // What the records in the store add up to.
  QuotaAmounts Recount(const std::string& user) {
    QuotaAmounts amounts;
    const StoredState state = *store_.Load();
    std::map<JobId, std::string> owners;
    for (const JobRecord& job : state.jobs) {
      owners[job.id] = job.owner;
      if (job.owner != user) continue;
      amounts[Quota::kJobs] += 1;
      amounts[Quota::kRanks] += static_cast<int64_t>(job.endpoints.size());
      amounts[Quota::kNodes] += job.placed_nodes;
    }
    for (const TreeRecord& tree : state.trees) {
      if (owners[tree.job] != user) continue;
      amounts[Quota::kTrees] += 1;
      const size_t trees = tree.forest.empty() ? 1 : tree.forest.size();
      amounts[Quota::kTreeRanks] += static_cast<int64_t>(tree.ranks.size() * trees);
      amounts[Quota::kEntries] += static_cast<int64_t>(tree.switches.size());
    }
    for (const PlacementRecord& placement : state.placements) {
      if (placement.owner != user || placement.state != PlacementState::kHeld) continue;
      amounts[Quota::kNodes] += static_cast<int64_t>(placement.nodes.size());
    }
    return amounts;
  }
  void ExpectSameAsRecount(const std::string& user) {
    const QuotaAmounts counted = Recount(user);
    for (size_t i = 0; i < kCountedQuotas; ++i) {
      EXPECT_EQ(Used(user, static_cast<Quota>(i)), counted.of[i])
          << user << " " << std::string(kQuotaWords[i].name);
    }
  }
};

TEST_F(ManagerQuotasTest, Jobs) {
  BootWith(Only(Quota::kJobs, {2}));
  const JobId first = (*Register(JobOf("ada"))).record->id;
  ASSERT_TRUE(Register(JobOf("ada")).ok());
  ExpectRefused(Register(JobOf("ada")).status(), "ada", "quota jobs");
  EXPECT_TRUE(Register(JobOf("eve")).ok());
  EXPECT_TRUE(Register(JobOf("ada", /*is_administrator=*/true)).ok());
  ASSERT_TRUE(End(first).ok());
  EXPECT_TRUE(Register(JobOf("ada")).ok());
  ExpectSameAsRecount("ada");
}

TEST_F(ManagerQuotasTest, Ranks) {
  BootWith(Only(Quota::kRanks, {20}));
  ASSERT_TRUE(Register(JobOf("ada")).ok());  // of 16
  ExpectRefused(Register(JobOf("ada")).status(), "ada", "quota ranks");
  RegisterJobArgs small = JobOf("ada");
  small.all_endpoints = false;
  small.endpoints = {"n[0-3]"};
  EXPECT_TRUE(Register(small).ok());
  EXPECT_EQ(Used("ada", Quota::kRanks), 20);
}

// Two accounts share each switch; what one may not have there is planned elsewhere or as type I.
TEST_F(ManagerQuotasTest, EntriesOfOneSwitch) {
  BootWith({});
  ASSERT_TRUE(manager_
                  ->ImportAccounts({{{"atlas", "physics"}, {"physics"}},
                                    {{"ada", "atlas", true}, {"eve", "physics", true}}},
                                   Actor())
                  .ok());
  const auto allow = [&](const std::string& account, int64_t entries) {
    Answer<QuotaRecord> answer;
    manager_->SetQuota({{QuotaHolder::kAccount, account, "switch_entries", entries}}, {},
                       answer.Callback());
    ASSERT_TRUE(answer.Get().ok());
  };
  allow("atlas", 1);
  allow("physics", 2);
  const JobId ada = (*Register(JobOf("ada"))).record->id;
  const JobId eve = (*Register(JobOf("eve"))).record->id;
  std::map<Guid, int> of_ada, of_both;
  const auto create = [&](JobId job, bool is_type_ii) {
    CreateTreeArgs args = TreeOf(job);
    if (!is_type_ii) args.type.reset();
    return Create(std::move(args));
  };
  // Trees of type II until one is refused, whose refusal is returned.
  const auto create_all = [&](JobId job) {
    for (;;) {
      const auto tree = create(job, /*is_type_ii=*/true);
      if (!tree.ok()) return tree.status();
      for (const TreeSwitchRecord& entry : tree->record->switches) {
        ++of_both[entry.guid];
        if (job == ada) ++of_ada[entry.guid];
      }
    }
  };
  const auto most = [](const std::map<Guid, int>& held) {
    int greatest = 0;
    for (const auto& [guid, entries] : held) greatest = std::max(greatest, entries);
    return greatest;
  };
  const absl::Status refused = create_all(ada);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("all entries that the job may have are taken (quota switch_entries)"));
  EXPECT_FALSE(refused.GetPayload(kFullSwitchesPayload).has_value()) << "no switch is full";
  EXPECT_EQ(most(of_ada), 1);
  EXPECT_GE(of_ada.size(), 2u) << "the next switch serves as well";
  const auto otherwise = create(ada, /*is_type_ii=*/false);
  ASSERT_TRUE(otherwise.ok()) << otherwise.status();
  EXPECT_TRUE(otherwise->record->switches.empty());
  EXPECT_EQ(create_all(eve).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(most(of_both), 2) << "physics has two of each, with what atlas has";
  BootWith({});
  EXPECT_FALSE(create(ada, /*is_type_ii=*/true).ok()) << "the same counts after a restart";
  ASSERT_TRUE(End(eve).ok());
  EXPECT_FALSE(create(ada, /*is_type_ii=*/true).ok()) << "atlas has what it may have";
  allow("atlas", 2);
  EXPECT_TRUE(create(ada, /*is_type_ii=*/true).ok());
}

// Nothing is planned for whom no time is left, and what was planned is on his account.
TEST_F(ManagerQuotasTest, TimeOfThePlannerAndSearches) {
  BootWith({});
  const JobId job = (*Register(JobOf("ada"))).record->id;
  RankMapper mapper(manager_.get(), &SystemClock(), MapperOptions());
  MapRanksArgs map;
  map.task.pattern = Pattern::Make(2, {{0, 1, 100, 1}}).value();
  map.task.hosts = {"n0", "n1"};
  map.budget = absl::Milliseconds(10);
  map.payer = manager_->quotas().PayerOf("eve", false);  // on the machine's own clock
  const Payer ada = manager_->quotas().PayerOf("ada", false);
  PlacementTask task;
  task.constraints.host_count = 1;
  const auto limit = [&](const std::string& user, const std::string& name, int64_t value) {
    Answer<QuotaRecord> answer;
    manager_->SetQuota({{QuotaHolder::kUser, user, name, value}}, {}, answer.Callback());
    ASSERT_TRUE(answer.Get().ok());
  };
  ASSERT_TRUE(mapper.MapRanks(map, {}).ok());
  EXPECT_EQ(Used("eve", Quota::kSearches), 0) << "it is over";
  limit("eve", "searches", 0);
  ExpectRefused(mapper.MapRanks(map, {}).status(), "eve", "quota searches");
  limit("eve", "planner_seconds", 0);
  ExpectRefused(mapper.MapRanks(map, {}).status(), "eve", "quota planner_seconds");
  limit("ada", "searches", 0);
  EXPECT_TRUE(manager_->placements().Advise({task}, ada, nullptr).ok()) << "no search";
  limit("ada", "planner_seconds", 0);
  ExpectRefused(manager_->placements().Advise({task}, ada, nullptr).status(), "ada",
                "quota planner_seconds");
  ExpectRefused(Create(TreeOf(job)).status(), "ada", "quota planner_seconds");
  CreateBatchArgs batch;
  batch.job = job;
  batch.communicators = {{0, 1}, {2, 3}};
  Answer<std::shared_ptr<const BatchView>> answer;
  manager_->BatchCreateTrees(batch, {}, answer.Callback());
  ExpectRefused(answer.Get().status(), "ada", "quota planner_seconds");
  limit("ada", "planner_seconds", 1);
  EXPECT_TRUE(Create(TreeOf(job)).ok());
  manager_->quotas().SpendPlanner(ada, absl::Seconds(2), clock_.Monotonic());
  ExpectRefused(Create(TreeOf(job)).status(), "ada", "2 of 1 seconds of the planner");
  clock_.Advance(absl::Hours(1));
  EXPECT_TRUE(Create(TreeOf(job)).ok());
}

TEST_F(ManagerQuotasTest, Trees) {
  BootWith(Only(Quota::kTrees, {2}));
  const JobId job = (*Register(JobOf("ada"))).record->id;
  const TreeId first = (*Create(TreeOf(job, TreeType::kTypeI))).record->id;
  ASSERT_TRUE(Create(TreeOf(job, TreeType::kTypeI)).ok());
  ExpectRefused(Create(TreeOf(job, TreeType::kTypeI)).status(), "ada", "quota trees");
  CreateTreeArgs by_root = TreeOf(job, TreeType::kTypeI);
  by_root.actor.is_administrator = true;
  ASSERT_TRUE(Create(by_root).ok());
  EXPECT_EQ(Used("ada", Quota::kTrees), 3) << "whose job it is, whoever asks";
  ASSERT_TRUE(Release(first).ok());
  ExpectRefused(Create(TreeOf(job, TreeType::kTypeI)).status(), "ada", "quota trees");
  CreateBatchArgs batch;
  batch.job = job;
  batch.communicators = {{0, 1}, {2, 3}};
  Answer<std::shared_ptr<const BatchView>> answer;
  manager_->BatchCreateTrees(batch, {}, answer.Callback());
  ExpectRefused(answer.Get().status(), "ada", "quota trees");
  ExpectSameAsRecount("ada");
  ASSERT_TRUE(End(job).ok());
  EXPECT_EQ(Used("ada", Quota::kTrees), 0);
  EXPECT_TRUE(manager_->quotas().Holders().empty());
}

// One user never has all entries; who leaves the choice to the daemon gets a tree without.
TEST_F(ManagerQuotasTest, Entries) {
  BootWith(Only(Quota::kEntries, {25, true}));  // of 24: six switches of four
  const JobId job = (*Register(JobOf("ada"))).record->id;
  absl::Status refused;
  while (refused.ok()) refused = Create(TreeOf(job)).status();
  ExpectRefused(refused, "ada", "quota entries");
  EXPECT_EQ(Used("ada", Quota::kEntries), 6) << "one for each tree";
  CreateTreeArgs any;
  any.job = job;
  const absl::StatusOr<TreeView> without = Create(any);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->record->type, 1);
  EXPECT_THAT(without->record->reason, HasSubstr("not of type II: ada holds"));
  EXPECT_TRUE(Create(TreeOf((*Register(JobOf("eve"))).record->id)).ok());
  ExpectConserved();
  ExpectSameAsRecount("ada");
}

// A batch that need not be whole, or that does with type I, takes what its owner may still have.
TEST_F(ManagerQuotasTest, ABatchStaysWithinWhatIsLeft) {
  QuotaOptions options = Only(Quota::kEntries, {3});
  options[Quota::kTrees] = {5};
  BootWith(options);
  CreateBatchArgs batch;
  batch.job = (*Register(JobOf("ada"))).record->id;
  for (uint32_t c = 0; c < 8; ++c) batch.communicators.push_back({2 * c, 2 * c + 1});
  batch.communicators[0] = {0, 5, 10, 15};  // of all leaf switches
  const auto grant = [&] {
    Answer<std::shared_ptr<const BatchView>> answer;
    manager_->BatchCreateTrees(batch, {}, answer.Callback());
    return answer.Get();
  };
  ExpectRefused(grant().status(), "ada", "quota");
  batch.accept_type1 = true;
  ExpectRefused(grant().status(), "ada", "quota trees");
  batch.accept_type1 = false;
  batch.largest_part = true;
  for (const bool advise : {true, false}) {
    batch.validate_only = advise;
    const auto part = grant();
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ((*part)->trees.size(), 3u) << "of one entry each";
    ASSERT_EQ((*part)->refusals.size(), 5u);
    for (const BatchView::Refusal& refusal : (*part)->refusals) {
      EXPECT_THAT(refusal.why_not, HasSubstr("quotas.entries"));
    }
  }
  EXPECT_EQ(Used("ada", Quota::kEntries), 3);
  batch.accept_type1 = true;
  const auto more = grant();
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ((*more)->trees.size(), 2u) << "of type I, until there are as many as there may be";
  for (const BatchView::Tree& tree : (*more)->trees) EXPECT_EQ(tree.view.record->type, 1);
  EXPECT_THAT((*more)->refusals.at(0).why_not, HasSubstr("quotas.trees"));
  batch.actor.is_administrator = true;
  EXPECT_EQ((*grant())->trees.size(), 8u);
  ExpectConserved();
  ExpectSameAsRecount("ada");
}

TEST_F(ManagerQuotasTest, NodesOfPlacementsAndOfTheJobsStartedFromThem) {
  BootWith(Only(Quota::kNodes, {8}));
  ExpectRefused(Place(Nodes(9)).status(), "ada", "quota nodes");
  const PlacementId held = PlaceNodes(6);
  ExpectRefused(Place(Nodes(3)).status(), "ada", "quota nodes");
  const absl::StatusOr<JobView> job = StartOf(held);
  ASSERT_TRUE(job.ok()) << job.status();
  Settle();
  EXPECT_EQ(Used("ada", Quota::kNodes), 6) << "the job has them now";
  ExpectRefused(Place(Nodes(3)).status(), "ada", "quota nodes");
  const PlacementId two = PlaceNodes(2);
  Boot([] {
    ManagerOptions options = Options(4);
    options.quotas = Only(Quota::kNodes, {8});
    return options;
  }());
  EXPECT_EQ(Used("ada", Quota::kNodes), 8) << "after a restart";
  ASSERT_TRUE(ReleaseOf(two).ok());
  ASSERT_TRUE(End(job->record->id).ok());
  EXPECT_EQ(Used("ada", Quota::kNodes), 0);
  EXPECT_TRUE(Place(Nodes(8)).ok());
}

TEST_F(ManagerQuotasTest, LeasesAndTerms) {
  BootWith(Only(Quota::kLeaseSeconds, {30}));
  RegisterJobArgs args = SmallJobOf("ada");
  EXPECT_EQ((*Register(args)).record->lease, absl::Seconds(30))
      << "not the default, which is longer";
  args.lease = absl::Seconds(31);
  ExpectRefused(Register(args).status(), "ada", "quota lease_seconds");
  args.actor.is_administrator = true;
  EXPECT_TRUE(Register(args).ok());
  CreatePlacementArgs nodes = Nodes(1);
  EXPECT_EQ((*Place(nodes)).record->term, absl::Seconds(30));
  nodes.term = absl::Seconds(31);
  ExpectRefused(Place(nodes).status(), "ada", "quota lease_seconds");
}

TEST_F(ManagerQuotasTest, AUserIsGivenALimitOfHisOwnForGood) {
  BootWith(Only(Quota::kJobs, {1}));
  PutQuota put{{QuotaHolder::kUser, "ada", "jobs", 2}};
  Answer<QuotaRecord> answer;
  Actor root;
  root.user = root.caller = "root";
  root.is_administrator = true;
  root.method = "Admin.SetQuota";
  manager_->SetQuota(put, root, answer.Callback());
  ASSERT_TRUE(answer.Get().ok());
  ASSERT_TRUE(Register(JobOf("ada")).ok());
  ASSERT_TRUE(Register(JobOf("ada")).ok());
  BootWith(Only(Quota::kJobs, {1}));
  EXPECT_EQ(Used("ada", Quota::kJobs), 2);
  EXPECT_EQ(manager_->quotas()
                .StandingOf({QuotaHolder::kUser, "ada"})
                .at(static_cast<size_t>(Quota::kJobs))
                .limit,
            2);
  const std::vector<EventRecord> events = EventsOf("quota.changed");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].actor, "root");
  const std::vector<DeedRecord> deeds = *manager_->Deeds({});
  ASSERT_EQ(deeds.size(), 1u);
  EXPECT_EQ(deeds[0].object, "user:ada jobs");
  EXPECT_EQ(deeds[0].share, DeedShare::kAdministrator);
  put.quota.limit = "cows";
  Answer<QuotaRecord> none;
  manager_->SetQuota(put, root, none.Callback());
  EXPECT_EQ(none.Get().status().code(), StatusCode::kInvalidArgument);
}

// A stranger who takes a request_id first keeps nobody from it.
TEST_F(ManagerQuotasTest, RequestIdsAreTheirOwners) {
  Boot();
  const JobId eves = (*Register(SmallJobOf("eve", false, "r"))).record->id;
  const absl::StatusOr<JobView> adas = Register(SmallJobOf("ada", false, "r"));
  ASSERT_TRUE(adas.ok()) << adas.status();
  EXPECT_NE(adas->record->id, eves);
  EXPECT_EQ((*Register(SmallJobOf("ada", false, "r"))).record->id, adas->record->id) << "a retry";
  CreatePlacementArgs nodes = Nodes(1, "r");
  nodes.owner = "eve";
  const PlacementId held = (*Place(nodes)).record->id;
  const absl::StatusOr<PlacementView> placed = Place(Nodes(1, "r"));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_NE(placed->record->id, held);
  Boot();
  EXPECT_EQ((*Register(SmallJobOf("ada", false, "r"))).record->id, adas->record->id);
  EXPECT_EQ((*Register(SmallJobOf("eve", false, "r"))).record->id, eves);
  EXPECT_EQ((*Place(Nodes(1, "r"))).record->id, placed->record->id);
}

TEST_F(ManagerQuotasTest, RanksOfEndedJobsAreDroppedBeyondTheirBytes) {
  BootWith(Only(Quota::kKeptBytes, {2 * (16 * 19 + 1)}));
  std::vector<JobId> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back((*Register(JobOf("ada"))).record->id);
    ASSERT_TRUE(End(jobs.back()).ok());
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(manager_->GetJob(jobs[1])->record->dropped_ranks, 16u);
  EXPECT_TRUE(manager_->GetJob(jobs[1])->record->endpoints.empty());
  EXPECT_EQ(manager_->GetJob(jobs[2])->record->endpoints.size(), 16u);
}

// Thousands of one user's jobs leave others' events where they are.
TEST_F(ManagerQuotasTest, EventsOfOneUserAreFolded) {
  ManagerOptions options = Options();
  options.events_per_user = 10;
  Boot(options);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(End((*Register(JobOf("eve"))).record->id).ok());
  ASSERT_TRUE(Register(JobOf("ada")).ok());
  EXPECT_EQ(EventsOf("job.").size(), 11u);
  clock_.Advance(absl::Seconds(61));
  manager_->FlushActivity();
  const std::vector<EventRecord> folded = EventsOf("events.folded");
  ASSERT_EQ(folded.size(), 1u);
  EXPECT_EQ(folded[0].object, "user:eve");
  EXPECT_THAT(folded[0].message, HasSubstr("25 job.ended, 25 job.registered"));
  clock_.Advance(absl::Minutes(30));
  ASSERT_TRUE(Register(JobOf("eve")).ok());
  EXPECT_EQ(EventsOf("job.").size(), 12u) << "told singly again";
}

TEST_F(ManagerQuotasTest, ChangesBringTheirDeedsAndEventsTheirActors) {
  Boot();
  RegisterJobArgs args = JobOf("ada");
  args.actor.caller = "root";
  args.actor.origin = "uid:0";
  args.actor.method = "Jobs.RegisterJob";
  const JobId job = (*Register(args)).record->id;
  CreateTreeArgs tree = TreeOf(job);
  tree.actor = args.actor;
  tree.actor.method = "Trees.CreateTree";
  ASSERT_TRUE(Create(tree).ok());
  Actor ops = args.actor;
  ops.user = ops.caller = "ops";
  ops.method = "Jobs.EndJob";
  Answer<uint32_t> end;
  manager_->EndJob(job, end.Callback(), ops);
  ASSERT_TRUE(end.Get().ok());
  std::vector<std::string> told;
  const std::vector<DeedRecord> deeds = *manager_->Deeds({});
  for (const DeedRecord& deed : deeds) {
    told.push_back(absl::StrCat(deed.caller, ">", deed.user, " ", deed.method, " ", deed.object,
                                " ", deed.outcome));
  }
  EXPECT_THAT(told, ::testing::ElementsAre("root>ada Jobs.RegisterJob job:1 OK",
                                           "root>ada Trees.CreateTree tree:1 OK",
                                           "ops>ops Jobs.EndJob job:1 OK"));
  EXPECT_EQ(EventsOf("job.registered").at(0).actor, "root for ada");
  EXPECT_EQ(EventsOf("job.ended").at(0).actor, "ops");
}

// Trees of few ranks are small, those of many large: both are bounded.
TEST_F(ManagerQuotasTest, RanksOfTrees) {
  BootWith(Only(Quota::kTreeRanks, {10}));
  const JobId job = (*Register(JobOf("ada"))).record->id;
  CreateTreeArgs six = TreeOf(job, TreeType::kTypeI);
  six.ranks = {0, 1, 2, 3, 4, 5};
  const TreeId first = (*Create(six)).record->id;
  ExpectRefused(Create(six).status(), "ada", "quota tree_ranks");
  CreateBatchArgs batch;
  batch.job = job;
  batch.communicators = {{0, 1, 2}, {3, 4, 5}};
  batch.accept_type1 = true;
  Answer<std::shared_ptr<const BatchView>> whole, part;
  manager_->BatchCreateTrees(batch, {}, whole.Callback());
  ExpectRefused(whole.Get().status(), "ada", "quota tree_ranks");
  batch.largest_part = true;
  manager_->BatchCreateTrees(batch, {}, part.Callback());
  const auto granted = part.Get();
  ASSERT_TRUE(granted.ok()) << granted.status();
  EXPECT_EQ((*granted)->trees.size(), 1u);
  ASSERT_EQ((*granted)->refusals.size(), 1u);
  EXPECT_THAT((*granted)->refusals.front().why_not, testing::HasSubstr("quotas.tree_ranks"));
  EXPECT_EQ(Used("ada", Quota::kTreeRanks), 9);
  ExpectSameAsRecount("ada");
  ASSERT_TRUE(Release(first).ok());
  EXPECT_TRUE(Create(six).ok());
}

// Of a forest each tree counts, also after it was planned anew; where that is more than may be, one
// tree is granted.
TEST_F(ManagerQuotasTest, RanksOfForests) {
  BootWith(Only(Quota::kTreeRanks, {10'000}));
  const JobId job = (*Register(JobOf("ada"))).record->id;
  std::map<TreeId, size_t> trees;
  for (uint64_t bytes = 1 << 14; bytes <= 1 << 22; bytes *= 2) {
    CreateTreeArgs args = TreeOf(job);
    args.type.reset();
    args.operation = Operation::kAllreduce;
    args.sizes = {{bytes, 1}};
    args.max_trees = 16;
    const auto forest = Create(args);
    ASSERT_TRUE(forest.ok()) << forest.status();
    trees[forest->record->id] = forest->record->forest.size();
  }
  ExpectSameAsRecount("ada");
  port_.Set(SmallFabric({.missing_spines = {0}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  int changed = 0;
  for (const auto& [id, before] : trees) {
    const auto moved = manager_->GetTree(id);
    ASSERT_TRUE(moved.ok()) << moved.status();
    if (moved->record->forest.size() != before) ++changed;
  }
  EXPECT_GT(changed, 0);
  ExpectSameAsRecount("ada");
  for (const auto& [id, before] : trees) EXPECT_TRUE(Release(id).ok());
  EXPECT_EQ(Used("ada", Quota::kTreeRanks), 0);
}

TEST_F(ManagerQuotasTest, OneTreeWhereAForestWouldBeTooMuch) {
  BootWith(Only(Quota::kTreeRanks, {20}));
  const JobId job = (*Register(JobOf("ada"))).record->id;
  CreateTreeArgs args = TreeOf(job);
  args.type.reset();
  args.operation = Operation::kAllreduce;
  args.sizes = {{4 << 20, 1}};
  args.max_trees = 16;
  const auto tree = Create(args);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_TRUE(tree->record->forest.empty());
  EXPECT_THAT(tree->record->reason, testing::HasSubstr("; no forest: "));
  ExpectSameAsRecount("ada");
}

class QuotaLedgerModelTest : public ManagerQuotasTest {
 protected:
  // One request of the user, chosen by chance; it may be refused.
  void Ask(const std::string& user) {
    switch (random_() % 9) {
      case 0:
      case 1: {
        RegisterJobArgs args = SmallJobOf(user, user == "root");
        Keep(Register(args), jobs_);
        break;
      }
      case 2:
      case 3: {
        if (jobs_.empty()) break;
        CreateTreeArgs args = TreeOf(jobs_[random_() % jobs_.size()]);
        if (random_() % 2 == 0) args.type.reset();
        Keep(Create(args), trees_);
        break;
      }
      case 4:
        if (!trees_.empty()) (void)Release(Take(trees_));
        break;
      case 5:
        if (!jobs_.empty()) (void)End(Take(jobs_));
        break;
      case 6: {
        CreatePlacementArgs args = Nodes(1 + static_cast<uint32_t>(random_() % 4));
        args.owner = args.actor.user = user;
        args.actor.is_administrator = user == "root";
        Keep(Place(args), placements_);
        break;
      }
      case 7:
        if (!placements_.empty()) Keep(StartOf(placements_[random_() % placements_.size()]), jobs_);
        break;
      case 8:
        if (!placements_.empty()) (void)ReleaseOf(Take(placements_));
        break;
    }
  }

  std::mt19937_64 random_{TestSeed()};

 private:
  template <class View, class Id>
  static void Keep(const absl::StatusOr<View>& view, std::vector<Id>& ids) {
    if (view.ok()) ids.push_back(view->record->id);
  }
  template <class Id>
  Id Take(std::vector<Id>& from) {
    const auto one = from.begin() + static_cast<std::ptrdiff_t>(random_() % from.size());
    const Id id = *one;
    from.erase(one);
    return id;
  }

  std::vector<JobId> jobs_;
  std::vector<TreeId> trees_;
  std::vector<PlacementId> placements_;
};

// Jobs, trees, placements of three users come and go, some refused by the store, some expire, the
// daemon restarts: the ledger is what the records add up to.
TEST_F(QuotaLedgerModelTest, TheLedgerIsARecountOfTheStore) {
  QuotaOptions quotas;
  quotas[Quota::kJobs] = {4};
  quotas[Quota::kTrees] = {6};
  quotas[Quota::kTreeRanks] = {25};
  quotas[Quota::kEntries] = {50, true};
  quotas[Quota::kNodes] = {6};
  quotas.left_to_administrators = 10;
  const auto boot = [&] {
    ManagerOptions options = Options(4);
    options.quotas = quotas;
    Boot(options);
  };
  boot();
  const std::vector<std::string> users = {"ada", "eve", "root"};
  const int rounds = FullTier() ? 4'000 : 400;
  for (int round = 0; round < rounds; ++round) {
    const std::string& user = users[random_() % users.size()];
    if (random_() % 8 == 0) {
      store_.RefuseWhere([](const Mutation&) { return absl::UnavailableError("busy"); });
    }
    Ask(user);
    store_.Obey();
    if (random_() % 40 == 0) {
      clock_.Advance(absl::Minutes(6));
      (void)manager_->ExpireLeases();
    }
    Settle();
    Settle();
    if (random_() % 50 == 0) boot();
    for (const std::string& each : users) ExpectSameAsRecount(each);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace coppice::manager_quotas_test
