// The searches over sparse patterns: that a change costs what its delta says, whatever the form of
// the distances and the directions of the pattern, and that no search loses a rank, overfills a
// place or makes anything worse.
#include "daemon/mapping/search/sparse/sparse_search.h"

#include <gtest/gtest.h>

#include <set>

#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"
#include "tests/unit/mapping/routed_problems.h"

namespace coppice::sparse_search_test {
namespace {

struct Case {
  const char* name;
  MappingProblem (*make)(uint64_t seed);
};

MappingProblem OnLevels(uint64_t seed) {
  MappingProblem problem;
  problem.pattern = RandomPattern(40, 0.1, seed);
  problem.places = Places::Numbered(24, 2).value();
  problem.distances = PlaceDistances::Uniform({2, 3, 4}, {1, 10, 100}).value();
  problem.objective = {.qap_cost = 1};
  return problem;
}

MappingProblem OnTorus(uint64_t seed) {
  return ProblemOnModel("torus(dims=4x4x2)", 32, 1, RandomPattern(30, 0.15, seed));
}

MappingProblem OnFatTree(uint64_t seed) {
  return ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=3)", 12, 3,
                        RandomPattern(36, 0.15, seed));
}

// Asymmetric, and places that are not at distance 0 from themselves.
MappingProblem OnMatrix(uint64_t seed) {
  Xoshiro random(seed);
  std::vector<double> distances(15 * 15);
  for (double& d : distances) d = random.Below(30);
  std::vector<Pattern::Entry> entries;
  for (uint32_t i = 0; i < 80; ++i) {
    entries.push_back({random.Below(13), random.Below(13), 1.0 + random.Below(9), 1});
  }
  return ProblemOnMatrix(std::move(distances), Pattern::Make(13, std::move(entries)).value());
}

// Over tables that lead one way round, so that directions count in the classes of switches, too.
MappingProblem OnOneWayRing(uint64_t seed) {
  MappingProblem problem = ProblemOnOneWayRing(6, RandomPattern(20, 0.2, seed));
  problem.objective = {.qap_cost = 1};
  return problem;
}

class SparseSearch : public ::testing::TestWithParam<Case> {
 protected:
  static double Full(const MappingProblem& problem, const Seats& seats) {
    return QapCost(*problem.pattern, *problem.distances, MappingOf(seats));
  }
  static void ExpectAdmissible(const MappingProblem& problem, const Seats& seats) {
    EXPECT_TRUE(CheckMapping(*problem.places, problem.rank_count(), MappingOf(seats)).ok());
  }
};

TEST_P(SparseSearch, CountsEveryChangeAsFullEvaluationDoes) {
  const uint64_t seed = TestSeed();
  const MappingProblem problem = GetParam().make(seed);
  const auto sparse = MakeSparseProblem(problem).value();
  Occupants occupants(sparse->capacities, PlacesOf(problem.present()));
  Xoshiro random(seed);
  const uint32_t ranks = problem.rank_count(), places = problem.places->count();
  for (int i = 0; i < (FullTier() ? 20000 : 500); ++i) {
    const double before = Full(problem, occupants.seats());
    const uint32_t u = random.Below(ranks), w = random.Below(ranks), to = random.Below(places);
    double delta = 0;
    VisitCost(*sparse->distances, sparse->graph, [&](const auto& cost) {
      ASSERT_NEAR(CostOf(cost, occupants.seats()), before, 1e-6);
      const Seats& seats = occupants.seats();
      if (i % 2 == 0 && seats[u] != seats[w]) {
        delta = SwapDelta(cost, seats, u, w);
      } else if (i % 2 != 0 && occupants.free(to) > 0 && to != seats[u]) {
        delta = MoveDelta(cost, seats, u, to);
      }
    });
    if (i % 2 == 0 && occupants.seats()[u] != occupants.seats()[w]) {
      occupants.Swap(u, w);
    } else if (i % 2 != 0 && occupants.free(to) > 0 && to != occupants.seats()[u]) {
      occupants.Move(u, to);
    }
    ASSERT_NEAR(Full(problem, occupants.seats()) - before, delta, 1e-6) << "change " << i;
    ExpectAdmissible(problem, occupants.seats());
  }
}

TEST_P(SparseSearch, GainsWhatItSaysAndKeepsCapacities) {
  const uint64_t seed = TestSeed();
  const MappingProblem problem = GetParam().make(seed);
  const auto sparse = MakeSparseProblem(problem).value();
  const Seats start = PlacesOf(problem.present());
  const double before = Full(problem, start);
  const auto expect = [&](const char* what, double gained, const Seats& seats) {
    SCOPED_TRACE(what);
    ExpectAdmissible(problem, seats);
    EXPECT_GE(gained, 0);
    EXPECT_NEAR(before - Full(problem, seats), gained, 1e-6 * before);
  };
  Seats seats = start;
  expect("swaps", SwapUntilLocalOptimum(*sparse, {seed}, {}, seats), seats);
  seats = start;
  expect("moves", MoveToBetterPlaces(*sparse, sparse->graph, seed, {}, seats), seats);
  seats = start;
  expect("annealing", Anneal(*sparse, {seed, 0.3, 200}, {}, seats), seats);
  seats = start;
  expect("levels", RefineOnAllLevels(*sparse, seed, nullptr, {}, seats), seats);
}

