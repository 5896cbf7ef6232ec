#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice::manager_trees_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ManagerTreesTest : public ManagerTest {
 protected:
  void SetUp() override {
    Boot();
    job_ = NewJob();
  }
  JobId job_;
};

TEST_F(ManagerTreesTest, AGrantedTreeIsCompleteAndDurable) {
  CreateTreeArgs args = TreeOf(job_);
  args.ranks = {5, 2, 9, 14};
  args.sizes = {{8, 1}, {1 << 20, 0.5}};
  const auto view = Create(args);
  ASSERT_TRUE(view.ok()) << view.status();
  const TreeRecord& record = *view->record;
  EXPECT_EQ(TreeId(1), record.id);
  EXPECT_EQ(job_, record.job);
  EXPECT_EQ(2, record.type);
  EXPECT_EQ("minimum-cost", record.builder);
  EXPECT_EQ(static_cast<const TreeSpec&>(args), record.spec);
  EXPECT_THAT(record.ranks, ElementsAre(5, 2, 9, 14));
  EXPECT_EQ(1u, record.fabric_version);
  EXPECT_EQ(clock_.Now(), record.created);
  const size_t nodes = record.ranks.size() + record.switches.size();
  EXPECT_EQ(nodes, record.parents.size());
  EXPECT_EQ(nodes, record.edge_links_up.size());
  EXPECT_EQ(nodes, record.edge_links_down.size());
  uint32_t children = 0;
  for (const TreeSwitchRecord& entry : record.switches) children += entry.children;
  EXPECT_EQ(nodes - 1, children);            // all edges lead to switches
  EXPECT_TRUE(record.alternatives.empty());  // the type was asked for, and one root is the best
  EXPECT_NE("", record.reason);
  EXPECT_GT(record.total_us, 0);
  EXPECT_TRUE(std::is_sorted(record.links.begin(), record.links.end()));
  EXPECT_GE(record.links.size(), 4u);
  EXPECT_EQ(record, kept_.Load()->trees.at(0));
  EXPECT_EQ(view->record, manager_->GetTree(record.id)->record);
  EXPECT_EQ(RouteKind::kShortestPath, view->route_kind);
  args.type.reset();  // then there is something to weigh
  const auto weighed = Create(args);
  ASSERT_TRUE(weighed.ok()) << weighed.status();
  EXPECT_FALSE(weighed->record->alternatives.empty());
  EXPECT_EQ(*weighed->record, kept_.Load()->trees.at(1));
  ExpectConserved();
}

TEST_F(ManagerTreesTest, ThePhysicalTreeListsSwitchesThenPortsOnce) {
  RegisterJobArgs args;
  args.endpoints = {"n0", "n0", "n5", "n9"};  // two ranks on one port
  const auto job = Register(args);
  ASSERT_TRUE(job.ok());
  const auto view = Create(TreeOf(job->record->id));
  ASSERT_TRUE(view.ok()) << view.status();
  const std::vector<uint64_t>& pairs = view->record->physical;
  ASSERT_EQ(0u, pairs.size() % 2);
  const size_t count = pairs.size() / 2, switches = count - 3;
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(i >= switches, pairs[2 * i] >= 0x5000) << i;
    EXPECT_EQ(i == 0, pairs[2 * i + 1] == 0) << i;  // one root, first
    EXPECT_LE(pairs[2 * i + 1], std::min(i, switches)) << i;
  }
}

TEST_F(ManagerTreesTest, TypeOneTakesNoEntries) {
  const auto view = Create(TreeOf(job_, TreeType::kTypeI));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(1, view->record->type);
  EXPECT_EQ(16u, view->record->ranks.size());
  EXPECT_TRUE(view->record->switches.empty());
  EXPECT_TRUE(view->record->physical.empty());
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
}

TEST_F(ManagerTreesTest, AdviceTakesNothing) {
  const auto view = manager_->AdviseTree(TreeOf(job_));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(TreeId(0), view->record->id);
  EXPECT_FALSE(view->record->switches.empty());
  EXPECT_EQ(0u, manager_->Counts().granted_trees);
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  ExpectConserved();
}

TEST_F(ManagerTreesTest, FullSwitchesAreNamedWithLimitAndUse) {
  Boot(Options(1));
  job_ = NewJob();
  CreateTreeArgs args = TreeOf(job_);
  absl::StatusOr<TreeView> view = Create(args);
  int granted = 0;
  for (; view.ok(); view = Create(args)) ASSERT_LT(++granted, 7);
  EXPECT_GE(granted, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(view.status())) << view.status();
  const auto payload = view.status().GetPayload(kFullSwitchesPayload);
  ASSERT_TRUE(payload.has_value());
  const std::string lines(*payload);
  EXPECT_THAT(lines, ::testing::MatchesRegex("([0-9a-f]+ 1 1 [a-z]+[0-9]\n)+"));
  EXPECT_THAT(lines, HasSubstr("0000000000000"));
  // Auto still gets a tree, of type I.
  CreateTreeArgs automatic = args;
  automatic.type.reset();
  view = Create(automatic);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(1, view->record->type);
  manager_->FlushActivity();
  EXPECT_GE(EventsOf("entries.exhausted").size(), 1u);
  EXPECT_EQ(1u, EventsOf("trees.changed").size());
  ExpectConserved();
}

