// cp-nsc and hierarchical clustering as a whole: planted clusters, CG, what the note says, and
// input that is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/cluster/clusters.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::cp_nsc_test {
namespace {

using ::testing::HasSubstr;

const std::vector<const char*>& Names() {
  static const auto* const names =
      new std::vector<const char*>{"cp-nsc", "hierarchical-clustering"};
  return *names;
}

Mapped MappedBy(const char* name, const MappingProblem& problem, AlgorithmOptions options = {},
                const SearchControl& control = {}) {
  Mapped mapped = RunAlgorithm(**FindMappingAlgorithm(name), problem, {}, options, control).value();
  EXPECT_TRUE(CheckMapping(*problem.places, problem.rank_count(), mapped.mapping).ok()) << name;
  return mapped;
}

// As published: nothing that is ours.
AlgorithmOptions Published(double clusters) {
  AlgorithmOptions options;
  options.parameters = {{"tries", 1},
                        {"vary", 0},
                        {"exchange-ranks", 0},
                        {"eigenvectors", 0},
                        {"clusters", clusters}};
  return options;
}

// NPB CG: rows that sum by halves of themselves, and the exchange with the transposed rank.
std::shared_ptr<const Pattern> ConjugateGradient(uint32_t rows, uint32_t columns, double transposed,
                                                 const std::vector<uint32_t>& number) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t u = 0; u < rows * columns; ++u) {
    const uint32_t r = u / columns, c = u % columns;
    for (uint32_t half = 1; half < columns; half *= 2) {
      entries.push_back({number[u], number[r * columns + (c ^ half)], 6000, 1});
    }
    const uint32_t v = (c / 2) * columns + 2 * r + c % 2;
    if (u != v) entries.push_back({number[u], number[v], transposed, 1});
  }
  return Pattern::Make(rows * columns, std::move(entries)).value();
}

std::vector<uint32_t> Numbers(uint32_t count) {
  std::vector<uint32_t> number(count);
  std::iota(number.begin(), number.end(), 0);
  return number;
}

std::vector<uint32_t> ShuffledNumbers(uint32_t count, uint64_t seed) {
  std::vector<uint32_t> number = Numbers(count);
  Xoshiro random(seed);
  for (uint32_t i = count; i > 1; --i) std::swap(number[i - 1], number[random.Below(i)]);
  return number;
}

// The paper's nodes: cores 1 apart, nodes of a switch 3.7, others 4.1.
MappingProblem OnCores(uint32_t cores, uint32_t nodes, uint32_t switches,
                       std::shared_ptr<const Pattern> pattern) {
  MappingProblem problem;
  problem.pattern = std::move(pattern);
  problem.places = Places::Numbered(cores * nodes * switches, 1).value();
  problem.distances = PlaceDistances::Uniform({cores, nodes, switches}, {1, 3.7, 4.1}).value();
  problem.objective = {.qap_cost = 1};
  return problem;
}

// Wang 5.2.1: clusters are clear and ranks numbered along them; the answer is block order.
TEST(CpNsc, IsBlockOrderOnConjugateGradient) {
  const MappingProblem problem = OnCores(16, 8, 1, ConjugateGradient(8, 16, 3000, Numbers(128)));
  for (const char* name : Names()) EXPECT_EQ(MappedBy(name, problem).mapping, problem.present());
  // And as published, with a cluster for each row: plain placement of equal clusters. One run of
  // k-means needs rows that are clearer.
  const MappingProblem clear = OnCores(16, 8, 1, ConjugateGradient(8, 16, 600, Numbers(128)));
  const Mapped published = MappedBy("cp-nsc", clear, Published(8));
  EXPECT_EQ(published.mapping, problem.present()) << published.note;
  EXPECT_THAT(published.note, HasSubstr("8 clusters by 8 eigenvectors onto 8 nodes, plain"));
}

