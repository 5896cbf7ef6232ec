// Jobs and trees among tenants: which partition a job gets, what its trees may cross, what becomes
// of them when tables change; on scripted sweeps, by the verifier of tests/support.
#include <gmock/gmock.h>

#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "tests/support/partition_check.h"
#include "tests/support/tier.h"
#include "tests/unit/manager/routed_fixture.h"

namespace coppice::partitions_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kHosts = 16;

class ManagerPartitions : public ManagerTest {
 protected:
  void SetKeys(uint32_t host, PartitionTable keys) {
    tables_[PortGuid(host).value()] = std::move(keys);
  }
  void SetSwitchKeys(const PartitionTable& keys) {
    for (uint32_t leaf = 0; leaf < 4; ++leaf) tables_[LeafGuid(leaf).value()] = keys;
    for (uint32_t spine = 0; spine < 2; ++spine) tables_[SpineGuid(spine).value()] = keys;
  }
  void Begin(uint32_t entries = 4) {
    Boot(Options(entries), /*sweep=*/false);
    Sweep();
  }
  // As a sweep finds the tables now.
  void Script() {
    auto partitions = std::make_shared<Partitions>();
    for (const auto& [guid, keys] : tables_) partitions->Set(Guid(guid), keys);
    if (enforced_) partitions->SetEnforced(LeafGuid(0), PortNum(1), *enforced_);
    SweepResult result;
    if (is_over_spine0_) {
      result = OverSpine0(is_over_spine0_);
    } else {
      result.fabric = SmallFabric();
    }
    result.partitions = std::move(partitions);
    port_.Set(absl::StatusOr<SweepResult>(std::move(result)));
  }
  void Sweep() {
    Script();
    ASSERT_TRUE(manager_->Sweep().ok());
  }

  // All routes lead over spine 1, but those from leaf 0 to such LIDs over spine 0.
  static SweepResult OverSpine0(const std::function<bool(Lid)>& is_over_spine0) {
    SweepResult result = RoutedSweep({}, {.missing_spines = {0}});
    const Fabric& fabric = *result.fabric;
    auto tables = std::make_shared<ForwardingTables>(fabric.switch_count());
    for (uint32_t i = 0; i < fabric.switch_count(); ++i) {
      const SwitchIndex s(i);
      const auto old = result.tables->row(s);
      std::vector<uint8_t> row(old.begin(), old.end());
      const Guid guid = fabric.switch_info(s).guid;
      for (size_t lid = 1; lid < row.size(); ++lid) {
        const uint32_t leaf = lid >= 0x5000 ? (lid - 0x5000) / 4 : lid - 0x100;
        const bool is_spine1 = Guid(lid) == SpineGuid(1);  // over leaf 1
        if (guid == SpineGuid(0) && (leaf < 4 || is_spine1)) {
          row[lid] = static_cast<uint8_t>(1 + (is_spine1 ? 1 : leaf));
        }
        const bool is_far = (leaf > 0 && leaf < 4) || is_spine1;
        const Lid to(static_cast<uint16_t>(lid));
        if (guid == LeafGuid(0) && is_far && is_over_spine0(to)) row[lid] = 1;
      }
      tables->SetRow(s, std::move(row));
    }
    result.tables = std::move(tables);
    return result;
  }
  static bool IsOfHost(Lid lid) { return lid.value() >= 0x5000; }

  absl::StatusOr<JobView> RegisterOn(const std::vector<uint32_t>& hosts, uint16_t partition = 0) {
    RegisterJobArgs args;
    args.owner = "ada";
    args.partition = PartitionNum(partition);
    for (const uint32_t host : hosts) args.endpoints.push_back(absl::StrCat("n", host));
    return Register(std::move(args));
  }
  // Rank r on host r.
  JobId JobOnAll() {
    std::vector<uint32_t> hosts(kHosts);
    std::iota(hosts.begin(), hosts.end(), 0u);
    const auto job = RegisterOn(hosts);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->record->id : JobId();
  }
  std::string WhyNot(const std::vector<uint32_t>& hosts, uint16_t partition = 0) {
    const absl::Status status = RegisterOn(hosts, partition).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  }

