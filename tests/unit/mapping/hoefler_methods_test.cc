// Hoefler's methods where the answer is known: his figure 1, clusters, lines, unequal hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::hoefler_methods_test {
namespace {

Mapped MappedBy(const char* name, const MappingProblem& problem, AlgorithmOptions options = {}) {
  return RunAlgorithm(**FindMappingAlgorithm(name), problem, {}, options, {}).value();
}

// `cliques` sets of `size` ranks that all talk to each other, numbered at random.
std::shared_ptr<const Pattern> Cliques(uint32_t cliques, uint32_t size, uint64_t seed) {
  std::vector<uint32_t> number(cliques * size);
  for (uint32_t i = 0; i < number.size(); ++i) number[i] = i;
  Xoshiro random(seed);
  for (uint32_t i = cliques * size; i > 1; --i) std::swap(number[i - 1], number[random.Below(i)]);
  std::vector<Pattern::Entry> entries;
  for (uint32_t u = 0; u < number.size(); ++u) {
    for (uint32_t v = 0; v < number.size(); ++v) {
      if (u != v && u / size == v / size) entries.push_back({number[u], number[v], 10, 1});
    }
  }
  return Pattern::Make(cliques * size, std::move(entries)).value();
}

// Hoefler 2011, 3.1: greedy finds the best order of figure 1, in which no pair of ranks is more
// than one link between switches apart.
TEST(GreedyMapping, FindsTheBestOrderOfFigureOne) {
  MappingProblem problem = ProblemOnModel(
      "hypercube(dims=3)", 8, 1,
      Pattern::Make(
          4, {{0, 1, 1, 1}, {1, 0, 1, 1}, {0, 3, 1, 1}, {3, 0, 1, 1}, {2, 3, 1, 1}, {3, 2, 1, 1}})
          .value());
  const Mapped mapped = MappedBy("greedy", problem);
  EXPECT_EQ(*MeasureOf(problem, mapped.mapping).max_dilation, 1u + 2);
}

TEST(GreedyMapping, TakesTheFasterOfTwoPlacesThatAreEquallyClose) {
  // PERCS: from a node, 7 others of the drawer are one link of 24 GiB/s away and 24 of the
  // supernode one of 5 GiB/s.
  const MappingProblem problem =
      ProblemOnModel("percs(supernodes=1,d=0)", 32, 1, Cliques(4, 8, TestSeed()));
  const Mapped mapped = MappedBy("greedy", problem);
  for (uint32_t r = 0; r < 32; ++r) {
    for (const Exchange& exchange : problem.pattern->exchanges(r)) {
      EXPECT_EQ(mapped.mapping[r].value() / 8, mapped.mapping[exchange.peer].value() / 8);
    }
  }
}

TEST(GreedyMapping, StartsWhereItIsTold) {
  const MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8, 1,
                     Pattern::Make(3, {{1, 2, 9, 1}, {2, 0, 1, 1}}).value());
  AlgorithmOptions options;
  options.parameters = {{"start", 6}};
  const Mapped mapped = MappedBy("greedy", problem, options);
  EXPECT_EQ(mapped.mapping[2], PlaceIndex(5));  // the heaviest rank; its partner beside it
  EXPECT_EQ(mapped.mapping[1], PlaceIndex(4));
  EXPECT_EQ(mapped.note, "started at place 6");
}

TEST(RecursiveMapping, PutsClustersOntoLeafSwitches) {
  const MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=4)", 16,
                                                1, Cliques(4, 4, TestSeed()));
  const Mapped mapped = MappedBy("recursive", problem);
  EXPECT_EQ(*MeasureOf(problem, mapped.mapping).inter_switch_bytes, 0);
}

TEST(RcmMapping, LaysALineOnALine) {
  // Ranks along a line, numbered at random, on a row of switches.
  std::vector<uint32_t> number = {5, 2, 7, 0, 3, 6, 1, 4};
  std::vector<Pattern::Entry> entries;
  for (uint32_t i = 0; i + 1 < 8; ++i) entries.push_back({number[i], number[i + 1], 5, 1});
  const MappingProblem problem =
      ProblemOnModel("mesh(dims=8)", 8, 1, Pattern::Make(8, std::move(entries)).value());
  EXPECT_EQ(*MeasureOf(problem, MappedBy("rcm", problem).mapping).max_dilation, 1u + 2);
}

TEST(RcmMapping, KeepsTheHostsOfALeafTogether) {
  const MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=4)", 16, 1, RingPattern(16, 1));
  // A ring crosses each border between leaves twice, both ways; other orders of leaves no less.
  EXPECT_LE(*MeasureOf(problem, MappedBy("rcm", problem).mapping).inter_switch_bytes,
            2 * 2 * 4 + 4);
}

TEST(MulticoreMapping, PutsClustersOntoHosts) {
  const MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8,
                                                4, Cliques(8, 4, TestSeed()));
  for (const double then : {1.0, 2.0, 3.0}) {
    AlgorithmOptions options;
    options.parameters = {{"then", then}};
    EXPECT_EQ(MeasureOf(problem, MappedBy("multicore", problem, options).mapping).inter_node_bytes,
              0);
  }
}

TEST(MulticoreMapping, KeepsUnequalCapacities) {
  MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8, 1, RingPattern(11, 5));
  const Fabric& fabric = *problem.snapshot->fabric;
  std::vector<EndpointIndex> slots;
  for (uint32_t h = 0; h < 5; ++h) {
    for (uint32_t i = 0; i <= h; ++i) slots.push_back(fabric.endpoints_of_host(HostIndex(h))[0]);
  }
  problem.places = Places::OfEndpoints(fabric, slots, 1).value();
  problem.distances =
      PlaceDistances::Hops(*problem.places, problem.snapshot->routes->distances()).value();
  for (const char* name : {"multicore", "recursive", "greedy", "rcm"}) {
    EXPECT_TRUE(CheckMapping(*problem.places, 11, MappedBy(name, problem).mapping).ok()) << name;
  }
}

TEST(ThresholdAccepting, ImprovesAShuffledOrder) {
  MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=4)", 16, 1,
                                          Cliques(4, 4, TestSeed()));
  problem.objective = {.congestion = 1};
  EXPECT_LT(ScoreOf(problem, MappedBy("threshold-accepting", problem).mapping), 1);
}

TEST(HoeflersMethods, SayThatTheyNeedAFabric) {
  const MappingProblem problem = ProblemOnMatrix({0, 1, 1, 0}, RingPattern(2, 1));
  for (const char* name :
       {"greedy", "recursive", "rcm", "multicore", "threshold-accepting", "congestion"}) {
    const absl::Status status =
        RunAlgorithm(**FindMappingAlgorithm(name), problem, {}, {}, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(name));
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("fabric"));
  }
}

}  // namespace
}  // namespace coppice::hoefler_methods_test