TEST_P(SparseSearch, CutsAlongTheGroupsWithinTheCapacities) {
  const MappingProblem problem = GetParam().make(TestSeed());
  const auto sparse = MakeSparseProblem(problem).value();
  for (const uint32_t tries : {1u, 3u}) {
    for (const bool pack : {true, false}) {
      MultisectionOptions options;
      options.pack = pack;
      options.tries = tries;
      options.cycles = options.combinations = tries - 1;
      ExpectAdmissible(problem,
                       Multisect(sparse->graph.links, sparse->groups, options, {}).value());
    }
  }
}

TEST_P(SparseSearch, GroupsHoldEveryPlaceOnce) {
  const MappingProblem problem = GetParam().make(1);
  const auto sparse = MakeSparseProblem(problem).value();
  const PlaceGroups& groups = sparse->groups;
  uint64_t capacity = 0;
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    const PlaceGroups::Node& leaf = groups.nodes[groups.leaf[p]];
    EXPECT_EQ(leaf.child_count, 0u);
    EXPECT_EQ(groups.order[leaf.begin], p);
    capacity += leaf.capacity;
    bool itself = false;
    uint32_t near = 0;
    sparse->near.ForEach(p, 8, [&](uint32_t q) {
      itself = itself || q == p;
      ++near;
    });
    EXPECT_TRUE(itself);
    EXPECT_GE(near, 8u);
  }
  EXPECT_EQ(groups.nodes[0].capacity, capacity);
  for (uint32_t n = 0; n < groups.nodes.size(); ++n) {
    const PlaceGroups::Node& node = groups.nodes[n];
    EXPECT_NE(node.child_count, 1u);
    uint32_t at = node.begin;
    for (uint32_t i = 0; i < node.child_count; ++i) {
      const PlaceGroups::Node& child = groups.nodes[node.first_child + i];
      EXPECT_EQ(child.parent, n);
      EXPECT_EQ(child.begin, at);
      at = child.end;
    }
    if (node.child_count > 0) {
      EXPECT_EQ(at, node.end);
    }
  }
}

TEST_P(SparseSearch, CostsTheSameOnEveryLevel) {
  const uint64_t seed = TestSeed();
  const MappingProblem problem = GetParam().make(seed);
  const auto sparse = MakeSparseProblem(problem).value();
  Xoshiro random(seed);
  // All on a few places, so that there is something to join.
  Seats seats;
  for (uint32_t u = 0; u < problem.rank_count(); ++u) seats.push_back(random.Below(3));
  const std::vector<uint64_t> keys(seats.begin(), seats.end());
  const std::vector<uint32_t> coarse_of = MatchNeighbours(sparse->graph, keys, 8, random);
  const SparseGraph coarse = Contract(sparse->graph, coarse_of, sparse->has_self_distances);
  EXPECT_LT(coarse.vertex_count(), problem.rank_count());
  Seats coarse_seats(coarse.vertex_count());
  for (uint32_t u = 0; u < seats.size(); ++u) coarse_seats[coarse_of[u]] = seats[u];
  for (uint32_t u = 0; u < seats.size(); ++u) EXPECT_EQ(coarse_seats[coarse_of[u]], seats[u]);
  VisitCost(*sparse->distances, coarse, [&](const auto& cost) {
    EXPECT_NEAR(CostOf(cost, coarse_seats), Full(problem, seats), 1e-6);
  });
}