  static GuidEdges EdgesOf(const TreeView& tree) {
    const TreeRecord& record = *tree.record;
    const auto guid = [&](size_t node) {
      return node < record.ranks.size() ? tree.job->endpoints[record.ranks[node]].value()
                                        : record.switches[node - record.ranks.size()].guid.value();
    };
    GuidEdges edges;
    const auto add = [&](const std::vector<int32_t>& parents) {
      for (size_t node = 0; node < parents.size(); ++node) {
        if (parents[node] >= 0) edges.emplace_back(guid(node), guid(parents[node]));
      }
    };
    add(record.parents);
    for (const ForestTreeRecord& one : record.forest) add(one.parents);
    return edges;
  }
  void ExpectAllSpeak() {
    for (const TreeView& tree : manager_->ListTrees(JobId(), TreeId(), 1u << 20)) {
      EXPECT_TRUE(AllSpeak(tables_, EdgesOf(tree), tree.job->partition.value()))
          << "tree " << tree.record->id.value();
    }
  }

  // Where keys are looked at both ways and lack the job's, no tree crosses the cable.
  void ExpectAllPass() {
    if (!enforced_ || !enforced_->inbound || !enforced_->outbound) return;
    const FabricView& view = *manager_->fabric();
    const Fabric& fabric = *view.snapshot->fabric;
    const ChannelIndex at = fabric.channel_at(*fabric.FindSwitch(LeafGuid(0)), PortNum(1));
    const int64_t cable = (*view.link_ids)[Fabric::link_of(at).value()];
    const KeyTables looking = {{1, enforced_->table}};
    for (const TreeView& tree : manager_->ListTrees(JobId(), TreeId(), 1u << 20)) {
      const int number = tree.job->partition.value();
      if (HoldsKey(looking, 1, number) || HoldsKey(looking, 1, number + 0x8000)) continue;
      EXPECT_THAT(tree.record->links, Not(testing::Contains(cable)));
    }
  }

  KeyTables tables_;
  std::optional<Partitions::Enforcement> enforced_;
  std::function<bool(Lid)> is_over_spine0_;  // null: no tables of forwarding
};

TEST_F(ManagerPartitions, AJobGetsThePartitionThatItsPortsShare) {
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0x7fff});
  for (uint32_t host = 0; host < 4; ++host) SetKeys(host, {0x7fff, 0x8001});
  SetKeys(4, {0x7fff, 0x8001, 0x8002});
  SetKeys(5, {0x7fff, 0x8001, 0x8002});
  SetKeys(6, {0x7fff, 0x0003});
  SetKeys(7, {0x7fff, 0x0003});
  SetKeys(8, {0x7fff, 0x8003});
  SetKeys(9, {});
  Begin();
  EXPECT_EQ(RegisterOn({0, 1, 4})->record->partition, PartitionNum(1));
  EXPECT_EQ(RegisterOn({6, 8})->record->partition, PartitionNum(3));
  EXPECT_EQ(RegisterOn({6})->record->partition, PartitionNum(3));
  EXPECT_EQ(RegisterOn({4, 5}, 2)->record->partition, PartitionNum(2));
  EXPECT_THAT(WhyNot({4, 5}), HasSubstr("are in partitions 0x0001, 0x0002 together; name the one"));
  // The default partition alone, in which both are limited.
  EXPECT_THAT(WhyNot({0, 6}),
              AllOf(HasSubstr("partition 0x7fff: ports n0/1 (0000000000005000) and n6/1 "),
                    HasSubstr("are limited members")));
  EXPECT_THAT(WhyNot({6, 7}), HasSubstr("partition 0x0003: ports n6/1"));
  EXPECT_THAT(WhyNot({0, 9}), HasSubstr("no partition has all ports: n9/1 (0000000000005009) is "
                                        "in none, and those before it share 0x0001, 0x7fff"));
  EXPECT_THAT(WhyNot({0, 8}, 1), HasSubstr("partition 0x0001: port n8/1 (0000000000005008) is not "
                                           "in it; add it in the subnet manager's"));
  EXPECT_THAT(WhyNot({6, 7}, 3), HasSubstr("limited members"));
  // What was chosen is kept, and is the same after a restart.
  const JobId job = RegisterOn({4, 5}, 2)->record->id;
  Boot();
  EXPECT_EQ(manager_->GetJob(job)->record->partition, PartitionNum(2));
}