TEST(CpNsc, FindsTheRowsOfConjugateGradientInAnyNumbers) {
  const std::vector<uint32_t> number = ShuffledNumbers(128, TestSeed());
  const MappingProblem problem = OnCores(16, 4, 2, ConjugateGradient(8, 16, 3000, number));
  for (const char* name : Names()) {
    const Mapping mapping = MappedBy(name, problem).mapping;
    for (uint32_t u = 0; u < 128; ++u) {
      EXPECT_EQ(mapping[number[u]].value() / 16, mapping[number[u / 16 * 16]].value() / 16) << name;
    }
  }
}

TEST(CpNsc, PutsPlantedClustersOntoHosts) {
  // Hosts of 6; cliques of 6 and of 3 and 3, with a byte here and there between others.
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 3; ++seed) {
    const std::vector<uint32_t> number = ShuffledNumbers(48, seed);
    Xoshiro random(seed);
    std::vector<Pattern::Entry> entries;
    const auto clique = [](uint32_t u) { return u < 24 ? u / 6 : 100 + u / 3; };
    double between = 0;
    for (uint32_t u = 0; u < 48; ++u) {
      for (uint32_t v = 0; v < 48; ++v) {
        if (u == v) continue;
        const bool together = clique(u) == clique(v);
        if (!together && random.Below(20) > 0) continue;
        entries.push_back({number[u], number[v], together ? 100.0 : 1.0, 1});
        between += together ? 0 : 1;
      }
    }
    const MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8,
                                                  6, Pattern::Make(48, std::move(entries)).value());
    for (const char* name : Names()) {
      EXPECT_LE(MeasureOf(problem, MappedBy(name, problem).mapping).inter_node_bytes, between)
          << name << seed;
    }
  }
}

TEST(CpNsc, ReportsTheAggregatedCostThatACountGives) {
  const MappingProblem problem = OnCores(4, 3, 2, RandomPattern(24, 0.2, TestSeed()));
  const Mapped mapped = MappedBy("cp-nsc", problem, Published(0));
  EXPECT_THAT(mapped.note, HasSubstr("12 clusters"));
  // Recomputed over all pairs of clusters, as equations 2 and 3 have it.
  std::vector<uint32_t> cluster_of(24);
  for (uint32_t r = 0; r < 24; ++r) cluster_of[r] = r % 5;
  double expected = 0;
  for (uint32_t i = 0; i < 5; ++i) {
    for (uint32_t j = i + 1; j < 5; ++j) {
      for (uint32_t s = 0; s < 24; ++s) {
        for (const Exchange& x : problem.pattern->exchanges(s)) {
          if (cluster_of[s] != i || cluster_of[x.peer] != j) continue;
          expected += x.both() * (*problem.distances)(mapped.mapping[s], mapped.mapping[x.peer]);
        }
      }
    }
  }
  EXPECT_NEAR(AggregatedQapCost(*problem.pattern, *problem.distances, mapped.mapping, cluster_of),
              expected, 1e-9 * expected);
  const std::vector<uint32_t> one(24, 7), each = Numbers(24);
  EXPECT_EQ(AggregatedQapCost(*problem.pattern, *problem.distances, mapped.mapping, one), 0);
  EXPECT_NEAR(AggregatedQapCost(*problem.pattern, *problem.distances, mapped.mapping, each),
              QapCost(*problem.pattern, *problem.distances, mapped.mapping), 1e-9 * expected);
}

TEST(CpNsc, SaysWhichPlacementAndWhy) {
  const MappingProblem problem = OnCores(4, 3, 2, RandomPattern(24, 0.2, TestSeed()));
  const auto note = [&](std::vector<std::pair<std::string, double>> more) {
    AlgorithmOptions options = Published(7);
    options.parameters.insert(options.parameters.end(), more.begin(), more.end());
    return MappedBy("cp-nsc", problem, options).note;
  };
  EXPECT_THAT(note({{"t-l", 100}}), HasSubstr("plain placement: deviation of sizes"));
  EXPECT_THAT(note({{"t-l", 0}, {"t-h", 0}}),
              ::testing::AnyOf(HasSubstr("first-fit placement: deviation of sizes"),
                               HasSubstr("deviation of sizes 0 ")));
  EXPECT_THAT(note({{"t-l", 0}, {"t-h", 0}, {"t-k", 7}}), HasSubstr("most-reservation placement"));
  EXPECT_THAT(note({{"placement", 2}}), HasSubstr("first-fit placement: as asked for"));
  EXPECT_THAT(note({}), HasSubstr("AQAP cost"));
}

