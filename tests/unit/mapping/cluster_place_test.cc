// Wang's three placements of clusters on nodes, counted by hand, the rule that chooses among them,
// and the exchange of equal clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/cluster/clusters.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::cluster_place_test {
namespace {

constexpr PlacementScheme kPlain = PlacementScheme::kPlain;
constexpr PlacementScheme kFirstFit = PlacementScheme::kFirstFit;
constexpr PlacementScheme kMaxReservation = PlacementScheme::kMaxReservation;

// Clusters of consecutive ranks, the first of them 'a', as what sits on the cores of every node:
// "aaab bbc." is two nodes of four.
std::string Placed(const std::vector<uint32_t>& sizes, PlacementScheme scheme,
                   const std::vector<uint32_t>& node_cores) {
  Clusters clusters;
  uint32_t rank = 0;
  for (const uint32_t size : sizes) {
    clusters.emplace_back();
    for (uint32_t i = 0; i < size; ++i) clusters.back().push_back(rank++);
  }
  std::string cores(std::accumulate(node_cores.begin(), node_cores.end(), 0U), '.');
  const auto placed = PlaceClusters(clusters, scheme, node_cores);
  for (uint32_t c = 0; c < placed.size(); ++c) {
    EXPECT_EQ(placed[c].size(), sizes[c]);
    EXPECT_TRUE(std::is_sorted(placed[c].begin(), placed[c].end()));
    for (const uint32_t core : placed[c]) {
      EXPECT_EQ(cores[core], '.');
      cores[core] = static_cast<char>('a' + c);
    }
  }
  for (size_t n = node_cores.size() - 1, at = cores.size(); n > 0; --n) {
    at -= node_cores[n];
    cores.insert(at, " ");
  }
  return cores;
}

// The three situations of figure 4: clusters of about one size; few large ones and noise; between.
TEST(PlaceClusters, PlainTakesOneAfterTheOther) {
  EXPECT_EQ(Placed({4, 4, 4}, kPlain, {4, 4, 4}), "aaaa bbbb cccc");
  EXPECT_EQ(Placed({2, 2, 2, 2}, kPlain, {4, 4}), "aabb ccdd");
  EXPECT_EQ(Placed({3, 3, 2}, kPlain, {4, 4}), "aaab bbcc");
  EXPECT_EQ(Placed({1, 6, 1}, kPlain, {4, 4}), "abbb bbbc");
}

TEST(PlaceClusters, FirstFitKeepsLargeOnesWholeAndSplitsWhatIsLeft) {
  EXPECT_EQ(Placed({1, 3, 1, 3}, kFirstFit, {4, 4}), "bbba dddc");
  EXPECT_EQ(Placed({3, 3, 2}, kFirstFit, {4, 4}), "aaac bbbc");  // c fits nowhere
  EXPECT_EQ(Placed({2, 4, 2}, kFirstFit, {4, 4}), "bbbb aacc");
  // A node that is wholly idle takes any cluster and goes on into the next.
  EXPECT_EQ(Placed({2, 6}, kFirstFit, {4, 4}), "bbbb bbaa");
  EXPECT_EQ(Placed({2, 3, 6}, kFirstFit, {4, 4, 4}), "cccc ccaa bbb.");
  // Equal ones keep their order.
  EXPECT_EQ(Placed({2, 2, 2}, kFirstFit, {4, 4}), "aabb cc..");
}

TEST(PlaceClusters, MostReservationGoesBackWhereThatKeepsANodeIdle) {
  // At node 1 b would use nodes 1 and 2; from node 0's idle cores on it needs node 1 only.
  EXPECT_EQ(Placed({2, 6}, kMaxReservation, {4, 4, 4}), "aabb bbbb ....");
  // Here node 1 is used either way: b stays in one piece.
  EXPECT_EQ(Placed({3, 3}, kMaxReservation, {4, 4, 4}), "aaa. bbb. ....");
  EXPECT_EQ(Placed({3, 3, 1, 1}, kMaxReservation, {4, 4}), "aaac bbbd");
  // Not sorted: a is placed before the larger b.
  EXPECT_EQ(Placed({1, 4, 3}, kMaxReservation, {4, 4}), "accc bbbb");
  EXPECT_EQ(Placed({3, 3, 2}, kMaxReservation, {4, 4}), "aaac bbbc");
}

TEST(PlaceClusters, TakesNodesOfUnequalSizes) {
  EXPECT_EQ(Placed({3, 5, 2}, kPlain, {2, 6, 2}), "aa abbbbb cc");
  EXPECT_EQ(Placed({3, 5, 2}, kFirstFit, {2, 6, 2}), "aa bbbbba cc");
  EXPECT_EQ(Placed({2, 5}, kMaxReservation, {2, 6, 2}), "aa bbbbb. ..");
}

TEST(PlaceClusters, PutsEveryRankSomewhereWhateverTheSizes) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + (FullTier() ? 2000 : 200); ++seed) {
    Xoshiro random(seed);
    std::vector<uint32_t> nodes, sizes;
    uint32_t room = 0;
    for (uint32_t n = 1 + random.Below(6); n > 0; --n) room += nodes.emplace_back(random.Below(7));
    while (room > 0 && sizes.size() < 20) {
      sizes.push_back(1 + random.Below(std::min(room, 9U)));
      room -= sizes.back();
      if (random.Below(10) == 0) break;
    }
    for (const PlacementScheme scheme : {kPlain, kFirstFit, kMaxReservation}) {
      const std::string cores = Placed(sizes, scheme, nodes);
      const auto ranks = std::accumulate(sizes.begin(), sizes.end(), 0U);
      EXPECT_EQ(std::count_if(cores.begin(), cores.end(), [](char c) { return c >= 'a'; }), ranks);
    }
  }
}

