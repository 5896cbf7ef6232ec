// What no order avoids, against all orders: bytes that leave the ranks of one host, the bound with
// ports of any speed; and the groups of places by what joins them.
#include "daemon/mapping/search/links/congestion_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

#include "daemon/mapping/search/groups/groups.h"
#include "daemon/mapping/search/links/least_cut.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"
#include "tests/unit/mapping/routed_problems.h"

namespace coppice::congestion_bound_test {
namespace {

// Of all sets of at most `room` ranks with `rank` in them.
double LeastOfAllSets(const Pattern& pattern, TrafficDirection direction, uint32_t room,
                      uint32_t rank) {
  double least = std::numeric_limits<double>::infinity();
  for (uint32_t set = 0; set < (1u << pattern.rank_count()); ++set) {
    if ((set >> rank & 1) == 0 || std::popcount(set) > static_cast<int>(room)) continue;
    double bytes = 0;
    for (uint32_t u = 0; u < pattern.rank_count(); ++u) {
      if ((set >> u & 1) == 0) continue;
      for (const Exchange& e : pattern.exchanges(u)) {
        if ((set >> e.peer & 1) != 0) continue;
        bytes += direction == TrafficDirection::kOut ? e.out_bytes : e.in_bytes;
      }
    }
    least = std::min(least, bytes);
  }
  return least;
}

TEST(LeastLeaving, IsTheLeastOfAllSets) {
  for (uint64_t round = 0; round < (FullTier() ? 400u : 40u); ++round) {
    const auto ranks = static_cast<uint32_t>(3 + round % 8);
    const auto room = static_cast<uint32_t>(1 + round % 5);
    const auto pattern = RandomPattern(ranks, round % 2 == 0 ? 0.3 : 0.8, TestSeed() + round);
    const auto direction = round % 3 == 0 ? TrafficDirection::kIn : TrafficDirection::kOut;
    LeastLeaving leaving(*pattern, direction, room);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const double least = LeastOfAllSets(*pattern, direction, room, rank);
      uint32_t many = 1000000, few = 3;
      EXPECT_DOUBLE_EQ(leaving.AtLeast(rank, -1, many), least) << round << " " << rank;
      EXPECT_GT(many, 0u);
      EXPECT_LE(leaving.AtLeast(rank, -1, few), least);
      EXPECT_LE(leaving.AtLeast(rank, least, many), least);
      EXPECT_LE(leaving.AloneAtLeast(rank), least);
    }
  }
}

// Measured load makes every channel's capacity another one.
MappingProblem UnevenProblem(uint64_t round, uint64_t seed) {
  const char* const models[] = {"fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", "torus(dims=2x3)",
                                "dragonfly()"};
  const auto ranks = static_cast<uint32_t>(4 + round % 4);
  const auto per_host = static_cast<uint32_t>(1 + round % 3);
  MappingProblem problem = ProblemOnModel(models[round % 3], (ranks + per_host) / per_host,
                                          per_host, RandomPattern(ranks, 0.4, seed));
  problem.traffic = static_cast<TrafficModel>(round / 3 % 2);
  problem.objective = {.congestion = 1};
  problem.use_load = true;
  Xoshiro random(seed);
  std::vector<float> load(problem.snapshot->fabric->channel_count());
  for (float& l : load) l = static_cast<float>(random.Unit());
  problem.snapshot = std::make_shared<Snapshot>(
      Snapshot{problem.snapshot->fabric, problem.snapshot->routes, problem.snapshot->hierarchy,
               std::make_shared<const LinkLoad>(load)});
  return problem;
}

TEST(CongestionBound, IsBelowAllMappingsOverPortsOfAnySpeed) {
  for (uint64_t round = 0; round < (FullTier() ? 120u : 12u); ++round) {
    const MappingProblem problem = UnevenProblem(round, TestSeed() + round);
    double least = std::numeric_limits<double>::infinity();
    ForEachMapping(problem, [&](const Mapping& mapping) {
      least = std::min(least, *MeasureOf(problem, mapping).max_congestion);
    });
    EXPECT_LE(FindCongestionBound(problem).value, least * (1 + 1e-12)) << round;
  }
}

// Two rings of three, three ranks a host: nothing need leave. With two a host, one rank of each
// ring sits apart and both its cables leave its host, and as much the other's.
TEST(CongestionBound, KnowsWhatRanksBesideEachOtherSaveTogether) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t r = 0; r < 6; ++r) entries.push_back({r, r / 3 * 3 + (r + 1) % 3, 100, 1});
  const auto pattern = Pattern::Make(6, std::move(entries)).value();
  MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=2,spines=2,hosts-per-leaf=2,speeds=hdr)", 3, 3, pattern);
  problem.objective = {.congestion = 1};
  EXPECT_EQ(FindCongestionBound(problem).value, 0);
  problem.places =
      Places::OfEndpoints(
          *problem.snapshot->fabric,
          std::vector<EndpointIndex>{EndpointIndex(0), EndpointIndex(1), EndpointIndex(2)}, 2)
          .value();
  EXPECT_DOUBLE_EQ(FindCongestionBound(problem).value, 100.0 / 200);
}

