// What an exchange costs, as every search counts it, against counting everything again naively:
// swaps and moves into free slots, over forwarding tables, links of unequal capacity, live load,
// several ranks a place, patterns and distances that differ by direction, all three models of
// traffic.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/links/traffic_state.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "tests/support/naive_measures.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"
#include "tests/unit/mapping/routed_problems.h"

namespace coppice::exchange_deltas_test {
namespace {

struct Kind {
  const char* name;
  MappingProblem (*make)(uint64_t seed);
};

MappingProblem Tables(uint64_t seed) {
  return ProblemOnPlafrim(20, 2, RandomPattern(36, 0.15, seed), seed);
}
MappingProblem OneWayRing(uint64_t seed) {
  return ProblemOnOneWayRing(5, RandomPattern(17, 0.3, seed));
}
// PERCS: links of 24, 5 and 10 GiB/s.
MappingProblem UnequalLinks(uint64_t seed) {
  return ProblemOnModel("percs(supernodes=1,d=0)", 32, 1, RandomPattern(30, 0.2, seed));
}
MappingProblem LoadedFatTree(uint64_t seed) {
  return WithLoad(ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8, 3,
                                 RandomPattern(20, 0.3, seed)),
                  seed);
}
MappingProblem HostsOfTwoLeaves(uint64_t seed) {
  return ProblemOnHostsOfTwoLeaves(4, 3, RandomPattern(20, 0.3, seed));
}
MappingProblem LoadedTables(uint64_t seed) { return WithLoad(Tables(seed), seed); }
// Each rank also talks to itself, over places that are not at distance 0 from themselves.
MappingProblem Matrix(uint64_t seed) {
  Xoshiro random(seed);
  std::vector<double> distances(16 * 16);
  for (double& d : distances) d = random.Below(30) * 0.25;
  std::vector<Pattern::Entry> entries;
  for (uint32_t i = 0; i < 90; ++i) {
    entries.push_back({random.Below(14), random.Below(14), 1.0 + random.Below(900), 1});
  }
  return ProblemOnMatrix(std::move(distances), Pattern::Make(14, std::move(entries)).value());
}
MappingProblem Hierarchy(uint64_t seed) {
  MappingProblem problem;
  problem.pattern = RandomPattern(21, 0.3, seed);
  problem.places = Places::Numbered(12, 2).value();
  problem.distances = PlaceDistances::Uniform({3, 4}, {1, 10}).value();
  problem.objective = {.qap_cost = 1};
  return problem;
}

const Kind kKinds[] = {{"tables", Tables},
                       {"one_way_ring", OneWayRing},
                       {"unequal_links", UnequalLinks},
                       {"loaded_fat_tree", LoadedFatTree},
                       {"hosts_of_two_leaves", HostsOfTwoLeaves},
                       {"loaded_tables", LoadedTables}};
const Kind kQapKinds[] = {{"tables", Tables},
                          {"one_way_ring", OneWayRing},
                          {"unequal_links", UnequalLinks},
                          {"hosts_of_two_leaves", HostsOfTwoLeaves},
                          {"matrix", Matrix},
                          {"hierarchy", Hierarchy}};

std::string NameOf(const Kind& kind) { return kind.name; }

class ExchangeDeltas : public ::testing::TestWithParam<Kind> {
 protected:
  const uint32_t steps_ = FullTier() ? 5000 : 200;
};

TEST(RoutedProblems, AreWhatTheyAreFor) {
  EXPECT_FALSE(OneWayRing(1).distances->symmetric());
  EXPECT_FALSE(OneWayRing(1).pattern->symmetric());
  EXPECT_EQ(Tables(1).snapshot->routes->kind(), RouteKind::kForwardingTables);
  const MappingProblem unequal = UnequalLinks(1);
  const Fabric& percs = *unequal.snapshot->fabric;
  bool are_unequal = false;
  for (uint32_t c = 1; c < percs.channel_count(); ++c) {
    are_unequal |= percs.capacity_gbps(ChannelIndex(c)) != percs.capacity_gbps(ChannelIndex(0));
  }
  EXPECT_TRUE(are_unequal);
}

class TrafficDeltas : public ExchangeDeltas {
 protected:
  void Walk(const MappingProblem& problem) {
    TrafficState state = TrafficState::Make(problem, problem.present(), true).value();
    NaiveEvaluator naive(problem);
    Xoshiro random(TestSeed());
    uint32_t moves = 0;
    for (uint32_t step = 0; step < steps_; ++step) {
      const uint32_t rank = random.Below(problem.rank_count());
      const uint32_t slot = random.Below(problem.places->slot_count());
      const uint32_t other = state.rank_in(slot);
      Mapping next = state.mapping();
      if (other != TrafficState::kNobody) next[other] = next[rank];
      next[rank] = problem.places->place_of_slot(slot);
      moves += other == TrafficState::kNobody;
      const NaiveMeasures expected = naive.Measure(next);
      const TrafficState::Values tried = state.Try(rank, slot);
      ASSERT_NEAR(tried.hop_bytes, expected.hop_bytes, 1e-9 * expected.hop_bytes);
      ASSERT_NEAR(tried.qap_cost, expected.qap_cost, 1e-9 * expected.qap_cost);
      if (expected.max_congestion >= 0) {
        ASSERT_NEAR(state.TriedCongestion(), expected.max_congestion,
                    1e-9 * expected.max_congestion);
        ASSERT_GE(tried.soft, expected.max_congestion * (1 - 1e-9));
      }
      if (random.Below(2) == 0) continue;
      state.Commit();
      ASSERT_EQ(state.mapping(), next);
      ASSERT_NEAR(state.Now().hop_bytes, expected.hop_bytes, 1e-9 * expected.hop_bytes);
    }
    EXPECT_GT(moves, 0u);
  }
};

TEST_P(TrafficDeltas, AreTheDifferenceOfNaiveCountsForEveryModel) {
  for (const TrafficModel model :
       {TrafficModel::kRoutes, TrafficModel::kEvenShortestPaths, TrafficModel::kApproximate}) {
    SCOPED_TRACE(std::string(ToString(model)));
    MappingProblem problem = GetParam().make(TestSeed());
    problem.traffic = model;
    Walk(problem);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TrafficDeltas, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return NameOf(kind.param); });

class QapDeltas : public ExchangeDeltas {};

TEST_P(QapDeltas, OfSparsePatternsAreTheDifferenceOfNaiveCounts) {
  MappingProblem problem = GetParam().make(TestSeed());
  problem.objective = {.qap_cost = 1};
  const auto sparse = MakeSparseProblem(problem).value();
  Occupants occupants(sparse->capacities, PlacesOf(problem.present()));
  NaiveEvaluator naive(problem);
  Xoshiro random(TestSeed());
  double cost = naive.Measure(problem.present()).qap_cost;
  uint32_t moves = 0;
  for (uint32_t step = 0; step < steps_; ++step) {
    const uint32_t u = random.Below(problem.rank_count());
    const uint32_t w = random.Below(problem.rank_count());
    const uint32_t to = random.Below(problem.places->count());
    const bool is_move = occupants.free(to) > 0 && to != occupants.seats()[u];
    if (!is_move && occupants.seats()[u] == occupants.seats()[w]) continue;
    const double delta = VisitCost(*sparse->distances, sparse->graph, [&](const auto& c) {
      return is_move ? MoveDelta(c, occupants.seats(), u, to)
                     : SwapDelta(c, occupants.seats(), u, w);
    });
    is_move ? occupants.Move(u, to) : occupants.Swap(u, w);
    moves += is_move;
    const Mapping now = MappingOf(occupants.seats());
    ASSERT_EQ(WhatIsWrong(problem, now), "");
    const double expected = naive.Measure(now).qap_cost;
    ASSERT_NEAR(delta, expected - cost, 1e-9 * cost) << (is_move ? "move" : "swap");
    cost = expected;
  }
  EXPECT_GT(moves, 0u);
}

// Slots that nobody sits in hold dummies: a swap with one is a move.
TEST_P(QapDeltas, OfDenseProblemsAreTheDifferenceOfNaiveCounts) {
  MappingProblem problem = GetParam().make(TestSeed());
  problem.objective = {.qap_cost = 1};
  const DenseQap qap = DenseQap::Of(problem).value();
  DenseState state(qap, qap.OrderOf(problem, problem.present()));
  NaiveEvaluator naive(problem);
  Xoshiro random(TestSeed());
  double cost = naive.Measure(problem.present()).qap_cost;
  for (uint32_t step = 0; step < steps_; ++step) {
    const uint32_t r = random.Below(qap.size());
    const uint32_t s = (r + 1 + random.Below(qap.size() - 1)) % qap.size();
    const double delta = state.Delta(r, s);
    state.Swap(r, s, delta);
    const Mapping now = DenseQap::MappingOf(problem, state.order());
    ASSERT_EQ(WhatIsWrong(problem, now), "");
    const double expected = naive.Measure(now).qap_cost;
    ASSERT_NEAR(delta * qap.unit(), expected - cost, 1e-9 * cost);
    cost = expected;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, QapDeltas, ::testing::ValuesIn(kQapKinds),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace coppice::exchange_deltas_test