TEST(CpNsc, TakesItsNodesFromPlacesOrFromTheirGroups) {
  const auto sizes = [](const MappingProblem& problem) {
    return NodesOf(*MakeSparseProblem(problem).value()).sizes;
  };
  EXPECT_EQ(sizes(OnCores(4, 3, 2, RingPattern(24, 1))), (std::vector<uint32_t>(6, 4)));
  EXPECT_EQ(sizes(OnCores(2, 3, 2, RingPattern(12, 1))), (std::vector<uint32_t>(2, 6)));
  EXPECT_EQ(sizes(ProblemOnModel("fat-tree(leaves=3,spines=2,hosts-per-leaf=2)", 6, 5,
                                 RingPattern(30, 1))),
            (std::vector<uint32_t>(6, 5)));
  MappingProblem unequal = OnCores(4, 3, 2, RingPattern(24, 1));
  unequal.places = Places::OfSlots({0, 0, 0, 1, 2, 2}).value();
  unequal.distances = PlaceDistances::Matrix(3, {0, 1, 2, 1, 0, 2, 2, 2, 0}).value();
  EXPECT_EQ(sizes(unequal), (std::vector<uint32_t>{3, 1, 2}));
}

TEST(CpNsc, MakesClustersThatNoNodeSplits) {
  const WeightedGraph graph = GraphOf(*GridPattern(6, 6, 3));
  NodeCores nodes;
  nodes.sizes = {10, 10, 12, 10};  // the last takes 4
  const Clusters uneven = {{0},          {1, 2, 3},       {4, 5, 6, 7, 8, 9, 10, 11, 12},
                           {13, 14, 15}, {16, 17, 18},    {19, 20, 21, 22, 23, 24, 25, 26, 27, 28},
                           {29, 30, 31}, {32, 33, 34, 35}};
  std::vector<size_t> sizes;
  for (const auto& cluster : Balanced(graph, nodes, uneven, SearchControl()))
    sizes.push_back(cluster.size());
  EXPECT_THAT(sizes, ::testing::UnorderedElementsAre(5, 5, 5, 5, 6, 6, 2, 2));
  EXPECT_EQ(Balanced(graph, nodes, {uneven[0], uneven[1]}, SearchControl()).size(),
            2u);  // no multiple of 4
}

TEST(CpNsc, TakesWhatIsNoPattern) {
  const auto idle = Pattern::Make(10, {}).value();
  const auto one = Pattern::Make(1, {}).value();
  const auto some = Pattern::Make(10, {{3, 8, 5, 1}}).value();  // eight ranks talk to nobody
  for (const char* name : Names()) {
    EXPECT_EQ(MappedBy(name, OnCores(2, 3, 2, idle)).mapping, OnCores(2, 3, 2, idle).present());
    EXPECT_EQ(MappedBy(name, OnCores(2, 3, 2, one)).mapping.size(), 1u);
    const MappingProblem problem = OnCores(2, 3, 2, some);
    const Mapping mapping = MappedBy(name, problem).mapping;
    EXPECT_EQ(mapping[3].value() / 2, mapping[8].value() / 2) << name;
    for (const double clusters : {1.0, 9.0, 10.0, 1000.0}) {
      MappedBy(name, problem, Published(clusters));
    }
  }
}

