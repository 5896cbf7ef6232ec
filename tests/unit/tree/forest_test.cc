// Forests: the bound of the cuts against all cuts, trees that span, shares, busiest links, and what
// is refused. What they take beside other ways: tests/unit/simulation/forest_comparison_test.cc.
#include "daemon/tree/forest/forest.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/tree/forest/bound.h"
#include "daemon/tree/forest/shapes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"
#include "tests/support/forest_check.h"
#include "tests/support/tier.h"

namespace coppice::forest_test {
namespace {

using ::testing::HasSubstr;

Snapshot SnapshotWith(FabricPtr fabric, std::mt19937_64* load_generator = nullptr) {
  Snapshot snapshot = {fabric, Routes::ShortestPaths(fabric), DeriveHierarchy(*fabric),
                       std::make_shared<const LinkLoad>()};
  if (load_generator != nullptr) {
    std::vector<float> load(fabric->channel_count());
    for (float& u : load) u = static_cast<float>((*load_generator)() % 4) / 8;
    snapshot.load = std::make_shared<const LinkLoad>(load);
  }
  return snapshot;
}

Snapshot SnapshotOfSpec(const std::string& spec) {
  const auto fabric = LoadFabric(spec);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return SnapshotWith(*fabric);
}

CostProfile Hdr() { return *BuiltInProfile("hdr"); }

TreeRequest Allreduce(std::vector<EndpointIndex> members, uint64_t bytes) {
  TreeRequest request;
  request.members = std::move(members);
  request.operation = Operation::kAllreduce;
  request.sizes = {{bytes, 1}};
  return request;
}

// The greatest ratio over every set of switches and hosts that leaves a host with ranks outside;
// `entering`: of what enters the set.
double WorstRatio(const Snapshot& snapshot, const std::vector<EndpointIndex>& members,
                  bool entering) {
  const Fabric& fabric = *snapshot.fabric;
  std::map<uint32_t, uint32_t> ranks;  // by bundle
  for (const EndpointIndex m : members) ++ranks[fabric.bundle(m).value()];
  std::map<uint32_t, uint32_t> bit;  // of a bundle, after the switches
  for (const auto& [bundle, count] : ranks) {
    bit.emplace(bundle, fabric.switch_count() + static_cast<uint32_t>(bit.size()));
  }
  std::vector<bool> is_member(fabric.endpoint_count(), false);
  for (const EndpointIndex m : members) is_member[m.value()] = true;
  const auto bit_of = [&](VertexIndex v) -> int {
    if (fabric.IsSwitch(v)) return static_cast<int>(v.value());
    const EndpointIndex e = fabric.AsEndpoint(v);
    return is_member[e.value()] ? static_cast<int>(bit.at(fabric.bundle(e).value())) : -1;
  };
  double worst = 0;
  for (uint64_t set = 1; set < uint64_t{1} << (fabric.switch_count() + bit.size()); ++set) {
    uint32_t inside = 0;
    for (const auto& [bundle, count] : ranks) inside += (set >> bit[bundle] & 1) != 0 ? count : 0;
    if (inside == 0 || inside == members.size()) continue;
    double gbps = 0;
    for (uint32_t c = 0; c < fabric.channel_count(); ++c) {
      const int from = bit_of(fabric.channel_from(ChannelIndex(c)));
      const int to = bit_of(fabric.channel_to(ChannelIndex(c)));
      if (from < 0 || to < 0) continue;
      const bool in_from = (set >> from & 1) != 0, in_to = (set >> to & 1) != 0;
      if (entering ? in_to && !in_from : in_from && !in_to) {
        gbps += fabric.capacity_gbps(ChannelIndex(c)) * (1 - snapshot.utilisation(ChannelIndex(c)));
      }
    }
    worst = std::max(worst, inside / gbps);
  }
  return worst;
}

TEST(ForestBound, IsThatOfTheWorstOfAllCuts) {
  std::mt19937_64 generator(TestSeed());
  CostProfile profile = Hdr();
  profile.header_bytes = 0;
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    const FabricPtr fabric = RandomFabric(generator, 2 + generator() % 4, 3 + generator() % 6, 6);
    std::vector<EndpointIndex> members;
    const size_t count = 2 + generator() % 6;
    for (size_t r = 0; r < count; ++r) members.emplace_back(generator() % fabric->endpoint_count());
    const Snapshot snapshot = SnapshotWith(fabric, i % 2 == 0 ? &generator : nullptr);
    const auto bound = FindForestBound(snapshot, profile, members, 1 << 20);
    if (!bound.ok() || bound->cut.ranks == 0) continue;  // in several components, or on one host
    ++compared;
    const double us = (1 << 20) * 8e-3 / static_cast<double>(count);
    EXPECT_NEAR(bound->allgather_us / (us * WorstRatio(snapshot, members, false)), 1, 1e-5);
    EXPECT_NEAR(bound->reduce_scatter_us / (us * WorstRatio(snapshot, members, true)), 1, 1e-5);
    EXPECT_LE(bound->allreduce_floor_us, bound->allreduce_us * (1 + 1e-5));
    EXPECT_LE(bound->allgather_us, bound->bcast_us * count);
  }
  EXPECT_GE(compared, 15);
}

TEST(ForestBound, KnownCases) {
  CostProfile profile = Hdr();
  profile.header_bytes = 0;
  const double whole_us = (1 << 20) * 8e-3 / 200;  // over one port
  // Ports decide: 2 (N - 1) / N.
  const FabricPtr star = Chain(1, 8);
  auto bound = FindForestBound(SnapshotWith(star), profile, AllEndpoints(*star), 1 << 20);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_NEAR(bound->allreduce_us, whole_us * 2 * 7 / 8, 1e-6);
  EXPECT_NEAR(bound->allreduce_floor_us, bound->allreduce_us, 1e-6);
  EXPECT_NEAR(bound->bcast_us, whole_us, 1e-6);
  EXPECT_EQ(bound->cut.ranks, 7U);
  // One uplink for four hosts: half of the ranks, or three quarters, behind one cable.
  const FabricPtr pruned = TwoLevelFatTree(4, 1, 4);
  bound = FindForestBound(SnapshotWith(pruned), profile, AllEndpoints(*pruned), 1 << 20);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_NEAR(bound->allreduce_us, whole_us * 2 * 15 / 16, 1e-6);
  // Ranks of one host reach each other without a link.
  const FabricPtr host = TwoLevelFatTree(1, 0, 1, 2);
  bound = FindForestBound(SnapshotWith(host), profile, AllEndpoints(*host), 1 << 20);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->allreduce_us, 0);
}