// A limited member of several ranks cannot speak with itself.
TEST_F(ManagerPartitions, RanksOnOnePortCountEach) {
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0xffff, 0x8001});
  SetKeys(0, {0xffff, 0x0001});
  SetKeys(1, {0x0002});
  Begin();
  const auto job = RegisterOn({0, 0, 0, 0});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->record->partition, kDefaultPartition);
  EXPECT_TRUE(Create(TreeOf(job->record->id, TreeType::kTypeI)).ok());
  EXPECT_EQ(RegisterOn({0, 0, 2})->record->partition, PartitionNum(1));
  EXPECT_THAT(WhyNot({1, 1}), HasSubstr("partition 0x0002: port n1/1 (0000000000005001) of all "
                                        "ranks is a limited member"));
  EXPECT_TRUE(RegisterOn({1}).ok());
}

TEST_F(ManagerPartitions, AllOfAPartitionAreItsMembers) {
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0xffff});
  for (uint32_t host = 4; host < 7; ++host) SetKeys(host, {0xffff, 0x8001});
  Begin();
  RegisterJobArgs args = AllHosts();
  EXPECT_EQ(Register(args)->record->endpoints.size(), kHosts);
  args.partition = PartitionNum(1);
  const auto job = Register(args);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->record->endpoints, testing::ElementsAre(PortGuid(4), PortGuid(5), PortGuid(6)));
  args.partition = PartitionNum(9);
  EXPECT_THAT(std::string(Register(args).status().message()),
              HasSubstr("all_endpoints: partition 0x0009 has no member"));
}

// What could not be read is not empty: nothing is taken away, and nothing granted.
TEST_F(ManagerPartitions, APortOfUnknownTableKeepsItsTrees) {
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0x8001});
  Begin();
  const JobId job = JobOnAll();
  CreateTreeArgs args = TreeOf(job, TreeType::kTypeI);
  const auto tree = Create(args);
  ASSERT_TRUE(tree.ok()) << tree.status();
  tables_.erase(PortGuid(3).value());
  Boot(Options(), /*sweep=*/false);  // the first sweep after a start
  Sweep();
  ASSERT_TRUE(manager_->GetTree(tree->record->id).ok());
  EXPECT_EQ(manager_->GetTree(tree->record->id)->record->revision, 1u);
  EXPECT_TRUE(EventsOf("partitions.changed").empty());
  const std::string words =
      "n3/1 (0000000000005003): its table of partitions could not be read; "
      "sweep again (coppicectl fabric sweep)";
  EXPECT_THAT(std::string(Create(args).status().message()), HasSubstr(words));
  EXPECT_THAT(WhyNot({2, 3}), HasSubstr(words));
  EXPECT_THAT(WhyNot({2, 3}, 1), HasSubstr(words));
  args.ranks = {0, 1, 2};
  EXPECT_TRUE(Create(args).ok());
  SetKeys(3, {0x8001});
  Sweep();
  args.ranks.clear();
  EXPECT_TRUE(Create(args).ok());
  EXPECT_TRUE(EventsOf("partitions.changed").empty());
}

// Of an earlier release, which knew of none; as on a fabric where no port tells its table.
TEST_F(ManagerPartitions, AJobWithoutOneKeepsItsTreesAndThePartitionThatIsChosen) {
  Boot(Options(), /*sweep=*/false);
  Sweep();
  const auto trees_of = [&](JobId job) { return manager_->ListTrees(job, TreeId(), 10).size(); };
  const JobId job = RegisterOn({0, 1, 2, 3})->record->id;
  const JobId other = RegisterOn({4, 5, 6, 7})->record->id;
  for (const JobId one : {job, other}) {
    ASSERT_TRUE(Create(TreeOf(one, TreeType::kTypeI)).ok());
  }
  for (uint32_t host = 0; host < 4; ++host) SetKeys(host, {0x7fff, 0x8002, 0x8003});
  for (uint32_t host = 4; host < kHosts; ++host) SetKeys(host, {0xffff, 0x8001, 0x8002});
  Sweep();
  EXPECT_EQ(trees_of(job), 1u);
  EXPECT_EQ(trees_of(other), 1u);
  EXPECT_TRUE(Create(TreeOf(job, TreeType::kTypeI)).ok());
  // In the default one, not in 0x0001: a port that leaves that takes nothing along.
  SetKeys(4, {0xffff});
  Sweep();
  EXPECT_EQ(trees_of(other), 1u);
  // In 0x0002, though 0x0001 is lower now, and after that is gone.
  for (uint32_t host = 0; host < 4; ++host) SetKeys(host, {0x7fff, 0x8001, 0x8002, 0x8003});
  Sweep();
  SetKeys(0, {0x7fff, 0x8001, 0x8003});
  Sweep();
  EXPECT_EQ(trees_of(job), 0u);
  ASSERT_EQ(EventsOf("trees.revoked").size(), 1u);
  EXPECT_THAT(EventsOf("trees.revoked")[0].message, HasSubstr("partition 0x0002: port n0/1"));
}

