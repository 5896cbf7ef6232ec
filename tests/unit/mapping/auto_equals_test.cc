// The portfolio where nearly all orders are alike in congestion: it answers with one that moves
// fewer bytes between switches, and never with more congestion for that. And where some orders
// cannot be measured at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"
#include "tests/unit/mapping/routed_problems.h"

namespace coppice::auto_equals_test {
namespace {

using ::testing::HasSubstr;

const MappingAlgorithm& Auto() { return **FindMappingAlgorithm("auto"); }

// The same hosts, in another order.
MappingProblem Shuffled(MappingProblem problem, uint64_t seed) {
  AlgorithmOptions options;
  options.seed = seed;
  const Mapping shuffled =
      RunAlgorithm(**FindMappingAlgorithm("random"), problem, {}, options, {})->mapping;
  std::vector<EndpointIndex> slots;
  for (const PlaceIndex p : shuffled) slots.push_back(problem.places->endpoint(p));
  problem.places = Places::OfEndpoints(*problem.snapshot->fabric, slots, 1).value();
  problem.distances =
      PlaceDistances::Hops(*problem.places, problem.snapshot->routes->distances()).value();
  return problem;
}

MappingAnswer Answer(const MappingProblem& problem, uint32_t threads) {
  AlgorithmOptions options;
  options.threads = threads;
  const MappingMeasures before = Measure(problem, problem.present()).value();
  return AnswerMapping(problem, before, Auto(), {}, options, {}).value();
}

TEST(AutoEquals, AShuffledStencilOnAFullTreeDoesNotStay) {
  MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=8,spines=8,hosts-per-leaf=8)", 64, 1, GridPattern(8, 8, 10));
  const double in_blocks = [&] {
    // 4 x 2 cells on each leaf switch: 64 of the 112 edges within one, 2 links, the others 4.
    return 2 * 10.0 * (80 * 2 + 32 * 4);
  }();
  problem.objective = {.congestion = 1};
  problem.traffic = TrafficModel::kEvenShortestPaths;
  problem = Shuffled(problem, TestSeed());
  const MappingAnswer answer = Answer(problem, 1);
  EXPECT_EQ(*answer.after.max_congestion, *answer.before.max_congestion);
  EXPECT_LE(*answer.after.hop_bytes, 1.02 * in_blocks) << answer.reason;
  EXPECT_LE(*answer.after.hop_bytes, 0.9 * *answer.before.hop_bytes);
  EXPECT_THAT(answer.reason, HasSubstr("fewer hop-bytes"));
  EXPECT_THAT(answer.reason, HasSubstr("proven"));
  EXPECT_EQ(Answer(problem, 3).mapping, answer.mapping);
}

// Whichever order it prefers for fewer hop-bytes, the congestion is the least that anyone finds.
TEST(AutoEquals, HopBytesNeverCostCongestion) {
  for (const char* model : {"fat-tree(leaves=4,spines=4,hosts-per-leaf=4)", "torus(dims=4x4)",
                            "fat-tree(leaves=4,spines=1,hosts-per-leaf=4)"}) {
    MappingProblem problem = ProblemOnModel(model, 16, 1, GridPattern(4, 4, 10));
    problem.objective = {.congestion = 1};
    problem = Shuffled(problem, TestSeed());
    const MappingAnswer answer = Answer(problem, 1);
    for (const char* name : {"congestion", "multisection", "greedy"}) {
      const Mapping other =
          RunAlgorithm(**FindMappingAlgorithm(name), problem, {}, {}, {})->mapping;
      const MappingMeasures measures = Measure(problem, other).value();
      EXPECT_LE(*answer.after.max_congestion, *measures.max_congestion) << model << " " << name;
    }
    EXPECT_LE(answer.score, 1);
  }
}

// An order that is already the best of its equals stays.
TEST(AutoEquals, TheBestOfThemStays) {
  MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=4,spines=4,hosts-per-leaf=4)", 16, 1, GridPattern(4, 4, 10));
  problem.objective = {.congestion = 1};
  problem.traffic = TrafficModel::kEvenShortestPaths;
  const MappingAnswer first = Answer(Shuffled(problem, TestSeed()), 1);
  std::vector<EndpointIndex> slots;
  MappingProblem again = problem;
  for (const PlaceIndex p : first.mapping) {
    slots.push_back(Shuffled(problem, TestSeed()).places->endpoint(p));
  }
  again.places = Places::OfEndpoints(*problem.snapshot->fabric, slots, 1).value();
  const MappingAnswer second = Answer(again, 1);
  EXPECT_EQ(*second.after.max_congestion, *first.after.max_congestion);
  EXPECT_LE(*second.after.hop_bytes, *first.after.hop_bytes * (1 + 1e-6));
}

// In the other islands everybody is nearer than in one's own: most candidates of a search by
// distances have ranks that talk and no route.
MappingProblem OnIslands(std::shared_ptr<const Pattern> pattern) {
  MappingProblem problem = ProblemOnIslands(3, 4, std::move(pattern));
  std::vector<double> distances(144);
  for (uint32_t i = 0; i < 144; ++i) {
    const uint32_t a = i / 12, b = i % 12;
    distances[i] = a == b ? 0 : a / 4 == b / 4 ? 2 : 1;
  }
  problem.distances = PlaceDistances::Matrix(12, std::move(distances)).value();
  problem.objective = {.congestion = 1, .qap_cost = 1};
  return problem;
}

TEST(AutoUnroutable, ACandidateWithoutRoutesIsNone) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t r = 0; r < 12; ++r) entries.push_back({r, r / 4 * 4 + (r + 1) % 4, 10, 1});
  const MappingProblem problem = OnIslands(Pattern::Make(12, entries).value());
  Mapping apart = problem.present();
  std::swap(apart[0], apart[4]);
  ASSERT_FALSE(Measure(problem, apart).ok());
  for (const Mapping& start : {Mapping(), apart}) {
    const MappingMeasures before = Measure(problem, problem.present()).value();
    const AlgorithmOptions rounds{.parameters = {{"rounds", 4}}};
    const auto answer = AnswerMapping(problem, before, Auto(), start, rounds, {});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_LE(answer->score, 1);
  }
}

}  // namespace
}  // namespace coppice::auto_equals_test
