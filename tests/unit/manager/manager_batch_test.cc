// Batches: all or nothing, the largest part, retries, and the books after every failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "daemon/manager/requests.h"
#include "db/sqlite_store.h"
#include "tests/support/tier.h"
#include "tests/support/tree_check.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::manager_batch_test {
namespace {

using ::testing::HasSubstr;
using Batch = std::shared_ptr<const BatchView>;

// Rows and columns of 4 x 4: eight communicators.
CreateBatchArgs Square(JobId job, std::string request_id = "") {
  CreateBatchArgs args;
  args.job = job;
  args.request_id = std::move(request_id);
  args.grid = ProcessGrid{{4, 4}, GridOrder::kLastAxisFastest, {}};
  return args;
}

std::vector<TreeId> IdsOf(const Batch& batch) {
  std::vector<TreeId> ids;
  for (const BatchView::Tree& tree : batch->trees) ids.push_back(tree.view.record->id);
  return ids;
}

class ManagerBatchTest : public ManagerTest {
 protected:
  void SetUp() override {
    Boot();
    job_ = NewJob();
  }
  void BootWith(uint32_t entries) {
    Boot(Options(entries));
    job_ = NewJob();
  }
  Answer<Batch> Start(CreateBatchArgs args, BatchWatch watch = {}) {
    Answer<Batch> answer;
    manager_->BatchCreateTrees(std::move(args), std::move(watch), answer.Callback());
    return answer;
  }
  absl::StatusOr<Batch> Grant(CreateBatchArgs args, BatchWatch watch = {}) {
    return Start(std::move(args), std::move(watch)).Get();
  }
  void ExpectNothing() {
    EXPECT_EQ(0u, manager_->Counts().granted_trees);
    EXPECT_EQ(0u, manager_->Counts().entries_taken);
    EXPECT_EQ(0u, manager_->GetJob(job_)->tree_count);
    ExpectConserved();
  }
  // The record as a tree of the present fabric, judged by the verifier.
  void ExpectATree(const TreeView& view, uint32_t degree_limit) {
    const Fabric& fabric = *manager_->fabric()->snapshot->fabric;
    const TreeRecord& record = *view.record;
    AggregationTree tree;
    tree.type = record.type == 1 ? TreeType::kTypeI : TreeType::kTypeII;
    tree.rank_count = static_cast<uint32_t>(record.ranks.size());
    std::vector<EndpointIndex> members;
    for (const uint32_t rank : record.ranks) {
      members.push_back(*fabric.FindEndpoint(view.job->endpoints[rank]));
      tree.vertices.push_back(fabric.Vertex(members.back()));
    }
    for (const TreeSwitchRecord& serving : record.switches) {
      tree.vertices.push_back(fabric.Vertex(*fabric.FindSwitch(serving.guid)));
      EXPECT_LE(serving.children, degree_limit);
    }
    tree.parents = record.parents;
    const absl::Status status = CheckTree(fabric, tree, members);
    EXPECT_TRUE(status.ok()) << status;
  }
  JobId job_;
};

TEST_F(ManagerBatchTest, AGridIsGrantedInOneStep) {
  int changes = 0, grants = 0;
  store_.RefuseWhere([&](const Mutation& mutation) {
    changes += std::holds_alternative<ChangeTrees>(mutation);
    grants += std::holds_alternative<GrantTree>(mutation);
    return absl::OkStatus();
  });
  const auto batch = Grant(Square(job_));
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(1, changes);
  EXPECT_EQ(0, grants);
  ASSERT_EQ(8u, (*batch)->trees.size());
  EXPECT_EQ(8u, (*batch)->communicators);
  EXPECT_TRUE((*batch)->refusals.empty());
  EXPECT_GT((*batch)->most_packets, 0u);
  EXPECT_THAT((*batch)->most_loaded, HasSubstr(" port "));
  EXPECT_EQ(1u, (*batch)->fabric_version);
  for (uint32_t c = 0; c < 8; ++c) {
    const TreeView& view = (*batch)->trees[c].view;
    EXPECT_EQ(c, (*batch)->trees[c].communicator);
    EXPECT_EQ(2, view.record->type);
    EXPECT_EQ(4u, view.record->ranks.size());
    EXPECT_GT(view.record->total_us, 0);
    EXPECT_THAT(view.record->reason, HasSubstr("one batch"));
    EXPECT_EQ(view.record, manager_->GetTree(view.record->id)->record);
    ExpectATree(view, 32);
  }
  // Axis 0 first: lines along it are columns.
  EXPECT_THAT((*batch)->trees[0].view.record->ranks, testing::ElementsAre(0, 4, 8, 12));
  EXPECT_THAT((*batch)->trees[4].view.record->ranks, testing::ElementsAre(0, 1, 2, 3));
  ExpectConserved();
  EXPECT_EQ(8u, *End(job_));
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  ExpectConserved();
}

TEST_F(ManagerBatchTest, AllOrNothing) {
  BootWith(1);  // six entries for eight communicators
  const absl::Status refused = Grant(Square(job_)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("of 8 communicators get no tree"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("communicator "));
  const auto payload = refused.GetPayload(kFullSwitchesPayload);
  ASSERT_TRUE(payload.has_value());
  EXPECT_THAT(std::string(*payload), testing::MatchesRegex("([0-9a-f]+ 1 [01] [a-z]+[0-9]\n)+"));
  ExpectNothing();
  manager_->FlushActivity();
  EXPECT_GE(EventsOf("entries.exhausted").size(), 1u);
}

TEST_F(ManagerBatchTest, TheLargestPartSaysWhoIsLeftOut) {
  BootWith(1);
  CreateBatchArgs args = Square(job_);
  args.largest_part = true;
  const auto batch = Grant(args);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(6u, (*batch)->trees.size());
  ASSERT_EQ(2u, (*batch)->refusals.size());
  for (const BatchView::Refusal& refusal : (*batch)->refusals) EXPECT_NE("", refusal.why_not);
  EXPECT_EQ(6u, manager_->Counts().entries_taken);
  ExpectConserved();
  // Nothing is left: an empty part is an answer, and its name stays free.
  args.request_id = "rest";
  for (int i = 0; i < 2; ++i) {
    const auto none = Grant(args);
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_EQ(8u, (*none)->refusals.size());
  }
  ExpectConserved();
}

TEST_F(ManagerBatchTest, TypeOneInsteadOfARefusal) {
  BootWith(1);
  CreateBatchArgs args = Square(job_);
  args.accept_type1 = true;
  const auto batch = Grant(args);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ(8u, (*batch)->trees.size());
  int type1 = 0;
  for (const BatchView::Tree& tree : (*batch)->trees) {
    ExpectATree(tree.view, 32);
    if (tree.view.record->type == 2) continue;
    ++type1;
    EXPECT_THAT(tree.view.record->reason, HasSubstr("no type II tree"));
  }
  EXPECT_EQ(2, type1);
  ExpectConserved();
}

TEST_F(ManagerBatchTest, ValidateOnlyTakesNothing) {
  CreateBatchArgs args = Square(job_, "x");
  args.validate_only = true;
  const auto batch = Grant(args);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ(8u, (*batch)->trees.size());
  EXPECT_EQ(TreeId(0), (*batch)->trees[0].view.record->id);
  ExpectNothing();
}

TEST_F(ManagerBatchTest, ARetryGetsTheSameTreesAlsoAfterARestart) {
  const auto first = Grant(Square(job_, "grid"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ("grid#3", (*first)->trees[3].view.record->request_id);
  const auto again = Grant(Square(job_, "grid"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(IdsOf(*first), IdsOf(*again));
  EXPECT_EQ((*first)->most_loaded, (*again)->most_loaded);
  Boot();
  const auto later = Grant(Square(job_, "grid"));
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(IdsOf(*first), IdsOf(*later));
  EXPECT_TRUE((*later)->refusals.empty());
  CreateBatchArgs other = Square(job_, "grid");
  other.sizes = {{4096, 1}};
  EXPECT_TRUE(absl::IsAlreadyExists(Grant(other).status()));
  EXPECT_EQ(8u, manager_->Counts().granted_trees);
  ExpectConserved();
}

// Releases before batches kept no specs, and took any name for a single tree.
TEST_F(ManagerBatchTest, ASingleTreeOfAnEarlierReleaseIsNoPartOfABatch) {
  CreateTreeArgs single = TreeOf(job_);
  single.request_id = "grid";
  const auto tree = Create(single);
  ASSERT_TRUE(tree.ok()) << tree.status();
  TreeRecord old = *tree->record;
  ASSERT_TRUE(Release(old.id).ok());
  old.id = TreeId(old.id.value() + 1);
  old.request_id = "grid#9";
  old.lacks_spec = true;
  ASSERT_TRUE(kept_.Apply(GrantTree(old)).ok());
  Boot();
  ASSERT_TRUE(manager_->GetTree(old.id).ok());
  const auto batch = Grant(Square(job_, "grid"));
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(8u, (*batch)->trees.size());
  ASSERT_TRUE(Release(old.id).ok());
  const auto again = Grant(Square(job_, "grid"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(IdsOf(*batch), IdsOf(*again));
  ExpectConserved();
}

TEST_F(ManagerBatchTest, ABatchLivesAsLongAsOneOfItsTrees) {
  const Batch first = *Grant(Square(job_, "grid"));
  for (uint32_t c = 0; c < 7; ++c) {
    ASSERT_TRUE(Release(first->trees[c].view.record->id).ok());
    const auto rest = Grant(Square(job_, "grid"));
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_EQ(7 - c, (*rest)->trees.size());
    EXPECT_EQ(c + 1, (*rest)->refusals.size());
  }
  ASSERT_TRUE(Release(first->trees[7].view.record->id).ok());
  const auto anew = Grant(Square(job_, "grid"));
  ASSERT_TRUE(anew.ok()) << anew.status();
  EXPECT_EQ(8u, (*anew)->trees.size());
  EXPECT_GT((*anew)->trees[0].view.record->id, first->trees[7].view.record->id);
  ExpectConserved();
}

TEST_F(ManagerBatchTest, TheSqliteStoreKeepsABatchWhole) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("batch" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  const std::string path = directory / "coppice.db";
  std::vector<TreeId> ids;
  JobId job;
  for (int run = 0; run < 2; ++run) {
    const auto store = SqliteStore::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    manager_ = *Manager::Create(store->get(), &port_, &clock_, Options());
    ASSERT_TRUE(manager_->Sweep().ok());
    if (run == 0) job = NewJob();
    const auto batch = Grant(Square(job, "grid"));
    ASSERT_TRUE(batch.ok()) << batch.status();
    if (run == 0) ids = IdsOf(*batch);
    EXPECT_EQ(8u, ids.size());
    EXPECT_EQ(ids, IdsOf(*batch));
    EXPECT_EQ(8u, (*store)->Load()->trees.size());
    manager_.reset();
  }
  std::filesystem::remove_all(directory);
}

TEST_F(ManagerBatchTest, SingleTreesCannotTakeABatchsNames) {
  CreateTreeArgs args = TreeOf(job_);
  args.request_id = "grid#3";
  EXPECT_TRUE(absl::IsInvalidArgument(Create(args).status()));
  args.request_id = "grid#";
  EXPECT_TRUE(Create(args).ok());
}

TEST_F(ManagerBatchTest, AFailedCommitGivesEverythingBack) {
  store_.Refuse<ChangeTrees>(absl::UnavailableError("disk is busy"));
  EXPECT_TRUE(absl::IsUnavailable(Grant(Square(job_, "x")).status()));
  ExpectNothing();
  store_.Obey();
  EXPECT_TRUE(Grant(Square(job_, "x")).ok());
  ExpectConserved();
}

TEST_F(ManagerBatchTest, ABatchBeforeTheEndOfItsJobGoesWithIt) {
  store_.HoldBack();
  auto batch = Start(Square(job_, "x")), waits = Start(Square(job_, "x"));
  auto end = StartEnd(job_);
  EXPECT_TRUE(absl::IsFailedPrecondition(Grant(Square(job_)).status()));  // it is ending
  store_.LetGo();
  ASSERT_TRUE(batch.Get().ok());
  EXPECT_EQ(IdsOf(*batch.Get()), IdsOf(*waits.Get()));
  EXPECT_EQ(8u, *end.Get());
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  ExpectConserved();
}

TEST_F(ManagerBatchTest, ABatchAfterTheEndIsRefusedAndLeaksNothing) {
  store_.HoldBack();
  auto batch = Start(Square(job_));
  ASSERT_TRUE(kept_.Apply(EndJob{job_, JobState::kEnded, clock_.Now()}).ok());
  store_.LetGo();
  EXPECT_TRUE(absl::IsFailedPrecondition(batch.Get().status()));
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  ASSERT_TRUE(End(job_).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Grant(Square(job_)).status()));
  EXPECT_TRUE(absl::IsNotFound(Grant(Square(JobId(77))).status()));
  ExpectConserved();
}

TEST_F(ManagerBatchTest, WhoeverHasGoneGetsNothing) {
  using Phase = BatchWatch::Phase;
  for (const Phase last : {Phase::kHangingRanks, Phase::kGranting}) {
    bool gone = false;
    Answer<Batch> waits;
    BatchWatch watch;
    watch.progress = [&](Phase phase, uint32_t, uint32_t) {
      if (phase != last || gone) return;
      gone = true;
      waits = Start(Square(job_, "x"));  // a second caller, who has not gone
    };
    watch.is_cancelled = [&] { return gone; };
    EXPECT_TRUE(absl::IsCancelled(Grant(Square(job_, "x"), watch).status()));
    EXPECT_TRUE(absl::IsAborted(waits.Get().status()));
    ExpectNothing();
  }
  EXPECT_TRUE(Grant(Square(job_, "x")).ok());
}

TEST_F(ManagerBatchTest, WhoeverHasGoneBeforeItsTurnCostsNoPlan) {
  for (const bool validate_only : {false, true}) {
    for (const int asked : {1, 2}) {  // before anything is looked at, and before planning
      int questions = 0, told = 0;
      BatchWatch watch;
      watch.progress = [&](BatchWatch::Phase, uint32_t, uint32_t) { ++told; };
      watch.is_cancelled = [&] { return ++questions >= asked; };
      CreateBatchArgs args = Square(job_, "x");
      args.validate_only = validate_only;
      EXPECT_TRUE(absl::IsCancelled(Grant(args, watch).status()));
      EXPECT_EQ(asked, questions);
      EXPECT_EQ(0, told);
      ExpectNothing();
    }
  }
  EXPECT_TRUE(Grant(Square(job_, "x")).ok());
}

TEST_F(ManagerBatchTest, ProgressGoesThroughItsPhases) {
  using Phase = BatchWatch::Phase;
  std::vector<Phase> phases;
  uint32_t last = 0;
  BatchWatch watch;
  watch.progress = [&](Phase phase, uint32_t done, uint32_t total) {
    if (phases.empty() || phases.back() != phase) {
      phases.push_back(phase);
      last = 0;
    }
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    last = done;
  };
  ASSERT_TRUE(Grant(Square(job_), watch).ok());
  EXPECT_EQ(Phase::kPlanning, phases.front());
  EXPECT_EQ(Phase::kGranting, phases.back());
  EXPECT_TRUE(std::is_sorted(phases.begin(), phases.end()));
}

TEST_F(ManagerBatchTest, AStaleBatchIsPlannedAgainAndAbortedIfItNeverHolds) {
  uint32_t moves = 0, most = 1;
  BatchWatch watch;
  watch.progress = [&](BatchWatch::Phase phase, uint32_t, uint32_t) {
    if (phase != BatchWatch::Phase::kGranting || moves == most) return;
    port_.Set(SmallFabric({.missing_hosts = {moves++ % 2 == 0 ? 15u : 14u}}));
    EXPECT_TRUE(manager_->Sweep().ok());
  };
  CreateBatchArgs args;
  args.job = job_;
  args.communicators = {{0, 1, 2}, {0, 4, 8}, {5}};
  const auto batch = Grant(args, watch);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(1u, moves);
  EXPECT_EQ(manager_->fabric()->snapshot->fabric->version(), (*batch)->fabric_version);
  EXPECT_TRUE((*batch)->trees[2].view.record->switches.empty());  // one rank needs nobody
  ExpectConserved();
  most = 1000;
  EXPECT_TRUE(absl::IsAborted(Grant(args, watch).status()));
  EXPECT_EQ(3u, manager_->Counts().granted_trees);
  ExpectConserved();
}

TEST_F(ManagerBatchTest, EntriesThatGoMeanwhileArePlannedAround) {
  BootWith(2);
  bool taken = false;
  BatchWatch watch;
  watch.progress = [&](BatchWatch::Phase phase, uint32_t, uint32_t) {
    if (phase != BatchWatch::Phase::kGranting || std::exchange(taken, true)) return;
    for (int i = 0; i < 4; ++i) {
      CreateTreeArgs args = TreeOf(job_);
      args.ranks = {0, 5, 10, 15};
      Create(args).IgnoreError();
    }
  };
  CreateBatchArgs args = Square(job_);
  args.largest_part = true;
  const auto batch = Grant(args, watch);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(8u, (*batch)->trees.size() + (*batch)->refusals.size());
  ExpectConserved();
}

TEST_F(ManagerBatchTest, AMemberThatIsGoneCostsItsCommunicatorsOnly) {
  port_.Set(SmallFabric({.missing_hosts = {5}}));  // rank 11: ranks go by name
  ASSERT_TRUE(manager_->Sweep().ok());
  const absl::Status refused = Grant(Square(job_)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("communicator 3: rank 11"));
  CreateBatchArgs args = Square(job_);
  args.largest_part = true;
  const auto batch = Grant(args);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(6u, (*batch)->trees.size());
  ASSERT_EQ(2u, (*batch)->refusals.size());
  EXPECT_EQ(3u, (*batch)->refusals[0].communicator);
  EXPECT_EQ(6u, (*batch)->refusals[1].communicator);
  ExpectConserved();
}

TEST_F(ManagerBatchTest, ALimitOfTreesHoldsForBatchesToo) {
  ManagerOptions options = Options();
  options.max_trees_per_job = 9;
  Boot(options);
  ASSERT_TRUE(Create(TreeOf(job_)).ok());
  ASSERT_TRUE(Create(TreeOf(job_)).ok());
  const absl::Status refused = Grant(Square(job_)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("limits.trees_per_job is 9"));
  CreateBatchArgs many;
  many.job = job_;
  many.communicators.assign(10, {0, 1});
  EXPECT_TRUE(absl::IsResourceExhausted(Grant(many).status()));
  ASSERT_TRUE(Release(TreeId(1)).ok());
  EXPECT_TRUE(Grant(Square(job_)).ok());
  ExpectConserved();
}

// Random groups, admitted as far as they fit: trees by the verifier, entries by the books.
TEST_F(ManagerBatchTest, RandomBatchesAreTreesAndTakeWhatTheySay) {
  std::mt19937_64 random(TestSeed());
  const int rounds = FullTier() ? 400 : 25;
  for (int round = 0; round < rounds; ++round) {
    const uint32_t degree = 2 + random() % 6;
    Boot(Options(1 + random() % 3, degree));
    job_ = NewJob();
    CreateBatchArgs args;
    args.job = job_;
    args.largest_part = true;
    args.accept_type1 = random() % 2 == 0;
    for (uint64_t count = 1 + random() % 12; count > 0; --count) {
      std::vector<uint32_t> ranks(16);
      for (uint32_t r = 0; r < 16; ++r) ranks[r] = r;
      std::shuffle(ranks.begin(), ranks.end(), random);
      ranks.resize(1 + random() % 16);
      args.communicators.push_back(std::move(ranks));
    }
    const auto batch = Grant(args);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(args.communicators.size(), (*batch)->trees.size() + (*batch)->refusals.size());
    if (args.accept_type1) {
      EXPECT_TRUE((*batch)->refusals.empty());
    }
    for (const BatchView::Tree& tree : (*batch)->trees) {
      EXPECT_EQ(args.communicators[tree.communicator], tree.view.record->ranks);
      ExpectATree(tree.view, degree);
    }
    ExpectConserved();
    ASSERT_TRUE(End(job_).ok());
    EXPECT_EQ(0u, manager_->Counts().entries_taken);
  }
}

TEST_F(ManagerBatchTest, BatchesTreesEndsAndSweepsAtOnce) {
  BootWith(3);
  std::atomic<bool> over{false};
  std::thread sweeper([&] {
    for (uint32_t i = 0; !over; ++i) {
      port_.Set(i % 2 == 0 ? SmallFabric({.missing_hosts = {15}}) : SmallFabric());
      EXPECT_TRUE(manager_->Sweep().ok());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  std::atomic<int> granted{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(TestSeed() + static_cast<uint64_t>(t));
      for (int round = 0; round < (FullTier() ? 200 : 12); ++round) {
        const auto job = Register(AllHosts());
        ASSERT_TRUE(job.ok()) << job.status();
        const JobId id = job->record->id;
        CreateBatchArgs args;
        args.job = id;
        args.request_id = round % 2 == 0 ? "b" : "";
        args.grid = ProcessGrid{{3, 4}, GridOrder::kFirstAxisFastest, {}};
        args.largest_part = random() % 2 == 0;
        std::thread twin([&] { Start(args).Get().IgnoreError(); });
        auto single = StartCreate(TreeOf(id, TreeType::kTypeI));
        const auto batch = Grant(args);
        if (batch.ok()) ++granted;
        if (batch.ok() && !(*batch)->trees.empty()) {
          Release((*batch)->trees[0].view.record->id).IgnoreError();
        }
        auto end = StartEnd(id);
        twin.join();
        single.Get().IgnoreError();
        EXPECT_TRUE(end.Get().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  sweeper.join();
  EXPECT_GT(granted, 0);
  EXPECT_TRUE(End(job_).ok());
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  ExpectConserved();
}

TEST_F(ManagerBatchTest, BadInputIsNamed) {
  const auto refused = [&](const CreateBatchArgs& args, const char* words) {
    const absl::Status status = Grant(args).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  CreateBatchArgs args;
  args.job = job_;
  refused(args, "it is empty");
  args.communicators = {{0, 1}, {}};
  refused(args, "communicators[1]: has no ranks");
  args.communicators = {{0, 1}, {2, 16}};
  refused(args, "communicators[1]: ranks: rank 16 is not in the job");
  args.communicators = {{3, 1, 3}};
  refused(args, "communicators[0]: ranks: rank 3 is named twice");
  args.grid = ProcessGrid{{2, 2}, {}, {}};
  refused(args, "both given");
  args.communicators.clear();
  args.grid->sizes = {4, 5};
  refused(args, "grid over the job's 16 ranks");
  args.grid->sizes = {4, 0};
  refused(args, "size 0");
  args.grid->sizes = {};
  refused(args, "0 axes");
  args.grid->sizes.assign(33, 1);
  refused(args, "33 axes");
  args.grid->sizes = {1u << 31, 1u << 31};
  refused(args, "more than");
  args.grid->sizes = {4, 4};
  args.grid->axes = {1, 1};
  refused(args, "axis 1 is named twice");
  args.grid->axes = {2};
  refused(args, "no axis 2");
  args.grid->axes = {};
  args.rank_order = {0, 1};
  refused(args, "rank order: names 2 ranks");
  args.grid->sizes = {2, 2};
  args.rank_order = {3, 9, 12, 9};
  refused(args, "rank 9 is named twice");
  args.rank_order = {3, 9, 12, 16};
  refused(args, "rank 16");
  args.rank_order = {3, 9, 12, 15};
  const auto batch = Grant(args);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT((*batch)->trees[2].view.record->ranks, testing::ElementsAre(3, 9));
  args.grid.reset();
  refused(args, "without a grid");
  args.rank_order.clear();
  args.communicators = {{0, 1}};
  args.request_id.assign(129, 'x');
  refused(args, "request_id");
  args.request_id.clear();
  args.sizes = {{8, -1}};
  refused(args, "sizes[0].weight");
}

}  // namespace
}  // namespace coppice::manager_batch_test