// They are as they were when forwarding tables were last read.
TEST_F(ManagerPartitions, ChangedTablesOfPartitionsLeaveRoutesSettled) {
  is_over_spine0_ = IsOfHost;
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0x8001});
  Begin();
  EXPECT_FALSE(manager_->fabric()->routes_settled);
  SetKeys(0, {0x8001, 0x8002});
  Sweep();
  EXPECT_TRUE(manager_->fabric()->routes_settled);
  SetKeys(0, {0x8001});
  Sweep();
  EXPECT_TRUE(manager_->fabric()->routes_settled);
}

// From leaf 0 to other hosts over its port 1, back over its port 2.
TEST_F(ManagerPartitions, KeysAreLookedAtInTheDirectionOfMessages) {
  is_over_spine0_ = [](Lid) { return true; };
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0x8001});
  SetSwitchKeys({0x8001});
  enforced_ = Partitions::Enforcement{true, false, {0x8002}};
  Begin(/*entries=*/64);
  const JobId job = JobOnAll();
  for (const TreeType type : {TreeType::kTypeI, TreeType::kTypeII}) {
    const auto tree = Create(TreeOf(job, type));
    EXPECT_TRUE(tree.ok()) << tree.status();
  }
  enforced_ = Partitions::Enforcement{false, true, {0x8002}};
  Sweep();
  EXPECT_TRUE(manager_->ListTrees(job, TreeId(), 100).empty());
  for (const TreeType type : {TreeType::kTypeI, TreeType::kTypeII}) {
    EXPECT_THAT(std::string(Create(TreeOf(job, type)).status().message()),
                HasSubstr("does not let it out, and routes between members lead there"));
  }
}

// The tables lead where keys are looked at; shortest paths that do not are no way for a tree.
TEST_F(ManagerPartitions, WhatAPortKeepsOutIsNotPlannedOverOtherPaths) {
  is_over_spine0_ = IsOfHost;
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0x8001});
  Begin();
  for (uint32_t host = 4; host < kHosts; ++host) {
    const auto job = RegisterOn({0, host});
    ASSERT_TRUE(Create(TreeOf(job->record->id, TreeType::kTypeI)).ok());
  }
  enforced_ = Partitions::Enforcement{true, true, {0x8002}};
  Sweep();
  EXPECT_TRUE(manager_->ListTrees(JobId(), TreeId(), 100).empty());
  EXPECT_TRUE(EventsOf("trees.repaired").empty());
  const auto job = RegisterOn({0, 5});
  EXPECT_EQ(Create(TreeOf(job->record->id, TreeType::kTypeI)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ManagerPartitions, OfABatchOnlyWhatCannotPassIsRefusedWhereAPartWillDo) {
  is_over_spine0_ = [](Lid) { return true; };
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0x8001});
  enforced_ = Partitions::Enforcement{true, true, {0x8002}};
  Begin();
  CreateBatchArgs batch;
  batch.job = JobOnAll();
  batch.communicators = {{0, 5}, {4, 5}};
  batch.accept_type1 = true;
  const auto ask = [&] {
    Answer<std::shared_ptr<const BatchView>> answer;
    manager_->BatchCreateTrees(batch, {}, answer.Callback());
    return answer.Get();
  };
  EXPECT_EQ(ask().status().code(), absl::StatusCode::kFailedPrecondition);
  batch.largest_part = true;
  const auto granted = ask();
  ASSERT_TRUE(granted.ok()) << granted.status();
  ASSERT_EQ((*granted)->trees.size(), 1u);
  EXPECT_EQ((*granted)->trees[0].communicator, 1u);
  ASSERT_EQ((*granted)->refusals.size(), 1u);
  EXPECT_THAT((*granted)->refusals[0].why_not, HasSubstr("partition 0x0001: port 1 of switch"));
  ExpectAllPass();
}