TEST(Forest, EveryShapeSpansItsRanks) {
  const CostProfile profile = Hdr();
  for (const char* spec : {"model:fat-tree(leaves=4,spines=2,hosts-per-leaf=5)",
                           "model:fat-tree(leaves=3,spines=2,hosts-per-leaf=2,ports-per-host=2)",
                           "model:torus(dims=3x4,hosts=2)"}) {
    const Snapshot snapshot = SnapshotOfSpec(spec);
    std::mt19937_64 generator(TestSeed());
    std::vector<EndpointIndex> members = AllEndpoints(*snapshot.fabric);
    std::shuffle(members.begin(), members.end(), generator);
    members.resize(members.size() - 1);
    members.insert(members.end(), {members[0], members[0], members[3]});  // several on one port
    const auto places = FindMemberPlaces(snapshot, members);
    ASSERT_TRUE(places.ok());
    const ForestHosts hosts = FindForestHosts(snapshot, *places);
    ForestRoutes routes(snapshot, profile, *places);
    const TreeRequest request = Allreduce(members, 1 << 20);
    for (const ForestShape& shape : ShapesToTry(hosts, kMaxTrees)) {
      const auto trees = BuildForest(hosts, shape, routes);
      ASSERT_TRUE(trees.ok()) << trees.status();
      EXPECT_EQ(trees->size(), shape.trees);
      ForestPlan plan;
      for (const ShapedTree& tree : *trees) {
        ForestTree one{.tree = {}, .share = tree.share};
        one.tree.rank_count = static_cast<uint32_t>(members.size());
        for (const EndpointIndex m : members) {
          one.tree.vertices.push_back(snapshot.fabric->Vertex(m));
        }
        one.tree.parents = tree.parents;
        plan.trees.push_back(std::move(one));
      }
      plan.busiest.us = 1e12;
      const absl::Status good = CheckForest(snapshot, profile, request, plan);
      EXPECT_TRUE(good.ok()) << spec << ", " << ToString(shape) << ": " << good;
    }
  }
}