// Every rank of a ring sends two of 100 bytes over its own port, whosever the next port is: those
// of one host are on two switches.
TEST(CongestionBound, KnowsThatPortsOnTwoSwitchesSaveNothing) {
  MappingProblem problem = ProblemOnHostsOfTwoLeaves(2, 1, RingPattern(4, 100));
  problem.objective = {.congestion = 1};
  EXPECT_DOUBLE_EQ(FindCongestionBound(problem).value, 200.0 / 200);
  double least = std::numeric_limits<double>::infinity();
  ForEachMapping(problem, [&](const Mapping& mapping) {
    least = std::min(least, *MeasureOf(problem, mapping).max_congestion);
  });
  EXPECT_DOUBLE_EQ(least, 200.0 / 200);
}

//   0 1   2 3       switches, in pairs of three cables; pairs are joined by one
//   ===---===
TEST(CapacityGroups, AreWhatWideTrunksJoin) {
  FabricPlan plan;
  plan.switches = 4;
  plan.cables = {{0, 1}, {0, 1}, {0, 1}, {2, 3}, {2, 3}, {2, 3}, {1, 2}};
  plan.hosts = {{0}, {3}, {2}, {1}, {2}};
  const FabricPtr fabric = MakeFabric(plan);
  MappingProblem problem;
  problem.snapshot = MakeSnapshot(fabric, nullptr).value();
  std::vector<EndpointIndex> hosts;
  for (uint32_t h = 0; h < 5; ++h) hosts.push_back(fabric->endpoints_of_host(HostIndex(h))[0]);
  problem.places = Places::OfEndpoints(*fabric, hosts, 2).value();
  problem.pattern = RingPattern(10, 1);
  const std::vector<std::vector<uint32_t>> levels = CapacityLevels(problem);
  ASSERT_EQ(levels.size(), 1u);
  EXPECT_EQ(levels[0], (std::vector<uint32_t>{0, 0, 2, 2}));
  const PlaceGroups groups = GroupByCapacity(problem);
  ASSERT_EQ(groups.nodes[0].child_count, 2u);
  const PlaceGroups::Node& roomiest = groups.nodes[groups.nodes[0].first_child];
  EXPECT_EQ(roomiest.capacity, 6u);
  std::vector<uint32_t> places(groups.places(roomiest).begin(), groups.places(roomiest).end());
  std::sort(places.begin(), places.end());
  EXPECT_EQ(places, (std::vector<uint32_t>{1, 2, 4}));
}

TEST(CapacityGroups, AreNoneWhereAllTrunksAreAlike) {
  for (const char* model :
       {"fat-tree(leaves=6,spines=3,hosts-per-leaf=2)", "torus(dims=4x4)", "torus(dims=5x4x3)"}) {
    const MappingProblem problem = ProblemOnModel(model, 4, 1, RingPattern(4, 1));
    EXPECT_TRUE(CapacityLevels(problem).empty()) << model;
    const PlaceGroups groups = GroupByCapacity(problem);
    EXPECT_EQ(groups.nodes[0].capacity, 4u);
  }
}

}  // namespace
}  // namespace coppice::congestion_bound_test