// Switches are reached over port 1 of leaf 0, hosts are not.
TEST_F(ManagerPartitions, WhereOneTypeCannotPassTheOtherIsTried) {
  is_over_spine0_ = [](Lid lid) { return !IsOfHost(lid); };
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0x8001});
  SetSwitchKeys({0x8001});
  Begin(/*entries=*/64);
  const JobId job = JobOnAll();
  CreateTreeArgs args = TreeOf(job);
  args.type.reset();
  const auto before = Create(args);
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_EQ(before->record->type, 2) << before->record->reason;
  enforced_ = Partitions::Enforcement{true, true, {0x8002}};
  Sweep();
  const auto now = Create(args);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->record->type, 1);
  EXPECT_THAT(now->record->reason,
              HasSubstr("; no type II tree: partition 0x0001: port 1 of switch"));
  args.type = TreeType::kTypeII;
  EXPECT_EQ(Create(args).status().code(), absl::StatusCode::kFailedPrecondition);
  ExpectAllPass();
}

TEST_F(ManagerPartitions, NoneWhereNoPortTellsItsTable) {
  Boot();
  EXPECT_EQ(RegisterOn({0, 1})->record->partition, PartitionNum());
  EXPECT_THAT(WhyNot({0, 1}, 5), HasSubstr("no port of this fabric tells its partitions"));
}

TEST_F(ManagerPartitions, LimitedMembersAreLeaves) {
  for (uint32_t host = 0; host < kHosts; ++host)
    SetKeys(host, {host % 2 == 0 ? uint16_t{0x8001} : uint16_t{1}});
  Begin();
  const JobId job = JobOnAll();
  const auto tree = Create(TreeOf(job, TreeType::kTypeI));
  ASSERT_TRUE(tree.ok()) << tree.status();
  for (const int32_t parent : tree->record->parents) {
    EXPECT_TRUE(parent < 0 || parent % 2 == 0) << parent;
  }
  EXPECT_THAT(tree->record->reason,
              HasSubstr("8 of 16 ranks are leaves, as limited members of partition 0x0001"));
  ExpectAllSpeak();
  // No two of them alone; one full member makes a tree of them.
  CreateTreeArgs args = TreeOf(job, TreeType::kTypeI);
  args.ranks = {1, 3, 5};
  EXPECT_THAT(std::string(Create(args).status().message()),
              AllOf(HasSubstr("partition 0x0001: ports n1/1"), HasSubstr("and n3/1")));
  args.ranks = {1, 3, 5, 6};
  EXPECT_EQ(Create(args)->record->parents, (std::vector<int32_t>{3, 3, 3, -1}));
  args.ranks = {1};
  EXPECT_TRUE(Create(args).ok());
  // A forest has every rank serve: one tree does instead.
  args.ranks.clear();
  args.max_trees = 8;
  args.sizes = {{4 << 20, 1}};
  args.type.reset();
  const auto one = Create(args);
  EXPECT_TRUE(one->record->forest.empty());
  EXPECT_THAT(one->record->reason, HasSubstr("; no forest, as all of its ranks would have to "));
  args.operation = Operation::kBcast;  // what no forest is for is refused as elsewhere
  EXPECT_EQ(Create(args).status().code(), absl::StatusCode::kInvalidArgument);
  ExpectAllSpeak();
}