TEST_F(ManagerTreesTest, ReleasedEntriesCanBeGrantedAgain) {
  Boot(Options(1));
  job_ = NewJob();
  CreateTreeArgs args = TreeOf(job_);
  for (int round = 0; round < 3; ++round) {
    std::vector<TreeId> granted;
    for (auto view = Create(args); view.ok(); view = Create(args)) {
      granted.push_back(view->record->id);
    }
    ASSERT_FALSE(granted.empty());
    for (const TreeId id : granted) EXPECT_EQ(id, *Release(id));
    EXPECT_EQ(0u, manager_->Counts().entries_taken);
    ExpectConserved();
  }
}

TEST_F(ManagerTreesTest, SwitchesWithoutACapabilityCannotAggregate) {
  ManagerOptions options = Options();
  options.capability_rules.clear();
  Boot(options);
  job_ = NewJob();
  EXPECT_TRUE(absl::IsResourceExhausted(Create(TreeOf(job_)).status()));
  CreateTreeArgs automatic = TreeOf(job_);
  automatic.type.reset();
  const auto view = Create(automatic);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(1, view->record->type);
}

TEST_F(ManagerTreesTest, RefusesBadRequestsAndNamesTheFault) {
  const auto refuse = [&](auto change, absl::StatusCode code, const char* what) {
    CreateTreeArgs args = TreeOf(job_, TreeType::kTypeI);
    change(args);
    for (const absl::Status& status :
         {Create(args).status(), manager_->AdviseTree(args).status()}) {
      EXPECT_EQ(code, status.code()) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    }
  };
  using Args = CreateTreeArgs;
  const auto kBad = absl::StatusCode::kInvalidArgument;
  refuse([](Args& a) { a.ranks = {3, 16}; }, kBad, "rank 16");
  refuse([](Args& a) { a.ranks = {3, 1, 3}; }, kBad, "rank 3 is named twice");
  refuse([](Args& a) { a.ranks = {4294967295u}; }, kBad, "4294967295");
  refuse([](Args& a) { a.sizes = {{8, -1}}; }, kBad, "weight");
  refuse([](Args& a) { a.sizes = {{8, std::nan("")}}; }, kBad, "weight");
  refuse([](Args& a) { a.sizes = {{8, std::numeric_limits<double>::infinity()}}; }, kBad, "weight");
  refuse([](Args& a) { a.sizes = {{8, 0}, {9, 0}}; }, kBad, "weights");
  refuse([](Args& a) { a.sizes = {{~0ull, 1}}; }, kBad, "bytes");
  refuse([](Args& a) { a.sizes.assign(65, {8, 1}); }, kBad, "65");
  refuse([](Args& a) { a.width = 0; }, kBad, "width");
  refuse([](Args& a) { a.width = 1; }, kBad, "width");
  refuse([](Args& a) { a.width = 4294967295u; }, kBad, "width");
  refuse([](Args& a) { a.nic_degree = 0; }, kBad, "nic_degree");
  refuse([](Args& a) { a.request_id.assign(129, 'x'); }, kBad, "request_id");
  refuse([](Args& a) { a.builder = TreeBuilder::kMinimumCost; }, kBad, "minimum-cost");
  refuse(
      [](Args& a) {
        a.type = TreeType::kTypeII;
        a.builder = TreeBuilder::kKary;
      },
      kBad, "kary");
  refuse(
      [](Args& a) {
        a.type = TreeType::kTypeII;
        a.root_switch = Guid(0xdead);
      },
      absl::StatusCode::kNotFound, "000000000000dead");
  EXPECT_EQ(0u, manager_->Counts().granted_trees);
}

TEST_F(ManagerTreesTest, SeveralRanksMayShareAnEndpoint) {
  RegisterJobArgs args;
  args.endpoints = {"n1", "n1", "n2"};
  const auto job = Register(args);
  ASSERT_TRUE(job.ok());
  for (const TreeType type : {TreeType::kTypeI, TreeType::kTypeII}) {
    const auto view = Create(TreeOf(job->record->id, type));
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(3u, view->record->ranks.size());
  }
}

