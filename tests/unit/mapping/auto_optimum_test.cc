// The portfolio finds the optimum of a few ranks, whatever the objective, the model of traffic, the
// distances and the places: against all mappings, at random.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::auto_optimum_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Objective kObjectives[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, {3, 0, 1}};
constexpr TrafficModel kModels[] = {TrafficModel::kRoutes, TrafficModel::kEvenShortestPaths,
                                    TrafficModel::kApproximate};

const MappingAlgorithm& Auto() { return **FindMappingAlgorithm("auto"); }

// At least two ranks of it talk.
std::shared_ptr<const Pattern> TalkingPattern(uint32_t ranks, Xoshiro& random) {
  std::vector<Pattern::Entry> entries = {{0, 1, 3, 1}};
  for (uint32_t i = 0; i < 2 * ranks; ++i) {
    entries.push_back({random.Below(ranks), random.Below(ranks), 1.0 + random.Below(50), 1});
  }
  return Pattern::Make(ranks, std::move(entries)).value();
}

// So many slots on hosts of a model, some of which are named several times.
MappingProblem OnUnequalHosts(const char* model, uint32_t hosts, uint32_t slots, Xoshiro& random,
                              std::shared_ptr<const Pattern> pattern) {
  MappingProblem problem = ProblemOnModel(model, hosts, 1, std::move(pattern));
  std::vector<EndpointIndex> endpoints;
  for (uint32_t i = 0; i < slots; ++i) {
    endpoints.push_back(problem.places->endpoint(PlaceIndex(random.Below(hosts))));
  }
  problem.places = Places::OfEndpoints(*problem.snapshot->fabric, endpoints, 1).value();
  problem.distances =
      PlaceDistances::Hops(*problem.places, problem.snapshot->routes->distances()).value();
  return problem;
}

void ExpectOptimum(MappingProblem problem, const Objective& objective) {
  problem.objective = objective;
  AlgorithmOptions options;
  options.parameters = {{"rounds", 1}};
  const Mapped mapped = RunAlgorithm(Auto(), problem, {}, options, {}).value();
  EXPECT_NEAR(ScoreOf(problem, mapped.mapping), LeastScore(problem), 1e-9)
      << mapped.note << "; " << ToString(problem.traffic);
}

TEST(AutoOptimum, OfEveryObjectiveAndModelOfTraffic) {
  const uint64_t seed = TestSeed();
  Xoshiro random(seed);
  for (uint32_t round = 0; round < (FullTier() ? 60u : 6u); ++round) {
    for (const char* model :
         {"fat-tree(leaves=3,spines=2,hosts-per-leaf=2)", "torus(dims=2x4)", "torus(dims=3x3)"}) {
      const uint32_t ranks = 3 + random.Below(3), hosts = 4 + random.Below(3);
      MappingProblem problem = OnUnequalHosts(model, hosts, ranks + random.Below(3), random,
                                              TalkingPattern(ranks, random));
      problem.traffic = kModels[round % 3];
      for (const Objective& objective : kObjectives) ExpectOptimum(problem, objective);
    }
  }
}

TEST(AutoOptimum, OfEightRanks) {
  Xoshiro random(TestSeed());
  for (uint32_t round = 0; round < (FullTier() ? 9u : 3u); ++round) {
    MappingProblem problem = ProblemOnModel("torus(dims=2x4)", 8, 1, TalkingPattern(8, random));
    problem.traffic = kModels[round % 3];
    ExpectOptimum(problem, {.congestion = 1});
  }
}

TEST(AutoOptimum, OfLevelsAndMatrices) {
  Xoshiro random(TestSeed());
  for (uint32_t round = 0; round < (FullTier() ? 100u : 10u); ++round) {
    const uint32_t ranks = 2 + random.Below(5);
    MappingProblem levels;
    levels.pattern = TalkingPattern(ranks, random);
    levels.places = Places::Numbered(8, 1 + round % 2).value();
    levels.distances = PlaceDistances::Uniform({2, 2, 2}, {1, 10, 25}).value();
    if (round % 2 == 0 || ranks < 6) ExpectOptimum(levels, {.qap_cost = 1});
    const uint32_t places = ranks + random.Below(2);
    std::vector<double> distances;  // asymmetric, with holes and a diagonal
    for (uint32_t i = 0; i < places * places; ++i) distances.push_back(random.Below(9));
    ExpectOptimum(ProblemOnMatrix(distances, TalkingPattern(ranks, random)), {.qap_cost = 1});
  }
}

TEST(AutoOptimum, IsNotClaimedOfMoreThanCanBeLookedAt) {
  Xoshiro random(TestSeed());
  MappingProblem problem = ProblemOnModel("fat-tree(leaves=32,spines=8,hosts-per-leaf=16)", 512, 1,
                                          TalkingPattern(8, random));
  problem.objective = {.congestion = 1, .hop_bytes = 1};
  problem.traffic = TrafficModel::kApproximate;
  AlgorithmOptions options;
  options.parameters = {{"rounds", 2}};
  uint32_t asked = 0;
  const SearchControl control([&] { return ++asked > 3'000; }, nullptr,
                              [&] { return 3'000.0 - asked; });
  const Mapped mapped = RunAlgorithm(Auto(), problem, {}, options, control).value();
  EXPECT_THAT(mapped.note, Not(HasSubstr("optimum")));
  EXPECT_THAT(mapped.note, HasSubstr("multisection"));
}

}  // namespace
}  // namespace coppice::auto_optimum_test
