// What a state says of an exchange is what counting everything again says.
#include "daemon/mapping/search/links/traffic_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::traffic_state_test {
namespace {

struct Case {
  std::string model;
  uint32_t hosts, ranks_per_host, ranks;
  TrafficModel traffic;
};

class StateOnModels : public ::testing::TestWithParam<Case> {};

// After the exchange of the slots of `rank` and `slot`.
Mapping Exchanged(const MappingProblem& problem, const TrafficState& state, uint32_t rank,
                  uint32_t slot) {
  Mapping mapping = state.mapping();
  const uint32_t other = state.rank_in(slot);
  if (other != TrafficState::kNobody) mapping[other] = mapping[rank];
  mapping[rank] = problem.places->place_of_slot(slot);
  return mapping;
}

TEST_P(StateOnModels, TriesAndCommitsAsFullEvaluationSays) {
  const Case& c = GetParam();
  MappingProblem problem =
      ProblemOnModel(c.model, c.hosts, c.ranks_per_host, RandomPattern(c.ranks, 0.3, TestSeed()));
  problem.traffic = c.traffic;
  const bool exact = c.traffic == TrafficModel::kRoutes;
  TrafficState state = TrafficState::Make(problem, problem.present(), true).value();
  Xoshiro random(TestSeed());
  for (uint32_t step = 0; step < (FullTier() ? 20000u : 300u); ++step) {
    const uint32_t rank = random.Below(c.ranks), slot = random.Below(c.hosts * c.ranks_per_host);
    const Mapping next = Exchanged(problem, state, rank, slot);
    ASSERT_TRUE(CheckMapping(*problem.places, c.ranks, next).ok());
    const MappingMeasures expected = MeasureOf(problem, next);
    const TrafficState::Values tried = state.Try(rank, slot);
    if (exact) {
      ASSERT_EQ(tried.hop_bytes, *expected.hop_bytes);
      ASSERT_EQ(tried.qap_cost, expected.qap_cost);
    }
    ASSERT_NEAR(tried.hop_bytes, *expected.hop_bytes, 1e-9 * *expected.hop_bytes);
    ASSERT_NEAR(state.TriedCongestion(), *expected.max_congestion, 1e-12);
    ASSERT_GE(tried.soft, *expected.max_congestion * (1 - 1e-9));
    if (random.Below(3) == 0) continue;
    state.Commit();
    ASSERT_EQ(state.mapping(), next);
    ASSERT_NEAR(state.Now().congestion, *expected.max_congestion, 1e-12);
    ASSERT_NEAR(state.Now().soft, tried.soft, 1e-9 * tried.soft);
    const LinkTraffic traffic = CountLinkTraffic(problem, next).value();
    for (uint32_t channel = 0; channel < traffic.bytes.size(); ++channel) {
      ASSERT_NEAR(state.bytes(ChannelIndex(channel)), traffic.bytes[channel], exact ? 0 : 1e-7);
    }
    ASSERT_EQ(state.congestion(state.MostCongested()), state.Now().congestion);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, StateOnModels,
    ::testing::Values(Case{"fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8, 2, 13,
                           TrafficModel::kRoutes},
                      Case{"torus(dims=3x4)", 12, 1, 12, TrafficModel::kRoutes},
                      Case{"fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8, 2, 16,
                           TrafficModel::kEvenShortestPaths},
                      Case{"torus(dims=3x4)", 12, 2, 20, TrafficModel::kEvenShortestPaths},
                      Case{"dragonfly()", 12, 2, 24, TrafficModel::kRoutes}));

TEST(TrafficState, UndoesByTryingTheSameAgain) {
  const MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8,
                                                1, RandomPattern(7, 0.5, TestSeed()));
  TrafficState state = TrafficState::Make(problem, problem.present(), true).value();
  const TrafficState::Values before = state.Now();
  const uint32_t slot = state.slot_of(3);
  for (const uint32_t other : {5u, 7u}) {
    state.Try(3, other);
    state.Commit();
    EXPECT_EQ(state.slot_of(3), other);
    state.Try(3, slot);
    state.Commit();
    EXPECT_EQ(state.mapping(), problem.present());
    EXPECT_EQ(state.Now().hop_bytes, before.hop_bytes);
    EXPECT_EQ(state.Now().qap_cost, before.qap_cost);
    EXPECT_EQ(state.Now().congestion, before.congestion);
  }
}

class RoutesWithoutRoom : public ::testing::TestWithParam<TrafficModel> {};

TEST_P(RoutesWithoutRoom, AnswersTheSame) {
  MappingProblem problem = ProblemOnModel("torus(dims=3x4,hosts=2)", 24, 1, RingPattern(24, 5));
  problem.traffic = GetParam();
  TrafficRoutes roomy(problem), none(problem, 0);
  const uint32_t channels = problem.snapshot->fabric->channel_count();
  for (uint32_t round = 0; round < 2; ++round) {  // first asked, then remembered
    for (uint32_t a = 0; a < 24; ++a) {
      for (uint32_t b = 0; b < 24; ++b) {
        std::vector<double> first(channels, 0.0), second(channels, 0.0);
        EXPECT_TRUE(roomy.ForEachChannel(a, b, [&](uint32_t c, double s) { first[c] += s; }));
        EXPECT_TRUE(none.ForEachChannel(a, b, [&](uint32_t c, double s) { second[c] += s; }));
        EXPECT_EQ(first, second);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RoutesWithoutRoom,
                         ::testing::Values(TrafficModel::kRoutes,
                                           TrafficModel::kEvenShortestPaths));

}  // namespace
}  // namespace coppice::traffic_state_test