TEST(Forest, IsWhatItClaimsAndTheSameAgain) {
  std::mt19937_64 generator(TestSeed());
  const CostProfile profile = Hdr();
  for (int i = 0; i < 12; ++i) {
    const FabricPtr fabric = i % 3 == 0 ? Ring(5, 3)
                                        : TwoLevelFatTree(2 + generator() % 4, 1 + generator() % 3,
                                                          1 + generator() % 6, 1 + generator() % 2);
    const Snapshot snapshot = SnapshotWith(fabric, i % 2 == 0 ? &generator : nullptr);
    std::vector<EndpointIndex> members;
    for (size_t r = 0; r < 1 + generator() % 20; ++r) {
      members.emplace_back(generator() % fabric->endpoint_count());
    }
    TreeRequest request = Allreduce(members, 1 << 18);
    request.sizes.push_back({1 << 16, 2});
    if (i % 4 != 0) request.nic_degree = 2 + generator() % 3;
    const uint32_t max_trees = 1 + generator() % 16;
    const auto plan = PlanForest(snapshot, profile, request, max_trees);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->trees.size(), max_trees);
    const absl::Status good = CheckForest(snapshot, profile, request, *plan);
    EXPECT_TRUE(good.ok()) << good;
    const auto again = PlanForest(snapshot, profile, request, max_trees);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->total_us, plan->total_us);
    ASSERT_EQ(again->trees.size(), plan->trees.size());
    for (size_t t = 0; t < plan->trees.size(); ++t) {
      EXPECT_EQ(again->trees[t].tree.parents, plan->trees[t].tree.parents);
      EXPECT_EQ(again->trees[t].share, plan->trees[t].share);
    }
  }
}

TEST(Forest, TheVerifierSeesWhatIsWrong) {
  const FabricPtr fabric = Chain(1, 6);
  const Snapshot snapshot = SnapshotWith(fabric);
  const TreeRequest request = Allreduce(AllEndpoints(*fabric), 1 << 20);
  const auto plan = PlanForest(snapshot, Hdr(), request, 6);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_GT(plan->trees.size(), 1U);
  const auto expect_wrong = [&](const ForestPlan& broken, const std::string& words) {
    const absl::Status status = CheckForest(snapshot, Hdr(), request, broken);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  ForestPlan broken = *plan;
  broken.trees[0].share *= 1.1;
  expect_wrong(broken, "add up to");
  broken = *plan;
  broken.trees[1].tree.parents.assign(6, -1);
  expect_wrong(broken, "root");
  broken = *plan;
  broken.trees[1].tree.parents = {-1, 0, 0, 0, 0, 0};
  TreeRequest narrow = request;
  narrow.nic_degree = 4;
  EXPECT_THAT(std::string(CheckForest(snapshot, Hdr(), narrow, broken).message()),
              HasSubstr("5 children"));
  broken = *plan;
  broken.busiest.us *= 0.9;
  expect_wrong(broken, "is busy for");
}

TEST(Forest, RefusesWhatItIsNotFor) {
  const FabricPtr fabric = Chain(2, 3);
  const Snapshot snapshot = SnapshotWith(fabric);
  const TreeRequest good = Allreduce(AllEndpoints(*fabric), 1 << 20);
  const auto expect_error = [&](const TreeRequest& request, uint32_t max_trees,
                                const std::string& words) {
    const auto plan = PlanForest(snapshot, Hdr(), request, max_trees);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << plan.status();
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(words));
  };
  expect_error(good, 0, "ask for 1 to 64");
  expect_error(good, kMaxTrees + 1, "ask for 1 to 64");
  TreeRequest request = good;
  request.operation = Operation::kBcast;
  expect_error(request, 4, "forests are planned for allreduce, not for bcast");
  request = good;
  request.type = TreeType::kTypeII;
  expect_error(request, 4, "of type I");
  request = good;
  request.policy = TradePolicy{.latency = 1};
  expect_error(request, 4, "a policy chooses between single trees");
  request = good;
  request.members.clear();
  expect_error(request, 4, "");
}

}  // namespace
}  // namespace coppice::forest_test
