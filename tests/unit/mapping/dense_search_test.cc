// The dense searches: kept swap costs against counted ones, temperatures in order, and every
// algorithm for dense problems against all mappings of small ones.
#include "daemon/mapping/search/dense/dense_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search_control.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice {

class DenseTabuPeer {
 public:
  // What a swap of ranks r > s costs, as kept by the updates.
  static double SwapCost(const DenseTabu& search, uint32_t r, uint32_t s) {
    return search.costs_[DenseTabu::Row(r) + s];
  }
};

}  // namespace coppice

namespace coppice::dense_search_test {
namespace {

std::vector<double> Distances(uint32_t size, bool symmetric, bool whole, Xoshiro& random,
                              uint32_t bound = 30) {
  std::vector<double> cells(static_cast<size_t>(size) * size);
  for (uint32_t r = 0; r < size; ++r) {
    for (uint32_t c = 0; c < size; ++c) {
      const double value = whole ? random.Below(bound) : bound * random.Unit();
      cells[r * size + c] = symmetric && c < r ? cells[c * size + r] : value;
    }
  }
  return cells;
}

// Groups of four within groups of eight, as of cores in nodes on switches.
DenseQap GroupedQap(uint32_t size, Xoshiro& random) {
  std::vector<double> flows(static_cast<size_t>(size) * size), distances(flows.size());
  for (uint32_t r = 0; r < size; ++r) {
    for (uint32_t c = 0; c < r; ++c) {
      const bool node = r / 4 == c / 4, group = r / 8 == c / 8;
      flows[r * size + c] = flows[c * size + r] =
          node ? 20 + random.Below(9) : random.Below(group ? 9 : 2);
      distances[r * size + c] = distances[c * size + r] = node ? 1 : group ? 5 : 25;
    }
  }
  return DenseQap::OfMatrices(size, flows, distances);
}

TEST(DenseTabu, KeepsTheCostsOfAllSwaps) {
  Xoshiro random(TestSeed());
  for (const bool symmetric : {true, false}) {
    for (const bool whole : {true, false}) {
      const DenseQap qap = DenseQap::OfMatrices(13, Distances(13, symmetric, whole, random),
                                                Distances(13, symmetric, whole, random));
      MappingProblem problem = ProblemOnMatrix(std::vector<double>(169, 1), RingPattern(13, 1));
      const SearchControl control;
      DenseBest best(problem, control);
      DenseTabu search(qap, RandomDenseOrder(13, random), random());
      for (int step = 0; step < 50; ++step) {
        search.Run(1, control, best);
        for (uint32_t r = 1; r < 13; ++r) {
          for (uint32_t s = 0; s < r; ++s) {
            EXPECT_NEAR(DenseTabuPeer::SwapCost(search, r, s), search.state().Delta(r, s), 1e-7);
          }
        }
      }
      EXPECT_NEAR(search.state().cost(), qap.Cost(search.state().order()), 1e-7);
      EXPECT_NEAR(search.best().cost, qap.Cost(search.best().order), 1e-7);
    }
  }
}

TEST(DenseAnnealer, MovesFreeRanksOnlyAndKeepsTheCost) {
  Xoshiro random(TestSeed());
  const DenseQap qap = GroupedQap(32, random);
  DenseState state(qap, RandomDenseOrder(32, random));
  const DenseTemperatures t = MeasureTemperatures(state, random, {});
  EXPECT_GE(t.start, t.middle);
  EXPECT_GE(t.middle, t.end);
  EXPECT_GT(t.end, 0);
  const DenseOrder before = state.order();
  const std::vector<uint32_t> free = {1, 4, 5, 9, 20, 31};
  EXPECT_TRUE(DenseAnnealer().Run(state, free, t.start, t.end, 50, random, {}));
  for (uint32_t r = 0; r < 32; ++r) {
    if (std::count(free.begin(), free.end(), r) == 0) {
      EXPECT_EQ(state.order()[r], before[r]);
    }
  }
  EXPECT_EQ(state.cost(), qap.Cost(state.order()));
  EXPECT_FALSE(DenseAnnealer().Run(state, free, t.start, t.end, 50, random,
                                   SearchControl([] { return true; }, nullptr)));
  EXPECT_TRUE(DenseAnnealer().Run(state, {}, t.start, t.end, 50, random, {}));
}

TEST(DescendDense, LeavesNoSwapThatHelps) {
  Xoshiro random(TestSeed());
  const DenseQap qap = GroupedQap(24, random);
  DenseState state(qap, RandomDenseOrder(24, random));
  DescendDense(state, {});
  for (uint32_t r = 1; r < 24; ++r) {
    for (uint32_t s = 0; s < r; ++s) EXPECT_GE(state.Delta(r, s), 0);
  }
}

TEST(RunLogicalWorkers, CallsEachOnce) {
  for (const uint32_t threads : {1u, 2u, 9u}) {
    std::vector<std::atomic<int>> calls(7);
    RunLogicalWorkers(threads, 7, [&](uint32_t worker) { ++calls[worker]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
  EXPECT_NE(WorkerSeed(1, 0, 1), WorkerSeed(1, 1, 0));
}

TEST(UniformCrossover, KeepsWhatTheParentsShareInAPermutation) {
  Xoshiro random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    const uint32_t size = 1 + random.Below(12);
    const DenseOrder a = RandomDenseOrder(size, random);
    DenseOrder b = a;
    for (int i = 0; i < 3; ++i) std::swap(b[random.Below(size)], b[random.Below(size)]);
    DenseOrder child = UniformCrossover(a, b, random);
    EXPECT_TRUE(std::is_permutation(child.begin(), child.end(), a.begin(), a.end()));
    for (uint32_t i = 0; i < size; ++i) EXPECT_TRUE(a[i] != b[i] || child[i] == a[i]);
    Mutate(child, 0.8, random);
    EXPECT_TRUE(std::is_permutation(child.begin(), child.end(), a.begin(), a.end()));
    EXPECT_EQ(UniformCrossover(a, a, random), a);
  }
}

TEST(DenseSchedule, FallsFromTheFirstToTheLast) {
  for (const bool cauchy : {false, true}) {
    const DenseSchedule schedule{cauchy, 500, 0.5, 1000, 50};
    EXPECT_DOUBLE_EQ(schedule.Temperature(0), 500);
    EXPECT_NEAR(schedule.Temperature(1000), 0.5, 1e-9);
    for (uint64_t i = 0; i < 1000; ++i) {
      EXPECT_GT(schedule.Temperature(i), schedule.Temperature(i + 1));
    }
  }
  // Half way, a geometric mean or twice the last.
  EXPECT_NEAR((DenseSchedule{false, 400, 1, 10, 50}.Temperature(5)), 20, 1e-9);
  EXPECT_NEAR((DenseSchedule{true, 400, 1, 10, 50}.Temperature(5)), 2, 0.01);
}

class DenseAlgorithms : public ::testing::TestWithParam<const char*> {
 protected:
  const MappingAlgorithm& algorithm() const { return **FindMappingAlgorithm(GetParam()); }
};

TEST_P(DenseAlgorithms, FindTheBestOfAllMappings) {
  const uint64_t seed = TestSeed();
  Xoshiro random(seed);
  for (uint64_t round = 0; round < (FullTier() ? 40u : 6u); ++round) {
    const uint32_t ranks = 2 + round % 7;
    const bool symmetric = round % 2 == 0, whole = round % 3 != 0;
    const uint32_t places = std::min(8u, ranks + static_cast<uint32_t>(round % 2));
    const MappingProblem problem = ProblemOnMatrix(Distances(places, symmetric, whole, random),
                                                   RandomPattern(ranks, 0.8, seed + round));
    AlgorithmOptions options;
    options.seed = seed + round;
    const absl::StatusOr<Mapped> mapped = RunAlgorithm(algorithm(), problem, {}, options, {});
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    EXPECT_NEAR(ScoreOf(problem, mapped->mapping), LeastScore(problem), 1e-9) << "round " << round;
  }
}

TEST_P(DenseAlgorithms, FindGroupsWithinGroups) {
  // Four nodes of four ranks that talk within their node only: nothing beats keeping them together.
  std::vector<Pattern::Entry> entries;
  std::vector<double> distances(256);
  for (uint32_t a = 0; a < 16; ++a) {
    for (uint32_t b = 0; b < 16; ++b) {
      distances[a * 16 + b] = a == b ? 0 : a / 4 == b / 4 ? 1 : 10;
      if (a != b && a % 4 == b % 4) entries.push_back({a, b, 5.0, 1});
    }
  }
  const MappingProblem problem =
      ProblemOnMatrix(distances, Pattern::Make(16, std::move(entries)).value());
  AlgorithmOptions options;
  options.seed = TestSeed();
  const absl::StatusOr<Mapped> mapped = RunAlgorithm(algorithm(), problem, {}, options, {});
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ(QapCost(*problem.pattern, *problem.distances, mapped->mapping), 16 * 3 * 5);
}

TEST_P(DenseAlgorithms, TellWhatTheyFindAndStopWhenAsked) {
  Xoshiro random(TestSeed());
  const MappingProblem problem =
      ProblemOnMatrix(Distances(60, true, true, random), RandomPattern(60, 0.5, 7));
  std::atomic<int> asked = 0;
  std::atomic<double> least = 1e300;
  const SearchControl control([&] { return ++asked > 5000; },
                              [&](const Mapping& mapping) {
                                const double cost =
                                    QapCost(*problem.pattern, *problem.distances, mapping);
                                if (cost < least) least = cost;
                              });
  AlgorithmOptions options;
  options.threads = 2;
  const absl::StatusOr<Mapped> mapped = RunAlgorithm(algorithm(), problem, {}, options, control);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_LE(QapCost(*problem.pattern, *problem.distances, mapped->mapping), least);
  EXPECT_LT(least, QapCost(*problem.pattern, *problem.distances, problem.present()));
}

TEST_P(DenseAlgorithms, RefuseMoreSlotsThanTheirMatricesMayHave) {
  MappingProblem problem;
  problem.pattern = RingPattern(8, 1);
  problem.places = Places::Numbered(5000, 1).value();
  problem.distances =
      PlaceDistances::Uniform(std::vector<uint32_t>{5000}, std::vector<double>{1}).value();
  problem.objective = {.qap_cost = 1};
  const absl::Status status = RunAlgorithm(algorithm(), problem, {}, {}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("5000 slots"));
}

INSTANTIATE_TEST_SUITE_P(All, DenseAlgorithms,
                         ::testing::Values("parallel-annealing", "parallel-genetic", "combined",
                                           "robust-tabu", "memetic"),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

}  // namespace
}  // namespace coppice::dense_search_test