TEST(CpNsc, TakesAsymmetricDistancesAndUnequalNodes) {
  Xoshiro random(TestSeed());
  MappingProblem problem;
  problem.pattern = RandomPattern(13, 0.4, TestSeed());
  problem.places = Places::OfSlots({0, 0, 0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3}).value();
  std::vector<double> distances(16);
  for (double& d : distances) d = random.Below(9);
  problem.distances = PlaceDistances::Matrix(4, std::move(distances)).value();
  problem.objective = {.qap_cost = 1};
  const double block = QapCost(*problem.pattern, *problem.distances, problem.present());
  for (const char* name : Names()) {
    const Mapping mapping = MappedBy(name, problem).mapping;
    EXPECT_LE(QapCost(*problem.pattern, *problem.distances, mapping), block) << name;
    MappedBy(name, problem, Published(0));
  }
}

TEST(CpNsc, GivesEqualResultsForAnyNumberOfThreads) {
  const MappingProblem problem = OnCores(8, 3, 3, GridPattern(8, 9, 5));
  for (const char* name : Names()) {
    AlgorithmOptions options;
    options.seed = TestSeed();
    const Mapped one = MappedBy(name, problem, options);
    for (const uint32_t threads : {2u, 5u}) {
      options.threads = threads;
      const Mapped more = MappedBy(name, problem, options);
      EXPECT_EQ(more.mapping, one.mapping) << name << threads;
      EXPECT_EQ(more.note, one.note);
    }
  }
}

TEST(CpNsc, IsBlockOrderOnceStopped) {
  const MappingProblem problem = OnCores(8, 3, 3, RandomPattern(70, 0.2, TestSeed()));
  uint32_t asked = 0;
  const SearchControl spent([&] { return ++asked > 0; }, nullptr);
  EXPECT_EQ(MappedBy("cp-nsc", problem, {}, spent).mapping, problem.present());
  EXPECT_LE(asked, 200u);
}

TEST(CpNsc, RefusesMoreEigenvectorsThanItKeeps) {
  const MappingProblem problem = OnCores(16, 200, 4, RingPattern(12800, 1));
  for (const char* name : Names()) {
    AlgorithmOptions options;
    options.parameters = {{"eigenvectors", 0}, {"clusters", 12000}};
    const absl::Status status =
        RunAlgorithm(**FindMappingAlgorithm(name), problem, {}, options, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_THAT(std::string(status.message()), HasSubstr("option eigenvectors or clusters"));
  }
}

TEST(HierarchicalClustering, ClustersSoManyLevels) {
  // Two pods of two switches of two nodes of two: a ring in any numbers.
  const std::vector<uint32_t> number = ShuffledNumbers(16, TestSeed());
  std::vector<Pattern::Entry> entries;
  for (uint32_t u = 0; u < 16; ++u) entries.push_back({number[u], number[(u + 1) % 16], 9, 1});
  MappingProblem problem;
  problem.pattern = Pattern::Make(16, std::move(entries)).value();
  problem.places = Places::Numbered(8, 2).value();
  problem.distances = PlaceDistances::Uniform({2, 2, 2}, {1, 10, 100}).value();
  problem.objective = {.qap_cost = 1};
  const auto cost = [&](const Mapping& mapping) {
    return QapCost(*problem.pattern, *problem.distances, mapping);
  };
  AlgorithmOptions options = Published(0);
  options.parameters[2].second = 0;
  options.parameters.emplace_back("levels", 1);
  const Mapped top = MappedBy("hierarchical-clustering", problem, options);
  EXPECT_THAT(top.note, HasSubstr("1 steps of clustering on 2 levels"));
  const Mapped all = MappedBy("hierarchical-clustering", problem);
  EXPECT_THAT(all.note, HasSubstr("7 steps of clustering on 3 levels"));
  // The best: the ring is cut twice between pods, twice between switches, four times below.
  EXPECT_EQ(cost(all.mapping), 9 * (2 * 100 + 2 * 10 + 4 * 1));
  EXPECT_LE(cost(all.mapping), cost(top.mapping));
}

}  // namespace
}  // namespace coppice::cp_nsc_test
