// The portfolio: never worse than the present order, equal for any number of threads, within its
// threads, and words for what it did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::auto_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const MappingAlgorithm& Auto() { return **FindMappingAlgorithm("auto"); }

AlgorithmOptions Options(uint64_t seed, double rounds) {
  AlgorithmOptions options;
  options.seed = seed;
  options.parameters = {{"rounds", rounds}};
  return options;
}

TEST(AutoMapping, IsEqualForAnyNumberOfThreadsAndNeverWorse) {
  const uint64_t seed = TestSeed();
  for (const uint32_t per_host : {1u, 8u}) {
    MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=4)", 16,
                                            per_host, GridPattern(4, 4 * per_host, 7));
    for (const Objective& objective : {Objective{1, 0, 0}, Objective{0, 1, 0}}) {
      problem.objective = objective;
      AlgorithmOptions options = Options(seed, 3);
      const Mapped one = RunAlgorithm(Auto(), problem, {}, options, {}).value();
      EXPECT_LE(ScoreOf(problem, one.mapping), 1 + 1e-12);
      options.threads = 3;
      EXPECT_EQ(RunAlgorithm(Auto(), problem, {}, options, {})->mapping, one.mapping);
    }
  }
}

TEST(AutoMapping, FillsAFewHolesOfAShuffledGrid) {
  MappingProblem problem = ProblemOnModel("torus(dims=8x8)", 64, 1, GridPattern(6, 10, 5));
  const Mapping shuffled =
      RunAlgorithm(**FindMappingAlgorithm("random"), problem, {}, {}, {})->mapping;
  const Mapped mapped = RunAlgorithm(Auto(), problem, shuffled, Options(1, 6), {}).value();
  // 104 edges of the grid cost at least 3 links each way.
  EXPECT_LE(*MeasureOf(problem, mapped.mapping).hop_bytes, 1.15 * 2 * 104 * 5 * 3) << mapped.note;
  EXPECT_THAT(mapped.note, HasSubstr("won at"));
  EXPECT_THAT(mapped.note, HasSubstr("multisection"));
}

TEST(AutoMapping, OffersOnlyWhatIsBetterAndAdmissible) {
  MappingProblem problem = ProblemOnModel("torus(dims=4x4)", 16, 1, RandomPattern(16, 0.2, 5));
  double last = 1;
  const SearchControl control(nullptr, [&](const Mapping& mapping) {
    EXPECT_TRUE(CheckMapping(*problem.places, 16, mapping).ok());
    const double score = ScoreOf(problem, mapping);
    EXPECT_LT(score, last);
    last = score;
  });
  const Mapped mapped = RunAlgorithm(Auto(), problem, {}, Options(1, 3), control).value();
  EXPECT_NEAR(ScoreOf(problem, mapped.mapping), last, 1e-9);
}

TEST(AutoMapping, RunsQuickStartsOnce) {
  MappingProblem problem =
      ProblemOnModel("torus(dims=4x4)", 16, 2, RandomPattern(32, 0.2, TestSeed()));
  // Congestion alone: "congestion" begins with them itself.
  for (const Objective& objective :
       {Objective{.congestion = 1}, Objective{.congestion = 1, .hop_bytes = 1}}) {
    problem.objective = objective;
    const std::string note = RunAlgorithm(Auto(), problem, {}, Options(1, 5), {})->note;
    for (const char* name : {"recursive", "multicore", "greedy"}) {
      EXPECT_EQ(note.find(std::string(" ") + name + " ") != std::string::npos,
                objective.hop_bytes > 0)
          << name << ": " << note;
      EXPECT_THAT(note, Not(ContainsRegex(std::string(name) + " [0-9.]+ .[0-9]+ times"))) << name;
    }
    EXPECT_THAT(note, ContainsRegex("congestion [0-9.]+ .[0-9]+ times"));
  }
}

// Threads that have asked and not ended.
std::atomic<int> alive = 0, most_alive = 0;
struct Alive {
  Alive() {
    const int now = ++alive;
    for (int most = most_alive; most < now && !most_alive.compare_exchange_weak(most, now);) {
    }
  }
  ~Alive() { --alive; }
};

TEST(AutoMapping, HasNoMoreThreadsThanItIsGiven) {
  const auto pattern = RandomPattern(24, 0.5, TestSeed());
  const MappingProblem problem = ProblemOnModel("torus(dims=5x5)", 24, 1, pattern);
  const SearchControl control(
      [] {
        thread_local const Alive one;
        return false;
      },
      nullptr);
  AlgorithmOptions options = Options(1, 6);
  options.threads = 3;
  alive = most_alive = 0;
  RunAlgorithm(Auto(), problem, {}, options, control).value();
  EXPECT_LE(most_alive, 3);
}

TEST(AutoMapping, SaysWhyItKeepsThePresentOrder) {
  const MappingProblem silent =
      ProblemOnModel("torus(dims=2x2)", 4, 1, Pattern::Make(3, {{1, 1, 5, 1}}).value());
  Mapped mapped = RunAlgorithm(Auto(), silent, {}, {}, {}).value();
  EXPECT_EQ(mapped.mapping, silent.present());
  EXPECT_THAT(mapped.note, HasSubstr("exchange anything"));
  const MappingProblem one = ProblemOnModel("torus(dims=2x2)", 4, 1, Pattern::Make(1, {}).value());
  EXPECT_THAT(RunAlgorithm(Auto(), one, {}, {}, {})->note, HasSubstr("one rank"));
}

TEST(AutoMapping, SeatsRanksThatTalkToThemselvesWhereThatCostsLeast) {
  std::vector<double> distances(12 * 12, 1.0);
  std::vector<Pattern::Entry> entries;
  double least = 0;
  for (uint32_t i = 0; i < 12; ++i) {
    distances[i * 13] = (7 * i) % 12;
    if (i < 10) entries.push_back({i, i, 1.0 + (3 * i) % 10, 1});
  }
  for (uint32_t i = 0; i < 10; ++i) least += (10.0 - i) * i;
  const MappingProblem problem = ProblemOnMatrix(distances, Pattern::Make(10, entries).value());
  const Mapped mapped = RunAlgorithm(Auto(), problem, {}, {}, {}).value();
  EXPECT_EQ(MeasureOf(problem, mapped.mapping).qap_cost, least);
  EXPECT_THAT(mapped.note, HasSubstr("optimum"));
  const MappingProblem alone =
      ProblemOnMatrix({3, 1, 1, 2}, Pattern::Make(1, {{0, 0, 5, 1}}).value());
  EXPECT_EQ(RunAlgorithm(Auto(), alone, {}, {}, {})->mapping, Mapping{PlaceIndex(1)});
}

}  // namespace
}  // namespace coppice::auto_test
