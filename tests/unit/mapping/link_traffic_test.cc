// Traffic over channels against slow counts: routes walked pair by pair, shortest paths listed one
// by one.
#include "daemon/mapping/link_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search/links/traffic_state.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::link_traffic_test {
namespace {

using Path = std::vector<ChannelIndex>;

Mapping Shuffled(const MappingProblem& problem, uint64_t seed) {
  AlgorithmOptions options;
  options.seed = seed;
  return RunAlgorithm(**FindMappingAlgorithm("random"), problem, {}, options, {})->mapping;
}

// Calls visit(from place's endpoint, to place's endpoint, bytes) for every pair that uses links.
void ForEachPair(const MappingProblem& problem, const Mapping& mapping,
                 const std::function<void(EndpointIndex, EndpointIndex, double)>& visit) {
  const Fabric& fabric = *problem.snapshot->fabric;
  for (uint32_t r = 0; r < problem.rank_count(); ++r) {
    for (const Exchange& exchange : problem.pattern->exchanges(r)) {
      const EndpointIndex from = problem.places->endpoint(mapping[r]);
      const EndpointIndex to = problem.places->endpoint(mapping[exchange.peer]);
      const bool stays = fabric.host(from) == fabric.host(to) &&
                         fabric.attached_switch(from) == fabric.attached_switch(to);
      if (!stays && exchange.out_bytes > 0) {
        visit(from, to, exchange.out_bytes);
      }
    }
  }
}

std::vector<double> WalkedOneByOne(const MappingProblem& problem, const Mapping& mapping) {
  const Fabric& fabric = *problem.snapshot->fabric;
  std::vector<double> bytes(fabric.channel_count(), 0.0);
  ForEachPair(problem, mapping, [&](EndpointIndex from, EndpointIndex to, double weight) {
    Path path;
    ASSERT_TRUE(
        problem.snapshot->routes->Append(fabric.Vertex(from), fabric.Vertex(to), path).ok());
    for (const ChannelIndex c : path) bytes[c.value()] += weight;
  });
  return bytes;
}

// All shortest paths between two endpoints, by trying every simple path of that length.
std::vector<Path> AllShortestPaths(const MappingProblem& problem, EndpointIndex from,
                                   EndpointIndex to) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const uint32_t length =
      *problem.snapshot->routes->distances().Hops(fabric.Vertex(from), fabric.Vertex(to));
  std::vector<Path> paths;
  Path path;
  const std::function<void(VertexIndex)> go = [&](VertexIndex at) {
    if (path.size() == length) {
      if (at == fabric.Vertex(to)) paths.push_back(path);
      return;
    }
    for (const Channel& channel : fabric.channels(at)) {
      path.push_back(channel.index);
      go(channel.to);
      path.pop_back();
    }
  };
  go(fabric.Vertex(from));
  return paths;
}

std::vector<double> ListedOneByOne(const MappingProblem& problem, const Mapping& mapping) {
  std::vector<double> bytes(problem.snapshot->fabric->channel_count(), 0.0);
  ForEachPair(problem, mapping, [&](EndpointIndex from, EndpointIndex to, double weight) {
    const std::vector<Path> paths = AllShortestPaths(problem, from, to);
    for (const Path& path : paths) {
      const double share = weight / static_cast<double>(paths.size());
      for (const ChannelIndex c : path) bytes[c.value()] += share;
    }
  });
  return bytes;
}

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

struct Case {
  std::string model;
  uint32_t hosts, ranks_per_host;
};

class TrafficOnModels : public ::testing::TestWithParam<Case> {
 protected:
  MappingProblem Problem(uint64_t seed) const {
    const Case& c = GetParam();
    return ProblemOnModel(c.model, c.hosts, c.ranks_per_host,
                          RandomPattern(c.hosts * c.ranks_per_host, 0.3, seed));
  }
};

TEST_P(TrafficOnModels, OverRoutesIsWhatEachPairWalks) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + (FullTier() ? 50 : 5); ++seed) {
    const MappingProblem problem = Problem(seed);
    const Mapping mapping = Shuffled(problem, seed);
    EXPECT_EQ(CountLinkTraffic(problem, mapping)->bytes, WalkedOneByOne(problem, mapping));
  }
}

TEST_P(TrafficOnModels, OverEvenSharesIsThatOfAllShortestPaths) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + (FullTier() ? 20 : 2); ++seed) {
    MappingProblem problem = Problem(seed);
    problem.traffic = TrafficModel::kEvenShortestPaths;
    const Mapping mapping = Shuffled(problem, seed);
    const std::vector<double> expected = ListedOneByOne(problem, mapping);
    const std::vector<double> counted = CountLinkTraffic(problem, mapping)->bytes;
    for (size_t c = 0; c < expected.size(); ++c) EXPECT_NEAR(counted[c], expected[c], 1e-9);
  }
}