TEST_F(ManagerTreesTest, TheTreesOfOneJobAreLimited) {
  ManagerOptions options = Options();
  options.max_trees_per_job = 2;
  Boot(options);
  job_ = NewJob();
  const CreateTreeArgs args = TreeOf(job_, TreeType::kTypeI);
  const auto first = Create(args);
  ASSERT_TRUE(first.ok() && Create(args).ok());
  const absl::Status status = Create(args).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("limits.trees_per_job"));
  ASSERT_TRUE(Release(first->record->id).ok());
  EXPECT_TRUE(Create(args).ok());
}

TEST_F(ManagerTreesTest, ARetryFindsTheFirstTryUntilItIsReleased) {
  CreateTreeArgs args = TreeOf(job_);
  args.request_id = "comm-world";
  const auto first = Create(args), second = Create(args);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->record, second->record);
  EXPECT_EQ(1u, manager_->Counts().granted_trees);
  CreateTreeArgs other = args;
  other.ranks = {0, 1};
  const absl::Status misuse = Create(other).status();
  EXPECT_TRUE(absl::IsAlreadyExists(misuse));
  EXPECT_THAT(std::string(misuse.message()),
              HasSubstr("request_id comm-world was used with other content"));
  // Another job has names of its own.
  CreateTreeArgs elsewhere = other;
  elsewhere.job = NewJob();
  EXPECT_TRUE(Create(elsewhere).ok());
  ASSERT_TRUE(Release(first->record->id).ok());
  const auto anew = Create(other);
  ASSERT_TRUE(anew.ok()) << anew.status();
  EXPECT_NE(first->record->id, anew->record->id);
  ExpectConserved();
}

TEST_F(ManagerTreesTest, ARetryWhileTheFirstIsUnderWayWaitsForIt) {
  CreateTreeArgs args = TreeOf(job_);
  args.request_id = "x";
  store_.HoldBack();
  auto first = StartCreate(args), second = StartCreate(args);
  EXPECT_EQ(1u, store_.held());
  EXPECT_FALSE(second.answered());
  CreateTreeArgs other = args;
  other.operation = Operation::kBcast;
  EXPECT_TRUE(absl::IsAlreadyExists(Create(other).status()));
  store_.LetGo();
  EXPECT_EQ(first.Get()->record, second.Get()->record);
  ExpectConserved();
}

TEST_F(ManagerTreesTest, AMemberThatLeftTheFabricIsNamed) {
  RegisterJobArgs args;
  args.endpoints = {"n1", "n2", "n3"};
  const JobId job = Register(args)->record->id;
  ASSERT_TRUE(Create(TreeOf(job)).ok());
  port_.Set(SmallFabric({.missing_hosts = {2}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  const absl::Status status = Create(TreeOf(job)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(ToString(PortGuid(2))));
  CreateTreeArgs without = TreeOf(job);
  without.ranks = {2, 0};
  const auto view = Create(without);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(2u, view->record->fabric_version);
  // It comes back: the whole job can be served again.
  port_.Set(SmallFabric());
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_TRUE(Create(TreeOf(job)).ok());
  ExpectConserved();
}

TEST_F(ManagerTreesTest, ReleasingTwiceIsNotFoundAndAtOnceIsOne) {
  const auto view = Create(TreeOf(job_));
  const TreeId id = view->record->id;
  store_.HoldBack();
  Answer<TreeId> first, second;
  manager_->ReleaseTree(id, first.Callback());
  manager_->ReleaseTree(id, second.Callback());
  EXPECT_EQ(1u, store_.held());
  EXPECT_TRUE(manager_->GetTree(id).ok());  // until it is durable
  store_.LetGo();
  EXPECT_EQ(id, *first.Get());
  EXPECT_EQ(id, *second.Get());
  EXPECT_TRUE(absl::IsNotFound(Release(id).status()));
  EXPECT_TRUE(absl::IsNotFound(manager_->GetTree(id).status()));
  EXPECT_TRUE(absl::IsNotFound(Release(TreeId(0)).status()));
  ExpectConserved();
}

TEST_F(ManagerTreesTest, ListsByIdAndByJob) {
  const JobId other = NewJob();
  std::vector<TreeId> mine;
  for (int i = 0; i < 3; ++i) {
    mine.push_back(Create(TreeOf(job_, TreeType::kTypeI))->record->id);
    ASSERT_TRUE(Create(TreeOf(other, TreeType::kTypeI)).ok());
  }
  EXPECT_EQ(6u, manager_->ListTrees(JobId(), TreeId(), 100).size());
  EXPECT_EQ(3u, manager_->ListTrees(job_, TreeId(), 100).size());
  const auto page = manager_->ListTrees(job_, mine[0], 1);
  ASSERT_EQ(1u, page.size());
  EXPECT_EQ(mine[1], page[0].record->id);
  EXPECT_TRUE(manager_->ListTrees(JobId(99), TreeId(), 100).empty());
}

}  // namespace
}  // namespace coppice::manager_trees_test