// Level after level until nothing is left to join: costs and costs of moves, in both directions.
TEST_P(SparseSearch, CountsMovesOfClustersAsFullEvaluationDoes) {
  const MappingProblem problem = GetParam().make(TestSeed());
  const auto sparse = MakeSparseProblem(problem).value();
  const uint32_t places = problem.places->count();
  Xoshiro random(TestSeed());
  Seats seats;  // capacities do not matter to costs
  for (uint32_t u = 0; u < problem.rank_count(); ++u) seats.push_back(random.Below(2));
  SparseGraph graph = sparse->graph;
  std::vector<uint32_t> vertex_of(problem.rank_count());
  for (uint32_t u = 0; u < problem.rank_count(); ++u) vertex_of[u] = u;
  uint32_t levels = 0;
  for (;; ++levels) {
    Seats coarse(graph.vertex_count());
    for (uint32_t u = 0; u < seats.size(); ++u) coarse[vertex_of[u]] = seats[u];
    EXPECT_EQ(graph.out.empty(), sparse->distances->symmetric());
    for (int i = 0; i < 50; ++i) {
      const uint32_t c = random.Below(graph.vertex_count()), to = random.Below(places);
      Seats moved = seats;
      for (uint32_t u = 0; u < seats.size(); ++u) {
        if (vertex_of[u] == c) moved[u] = to;
      }
      VisitCost(*sparse->distances, graph, [&](const auto& cost) {
        EXPECT_NEAR(CostOf(cost, coarse), Full(problem, seats), 1e-6);
        EXPECT_NEAR(MoveDelta(cost, coarse, c, to), Full(problem, moved) - Full(problem, seats),
                    1e-6)
            << "level " << levels;
      });
    }
    const std::vector<uint64_t> keys(coarse.begin(), coarse.end());
    const std::vector<uint32_t> coarse_of = MatchNeighbours(graph, keys, 64, random);
    SparseGraph next = Contract(graph, coarse_of, sparse->has_self_distances);
    if (next.vertex_count() == graph.vertex_count()) break;
    for (uint32_t& vertex : vertex_of) vertex = coarse_of[vertex];
    graph = std::move(next);
  }
  EXPECT_GE(levels, 2u);
}

INSTANTIATE_TEST_SUITE_P(Forms, SparseSearch,
                         ::testing::Values(Case{"levels", OnLevels}, Case{"torus", OnTorus},
                                           Case{"fat_tree", OnFatTree}, Case{"matrix", OnMatrix},
                                           Case{"one_way_ring", OnOneWayRing}),
                         [](const auto& entry) { return std::string(entry.param.name); });

TEST(PlaceGroups, AreTheLevelsOfAUniformHierarchyAndOfAFatTree) {
  const auto places = Places::Numbered(24, 1).value();
  const auto levels = PlaceDistances::Uniform({2, 3, 4}, {1, 10, 100}).value();
  const PlaceGroups uniform = MakePlaceGroups(*places, *levels, nullptr);
  EXPECT_TRUE(uniform.exact);
  EXPECT_EQ(uniform.nodes[0].child_count, 4u);
  EXPECT_EQ(uniform.nodes[1].child_count, 3u);
  EXPECT_EQ(uniform.nodes.size(), 1u + 4 + 12 + 24);

  const MappingProblem tree =
      ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=3)", 12, 1, RingPattern(12, 1));
  const PlaceGroups leaves = MakePlaceGroups(*tree.places, *tree.distances, nullptr);
  EXPECT_TRUE(leaves.exact);
  EXPECT_EQ(leaves.nodes.size(), 1u + 4 + 12);
}

TEST(PlaceGroups, HalveATorus) {
  const MappingProblem torus = ProblemOnModel("torus(dims=4x4x4)", 64, 1, RingPattern(64, 1));
  const PlaceGroups groups =
      MakePlaceGroups(*torus.places, *torus.distances, torus.snapshot->hierarchy.get());
  EXPECT_FALSE(groups.exact);
  EXPECT_EQ(groups.nodes[0].child_count, 2u);
  EXPECT_EQ(groups.nodes[1].capacity, 32u);
}

TEST(Multisect, PacksOrSpreadsWhatFillsAQuarter) {
  MappingProblem problem = OnLevels(1);
  problem.pattern = GridPattern(3, 4, 5);
  const auto sparse = MakeSparseProblem(problem).value();
  const auto groups_used = [&](bool pack) {
    MultisectionOptions options;
    options.pack = pack;
    const Seats seats = Multisect(sparse->graph.links, sparse->groups, options, {}).value();
    std::set<uint32_t> used;
    for (const uint32_t p : seats) used.insert(p / 6);
    return used.size();
  };
  EXPECT_EQ(groups_used(true), 1u);
  EXPECT_EQ(groups_used(false), 4u);
}

TEST(SwapUntilLocalOptimum, PutsAShuffledGridInOrderWithAnnealing) {
  MappingProblem problem;
  problem.pattern = GridPattern(8, 8, 5);
  problem.places = Places::Numbered(64, 1).value();
  problem.distances = PlaceDistances::Uniform({4, 4, 4}, {1, 10, 100}).value();
  problem.objective = {.qap_cost = 1};
  const auto sparse = MakeSparseProblem(problem).value();
  Seats seats = PlacesOf(problem.present());
  Xoshiro random(3);
  for (uint32_t i = 64; i > 1; --i) std::swap(seats[i - 1], seats[random.Below(i)]);
  Anneal(*sparse, {1, 0.5, 20000}, {}, seats);
  SwapUntilLocalOptimum(*sparse, {}, {}, seats);
  // 2x2 blocks in 4x4 blocks: 64 edges 1 apart, 32 are 10 apart, 16 are 100 apart, each both ways.
  EXPECT_EQ(QapCost(*problem.pattern, *problem.distances, MappingOf(seats)),
            2 * 5 * (64 * 1 + 32 * 10 + 16 * 100));
}

}  // namespace
}  // namespace coppice::sparse_search_test