TEST_F(ManagerPartitions, SwitchesServeAsFullMembers) {
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0x8001});
  SetSwitchKeys({0xffff, 0x0001});
  Begin();
  const JobId job = JobOnAll();
  const auto refused = Create(TreeOf(job));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("6 switches cannot serve, as their ports 0 are no full member of partition "
                        "0x0001 (ALL_SWITCHES=full in partitions.conf)"));
  EXPECT_THAT(
      std::string(refused.status().message()),
      AllOf(HasSubstr("(barred)"), Not(HasSubstr("release a tree")), Not(HasSubstr("0 entries"))));
  EXPECT_TRUE(EventsOf("entries").empty());
  CreateBatchArgs batch;
  batch.job = job;
  batch.communicators = {{0, 1, 2}, {4, 5, 6}};
  Answer<std::shared_ptr<const BatchView>> none;
  manager_->BatchCreateTrees(batch, {}, none.Callback());
  const absl::Status why_none = none.Get().status();
  EXPECT_THAT(std::string(why_none.message()),
              HasSubstr("6 switches cannot serve, as their ports"));
  EXPECT_FALSE(why_none.GetPayload(kFullSwitchesPayload).has_value());
  EXPECT_TRUE(EventsOf("entries").empty());
  batch.accept_type1 = true;
  Answer<std::shared_ptr<const BatchView>> answer;
  manager_->BatchCreateTrees(batch, {}, answer.Callback());
  const auto granted = answer.Get();
  ASSERT_TRUE(granted.ok()) << granted.status();
  for (const BatchView::Tree& one : (*granted)->trees) EXPECT_EQ(one.view.record->type, 1);
  SetSwitchKeys({0xffff, 0x8001});
  Sweep();
  EXPECT_EQ(Create(TreeOf(job))->record->type, 2);
  ExpectAllSpeak();
  // As a limited member it may serve no more: the tree of type II goes, as it was asked for.
  SetSwitchKeys({0xffff, 0x0001});
  Sweep();
  EXPECT_EQ(manager_->ListTrees(job, TreeId(), 100).size(), 2u);
  ExpectAllSpeak();
  ExpectConserved();
}

TEST_F(ManagerPartitions, PortsOfSwitchesThatLookAtKeysLetThemPass) {
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0x8001});
  enforced_ = Partitions::Enforcement{true, true, {0x8001}};
  Begin();
  const JobId job = JobOnAll();
  CreateTreeArgs args = TreeOf(job, TreeType::kTypeI);
  const auto tree = Create(args);
  ASSERT_TRUE(tree.ok()) << tree.status();
  enforced_->table = {0x8002};
  Sweep();
  EXPECT_TRUE(manager_->ListTrees(job, TreeId(), 100).empty());
  const auto revoked = EventsOf("trees.revoked");
  ASSERT_EQ(revoked.size(), 1u);
  EXPECT_THAT(revoked[0].message, HasSubstr("partition 0x0001: port 1 of switch 0000000000000100"));
  EXPECT_EQ(Create(args).status().code(), absl::StatusCode::kFailedPrecondition);
  args.ranks = {0, 1, 2};  // of one leaf switch
  EXPECT_TRUE(Create(args).ok());
}

TEST_F(ManagerPartitions, ChangedTablesReviseOrRevokeTrees) {
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, {0x8001});
  Begin();
  const JobId job = RegisterOn({0, 1, 2, 3, 4, 5, 6, 7})->record->id;
  const auto tree = Create(TreeOf(job, TreeType::kTypeI));
  ASSERT_TRUE(tree.ok());
  const auto root = static_cast<uint32_t>(
      std::find(tree->record->parents.begin(), tree->record->parents.end(), -1) -
      tree->record->parents.begin());
  SetKeys(root, {0x0001});  // made limited: it stays as a leaf
  Sweep();
  auto now = manager_->ListTrees(job, TreeId(), 10);
  ASSERT_EQ(now.size(), 1u);
  EXPECT_EQ(now[0].record->revision, 2u);
  EXPECT_NE(now[0].record->parents[root], -1);
  ExpectAllSpeak();
  ASSERT_EQ(EventsOf("trees.repaired").size(), 1u);
  EXPECT_THAT(EventsOf("trees.repaired")[0].message, HasSubstr("has children as a limited member"));
  SetKeys(root, {});  // removed
  Sweep();
  EXPECT_TRUE(manager_->ListTrees(job, TreeId(), 10).empty());
  ASSERT_EQ(EventsOf("trees.revoked").size(), 1u);
  EXPECT_THAT(EventsOf("trees.revoked")[0].message, HasSubstr("is not in it"));
  const absl::Status refused = Create(TreeOf(job, TreeType::kTypeI)).status();
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat("rank ", root, " of job ", job.value(),
                                     ": partition 0x0001: port n", root)));
  SetKeys(root, {0xffff, 0x8001});  // back, at another place of its table
  Sweep();
  EXPECT_TRUE(Create(TreeOf(job, TreeType::kTypeI)).ok());
  ExpectConserved();
}

