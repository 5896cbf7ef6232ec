// Placement with a pattern: the set of hosts by least cut, and the order of ranks on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "daemon/placement/count_state.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placer.h"
#include "tests/unit/placement/placement_oracle.h"

namespace coppice::rank_order_test {
namespace {

using ::testing::HasSubstr;

// Ranks i and i + half talk to each other alone: a present order by leaf switch is the worst.
std::shared_ptr<const Pattern> Couples(uint32_t ranks) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t r = 0; r < ranks / 2; ++r) {
    entries.push_back({.from = r, .to = r + ranks / 2, .bytes = 1000, .messages = 1});
    entries.push_back({.from = r + ranks / 2, .to = r, .bytes = 1000, .messages = 1});
  }
  return *Pattern::Make(ranks, entries);
}

PlacementRequest RequestFor(uint32_t hosts, uint32_t ranks_per_host,
                            std::shared_ptr<const Pattern> pattern) {
  PlacementRequest request;
  request.constraints.host_count = hosts;
  request.ranks_per_host = ranks_per_host;
  request.pattern = std::move(pattern);
  return request;
}

TEST(RankOrder, PutsPartnersOnOneLeafSwitch) {
  const PlacementScene scene = MakeScene("model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)");
  const PlacementRequest request = RequestFor(8, 1, Couples(8));
  const auto plan = Place(*scene.snapshot, *scene.index, scene.occupancy, request, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->permutation.size(), 8U);
  std::vector<uint32_t> slots = plan->permutation;
  for (uint32_t r = 0; r < 4; ++r) {
    EXPECT_EQ(scene.index->leaf_of(plan->hosts[slots[r]]),
              scene.index->leaf_of(plan->hosts[slots[r + 4]]));
  }
  std::sort(slots.begin(), slots.end());
  std::vector<uint32_t> all(8);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(slots, all);
  EXPECT_GT(plan->measures.max_congestion, 0);
  EXPECT_TRUE(plan->is_optimal);  // two leaf switches, and no more than what leaves each host
  EXPECT_THAT(plan->reason, HasSubstr("order of ranks"));
}

TEST(RankOrder, FillsHostsWithRanks) {
  const PlacementScene scene = MakeScene("model:torus(dims=4x4,hosts=1)");
  const auto plan =
      Place(*scene.snapshot, *scene.index, scene.occupancy, RequestFor(4, 2, Couples(8)), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->hosts.size(), 4U);
  EXPECT_EQ(plan->permutation.size(), 8U);
  EXPECT_EQ(plan->measures.max_congestion, 0) << "each couple fits one host";
  EXPECT_THAT(
      Place(*scene.snapshot, *scene.index, scene.occupancy, RequestFor(4, 1, Couples(8)), {})
          .status()
          .message(),
      HasSubstr("a pattern of 8 ranks for 4 positions on 4 hosts"));
}

TEST(RankOrder, ASilentPatternKeepsTheOrder) {
  const PlacementScene scene = MakeScene("model:torus(dims=4x4,hosts=1)");
  const auto plan = Place(*scene.snapshot, *scene.index, scene.occupancy,
                          RequestFor(3, 1, *Pattern::Make(3, {})), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->permutation, ::testing::ElementsAre(0, 1, 2));
}

// Of four candidates, two on leaf switch 0 have ports that are full already.
TEST(RankOrder, ThePatternMayDecideAgainstTheNearestHosts) {
  PlacementScene scene = MakeScene("model:fat-tree(leaves=2,spines=2,hosts-per-leaf=3)");
  const Fabric& fabric = scene.fabric();
  std::vector<float> load(fabric.channel_count(), 0);
  for (const uint32_t h : {0U, 1U}) {
    const EndpointIndex port = fabric.endpoints_of_host(HostIndex(h)).front();
    const ChannelIndex out = fabric.channels(fabric.Vertex(port)).front().index;
    load[out.value()] = load[Fabric::Reverse(out).value()] = 1;
  }
  auto snapshot = std::make_shared<Snapshot>(*scene.snapshot);
  snapshot->load = std::make_shared<const LinkLoad>(load);
  scene.snapshot = snapshot;
  PlacementRequest request = RequestFor(2, 1, Couples(2));
  for (const uint32_t h : {0U, 1U, 2U, 3U}) {
    request.constraints.candidates.push_back(HostIndex(h));
  }
  const auto plan = Place(*scene.snapshot, *scene.index, scene.occupancy, request, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->hosts, ::testing::UnorderedElementsAre(HostIndex(2), HostIndex(3)));
  EXPECT_TRUE(plan->is_optimal);
  EXPECT_THAT(plan->reason, HasSubstr("the pattern decided: the best hosts without it cost "));
  request.objective = DefaultObjective();
  request.objective.traffic = 0;
  const auto near = Place(*scene.snapshot, *scene.index, scene.occupancy, request, {});
  ASSERT_TRUE(near.ok()) << near.status();
  EXPECT_EQ(near->measures.leaf_switches, 1U);
  EXPECT_THAT(near->reason, ::testing::Not(HasSubstr("the pattern decided")));
}

// The cut counted pair by pair.
double NaiveCut(const PlacementScene& scene, const OpenHosts& open, const LeafCounts& counts) {
  std::vector<uint32_t> taken(open.leaves.size(), 0);
  for (const auto& [position, count] : counts) taken[position] = count;
  double cut = 0;
  for (size_t i = 0; i < taken.size(); ++i) {
    for (size_t j = 0; j < taken.size(); ++j) {
      const double hops = scene.index->Hops(open.leaves[i].leaf, open.leaves[j].leaf);
      cut += taken[i] * (double{1} * open.leaves[j].open - taken[j]) / (hops * hops);
    }
  }
  return cut;
}

TEST(CutSearch, DeltasAddUpAndTheCutGetsLess) {
  std::mt19937_64 rng(7);
  for (const char* const source :
       {"model:fat-tree(supernodes=3,leaves=2,spines=2,hosts-per-leaf=3,tops=2)",
        "model:torus(dims=4x4,hosts=2)", "model:dragonfly(p=2,a=3,h=1)"}) {
    PlacementScene scene = MakeScene(source);
    OccupyAtRandom(scene, 0.3, rng);
    PlacementRequest request;
    request.constraints.host_count = 6;
    request.objective = DefaultObjective();
    const auto open = FindOpenHosts(*scene.index, scene.occupancy, request.constraints);
    ASSERT_TRUE(open.ok()) << open.status();
    const auto scopes = FindScopes(*scene.index, *open, request.constraints);
    const auto counts = AnyCounts(*scene.index, *open, scopes.front(), request.constraints);
    ASSERT_TRUE(counts.has_value());
    std::vector<uint32_t> all(open->leaves.size());
    std::iota(all.begin(), all.end(), 0);
    const LeafField field(*scene.index, *open, request, {}, all);
    CountState state(field);
    state.Assign(*counts);
    const double before = CutOf(field, state);
    EXPECT_NEAR(before, NaiveCut(scene, *open, *counts), 1e-5);
    uint64_t patience = 100'000;
    ImproveCut(field, state, patience);
    const double after = CutOf(field, state);
    EXPECT_NEAR(after, NaiveCut(scene, *open, state.Counts()), 1e-5);
    EXPECT_LE(after, before + 1e-9);
    uint32_t hosts = 0;
    for (const auto& [position, count] : state.Counts()) hosts += count;
    EXPECT_EQ(hosts, 6U);
  }
}

}  // namespace
}  // namespace coppice::rank_order_test