// The approximation uses as many links as even shares; each link carries whole flows.
TEST_P(TrafficOnModels, ApproximatelyTakesShortestPathsToo) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + (FullTier() ? 50 : 5); ++seed) {
    MappingProblem problem = Problem(seed);
    const Mapping mapping = Shuffled(problem, seed);
    problem.traffic = TrafficModel::kEvenShortestPaths;
    const LinkTraffic even = CountLinkTraffic(problem, mapping).value();
    problem.traffic = TrafficModel::kApproximate;
    const LinkTraffic approximate = CountLinkTraffic(problem, mapping).value();
    EXPECT_NEAR(Sum(approximate.bytes), Sum(even.bytes), 1e-9 * Sum(even.bytes));
    EXPECT_EQ(approximate.longest, even.longest);
    for (size_t c = 0; c < even.bytes.size(); ++c) {
      EXPECT_EQ(approximate.bytes[c], std::floor(approximate.bytes[c]));
      if (even.bytes[c] == 0) {
        EXPECT_EQ(approximate.bytes[c], 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, TrafficOnModels,
    ::testing::Values(Case{"fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8, 2},
                      Case{"torus(dims=3x4)", 12, 1}, Case{"torus(dims=2x2x3,hosts=2)", 20, 1},
                      Case{"hypercube(dims=3)", 8, 1}, Case{"dragonfly()", 12, 2},
                      Case{"hyperx()", 12, 1}));

// Two planes that no cable joins: between its two ports a host passes on by itself, and bytes that
// stay in a plane cross its switch.
TEST(LinkTraffic, IsNoneBetweenPortsOfOneHostThatNoCableJoins) {
  const FabricPtr fabric = MakeFabric({2, {}, {{0, 1}, {0, 1}}, {}});
  MappingProblem problem;
  problem.snapshot = MakeSnapshot(fabric, nullptr).value();
  problem.places = Places::OfEndpoints(*fabric, AllEndpoints(*fabric), 1).value();
  problem.distances = PlaceDistances::Matrix(4, std::vector<double>(16, 1.0)).value();
  problem.pattern = Pattern::Make(4, {{0, 1, 5, 1}, {1, 0, 5, 1}, {1, 3, 7, 1}}).value();
  problem.objective = {.congestion = 1};
  for (const TrafficModel model :
       {TrafficModel::kRoutes, TrafficModel::kEvenShortestPaths, TrafficModel::kApproximate}) {
    problem.traffic = model;
    const absl::StatusOr<LinkTraffic> traffic = CountLinkTraffic(problem, problem.present());
    ASSERT_TRUE(traffic.ok()) << traffic.status();
    EXPECT_EQ(Sum(traffic->bytes), 14);
    absl::StatusOr<TrafficState> state = TrafficState::Make(problem, problem.present(), false);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->Now().hop_bytes, 14);
    EXPECT_LE(FindCongestionBound(problem).value, state->Now().congestion);
  }
}

//     spine0   spine1        one host on each leaf sends to one on the next: the flows of one leaf
//      |   \  /   |          to the other's two hosts take a spine each
//     leaf0    leaf1
TEST(ApproximateTraffic, SpreadsFlowsOverEqualPaths) {
  MappingProblem problem = ProblemOnModel("fat-tree(leaves=2,spines=2,hosts-per-leaf=2)", 4, 1,
                                          Pattern::Make(4, {{0, 2, 6, 1}, {1, 3, 6, 1}}).value());
  problem.traffic = TrafficModel::kApproximate;
  const LinkTraffic traffic = CountLinkTraffic(problem, problem.present()).value();
  EXPECT_EQ(std::count(traffic.bytes.begin(), traffic.bytes.end(), 6.0), 8);
  EXPECT_EQ(*std::max_element(traffic.bytes.begin(), traffic.bytes.end()), 6.0);
}

TEST(ChannelCapacities, AreLowerByTheLoadButNeverNothing) {
  MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=2,spines=1,hosts-per-leaf=2)", 4, 1, RingPattern(4, 5));
  const Snapshot& old = *problem.snapshot;
  std::vector<float> load(old.fabric->channel_count(), 0.0F);
  load[0] = 0.25F;
  load[1] = 1.0F;
  problem.snapshot = std::make_shared<Snapshot>(
      Snapshot{old.fabric, old.routes, old.hierarchy, std::make_shared<const LinkLoad>(load)});
  const std::vector<double> whole = ChannelCapacities(problem);
  problem.use_load = true;
  const std::vector<double> left = ChannelCapacities(problem);
  EXPECT_DOUBLE_EQ(left[0], whole[0] * 0.75);
  EXPECT_DOUBLE_EQ(left[1], whole[1] * 0.01);
  EXPECT_DOUBLE_EQ(left[2], whole[2]);
}

}  // namespace
}  // namespace coppice::link_traffic_test