TEST_F(ManagerPartitions, RandomRequestsAndChangesOfTables) {
  std::mt19937_64 random(TestSeed());
  const auto random_keys = [&] {
    PartitionTable keys = {random() % 2 == 0 ? uint16_t{0xffff} : uint16_t{0x7fff}};
    for (uint16_t number = 1; number <= 3; ++number) {
      const uint64_t what = random() % 4;
      if (what >= 2) keys.push_back(static_cast<uint16_t>(0x8000 + number));
      if (what == 1 || what == 3) keys.push_back(number);
    }
    return keys;
  };
  for (uint32_t host = 0; host < kHosts; ++host) SetKeys(host, random_keys());
  SetSwitchKeys({0xffff, 0x8001, 0x0002});
  Begin(/*entries=*/64);
  int granted = 0, refused = 0, of_type2 = 0, revised = 0;
  const int changes = FullTier() ? 200 : 40, requests = FullTier() ? 1000 : 200;
  for (int round = 0; round < requests; ++round) {
    std::vector<uint32_t> hosts;
    for (uint32_t host = 0; host < kHosts; ++host) {
      if (random() % 3 == 0) hosts.push_back(host);
      if (random() % 8 == 0 && !hosts.empty()) hosts.push_back(hosts.back());
    }
    if (hosts.empty()) continue;
    const auto job = RegisterOn(hosts, static_cast<uint16_t>(random() % 4));
    if (job.ok()) {
      CreateTreeArgs args = TreeOf(job->record->id);
      if (random() % 3 != 0) args.type.reset();
      if (random() % 4 == 0) args.max_trees = 4;
      if (random() % 2 == 0) args.sizes = {{8u << (random() % 20), 1}};
      const auto tree = Create(args);
      tree.ok() ? ++granted : ++refused;
      if (tree.ok() && tree->record->type == 2) ++of_type2;
    } else {
      ++refused;
    }
    ExpectAllSpeak();
    if (round % (requests / changes) != 0) continue;
    SetKeys(static_cast<uint32_t>(random() % kHosts), random_keys());
    if (random() % 8 == 0) SetSwitchKeys(random_keys());
    if (random() % 2 == 0) enforced_ = Partitions::Enforcement{true, true, random_keys()};
    if (random() % 4 == 0) enforced_.reset();
    Sweep();
    ExpectAllPass();
    ExpectAllSpeak();
    ExpectAllStand(*manager_);
  }
  for (const TreeView& tree : manager_->ListTrees(JobId(), TreeId(), 1u << 20)) {
    revised += tree.record->revision > 1 ? 1 : 0;
  }
  std::printf("%d granted, %d of them of type II, %d refused, %d stand revised\n", granted,
              of_type2, refused, revised);
  EXPECT_GT(granted, requests / 10);
  EXPECT_GT(of_type2, 0);
  EXPECT_GT(refused, requests / 10);
  EXPECT_GT(revised, 0);
  ExpectConserved();
}

// Their ports need to share one in which one of them is a full member; which does not matter.
TEST_F(ManagerPartitions, MapsAreOverHostsThatCanSpeak) {
  SetKeys(0, {0x8001, 0x7fff});
  SetKeys(1, {0x0001, 0x7fff});
  SetKeys(2, {0x8002, 0x7fff});
  SetKeys(3, {0x8001, 0x8002, 0x7fff});
  Begin();
  RankMapper mapper(manager_.get(), &SystemClock(), MapperOptions());
  const auto why_not = [&](std::vector<std::string> hosts) {
    MapRanksArgs args;
    args.task.pattern = Pattern::Make(2, {{0, 1, 100, 1}}).value();
    args.task.hosts = std::move(hosts);
    args.budget = absl::Milliseconds(10);
    const auto view = mapper.MapRanks(args, {});
    return view.ok() ? "" : std::string(view.status().message());
  };
  EXPECT_EQ(why_not({"n0", "n1"}), "");
  EXPECT_EQ(why_not({"n0", "n3"}), "");
  EXPECT_EQ(why_not({"n3", "n2"}), "");
  EXPECT_THAT(why_not({"n1", "n2"}),
              AllOf(HasSubstr("hosts: "), HasSubstr("partition 0x7fff"), HasSubstr("n1/1"),
                    HasSubstr("n2/1"), HasSubstr("limited")));
}

}  // namespace
}  // namespace coppice::partitions_test