TEST(ChooseScheme, FollowsDeviationAndNumber) {
  const PlacementRule rule = {1, 4, 10};
  EXPECT_EQ(ChooseScheme(0, 8, rule), kPlain);
  EXPECT_EQ(ChooseScheme(0.9, 1000, rule), kPlain);
  EXPECT_EQ(ChooseScheme(1, 8, rule), kMaxReservation);
  EXPECT_EQ(ChooseScheme(4, 8, rule), kMaxReservation);
  EXPECT_EQ(ChooseScheme(4.1, 8, rule), kFirstFit);
  EXPECT_EQ(ChooseScheme(4.1, 10, rule), kMaxReservation);
}

// Figure 5: two nodes, a chunk and noise each, the noise on the wrong one.
TEST(ExchangeClusters, BringsNoiseToItsChunk) {
  const Clusters clusters = {{0, 1, 2}, {3}, {4, 5, 6}, {7}};
  const auto pattern = Pattern::Make(8, {{0, 7, 5, 1}, {4, 3, 5, 1}}).value();
  MappingProblem problem;
  problem.pattern = pattern;
  problem.places = Places::Numbered(2, 4).value();
  problem.distances = PlaceDistances::Uniform({2}, {1}).value();
  problem.objective = {.qap_cost = 1};
  const auto sparse = MakeSparseProblem(problem).value();
  Seats seats = {0, 0, 0, 0, 1, 1, 1, 1};
  const auto exchange = [&](uint32_t threshold) {
    return ExchangeClusters(sparse->graph, *sparse->distances, clusters, {threshold, 100, 1}, {},
                            seats);
  };
  EXPECT_EQ(exchange(1).noise, 0u);
  const ClusterExchanges done = exchange(3);
  EXPECT_EQ(done.noise, 2u);
  EXPECT_EQ(done.made, 1u);
  EXPECT_DOUBLE_EQ(done.gained, 10);
  EXPECT_EQ(seats, (Seats{0, 0, 0, 1, 1, 1, 1, 0}));
}

// All forms of distances, directions and loops: what it says is what a full count says, and no
// exchange of two equal clusters is left that gains.
TEST(ExchangeClusters, GainsWhatItSaysAndLeavesNothing) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + (FullTier() ? 100 : 10); ++seed) {
    Xoshiro random(seed);
    std::vector<double> distances(12 * 12);
    for (double& d : distances) d = random.Below(30);
    if (seed % 2 == 0) {
      for (uint32_t i = 0; i < 144; ++i) distances[i] = distances[i % 12 * 12 + i / 12];
      for (uint32_t i = 0; i < 12; ++i) distances[i * 13] = 0;
    }
    const MappingProblem problem = ProblemOnMatrix(distances, RandomPattern(12, 0.4, seed));
    const auto sparse = MakeSparseProblem(problem).value();
    // From first ranks alone it knows symmetric distances between clusters of one rank.
    Clusters clusters = {{0, 3}, {1, 2, 4}, {5}, {6, 7}, {8}, {9, 10, 11}};
    if (seed % 2 == 0) {
      clusters.clear();
      for (uint32_t r = 0; r < 12; ++r) clusters.push_back({r});
    }
    Seats seats = PlacesOf(problem.present());
    const auto cost = [&](const Seats& s) {
      return QapCost(*problem.pattern, *problem.distances, MappingOf(s));
    };
    const double before = cost(seats);
    const ClusterExchanges done = ExchangeClusters(sparse->graph, *sparse->distances, clusters,
                                                   {13, 100000, seed}, {}, seats);
    EXPECT_NEAR(before - cost(seats), done.gained, 1e-6);
    EXPECT_TRUE(CheckMapping(*problem.places, 12, MappingOf(seats)).ok());
    for (const auto& a : clusters) {
      for (const auto& b : clusters) {
        if (&a == &b || a.size() != b.size()) continue;
        Seats other = seats;
        for (size_t i = 0; i < a.size(); ++i) std::swap(other[a[i]], other[b[i]]);
        EXPECT_GE(cost(other), cost(seats) - 1e-9) << seed;
      }
    }
  }
}

TEST(ExchangeClusters, DrawsPairsAtRandomWhereThereAreTooManyAndStopsWhenItMust) {
  const MappingProblem problem =
      ProblemOnMatrix(std::vector<double>(16 * 16, 1.0), RandomPattern(16, 0.3, TestSeed()));
  const auto sparse = MakeSparseProblem(problem).value();
  Clusters single;
  for (uint32_t r = 0; r < 16; ++r) single.push_back({r});
  Seats seats = PlacesOf(problem.present());
  const SearchControl spent([] { return true; }, nullptr);
  EXPECT_EQ(
      ExchangeClusters(sparse->graph, *sparse->distances, single, {2, 20, 1}, {}, seats).tried,
      20u);
  EXPECT_EQ(
      ExchangeClusters(sparse->graph, *sparse->distances, single, {2, 500, 1}, spent, seats).tried,
      0u);
}

}  // namespace
}  // namespace coppice::cluster_place_test
