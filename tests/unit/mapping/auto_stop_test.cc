// The portfolio and time: it uses what it has, ends by itself where nothing is left to gain, and
// does not begin what cannot end in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/algorithm/auto.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::auto_stop_test {
namespace {

using ::testing::HasSubstr;

const MappingAlgorithm& Auto() { return **FindMappingAlgorithm("auto"); }

// Time that passes with every question whether to stop, or is set by hand.
class CountedTime {
 public:
  explicit CountedTime(double seconds, double each = 1) : left_(seconds), each_(each) {}
  SearchControl Control() {
    return SearchControl(
        [this] {
          left_ = left_ - each_;
          return left_ <= 0;
        },
        nullptr, [this] { return left_.load(); });
  }
  void Set(double left) { left_ = left; }

 private:
  std::atomic<double> left_;
  const double each_;
};

TEST(AutoTime, IsUsedToTheDeadline) {
  const MappingProblem problem =
      ProblemOnModel("torus(dims=3x3)", 9, 1, RandomPattern(9, 0.4, TestSeed()));
  CountedTime time(4'000'000);
  const SearchControl control = time.Control();
  const Mapped mapped = RunAlgorithm(Auto(), problem, {}, {}, control).value();
  EXPECT_THAT(mapped.note, HasSubstr("stopped by its budget"));
  const AlgorithmOptions three_rounds{.parameters = {{"rounds", 3}}};
  EXPECT_THAT(RunAlgorithm(Auto(), problem, {}, three_rounds, {})->note,
              HasSubstr("all rounds are done"));
}

TEST(AutoTime, EndsAtAProvenBoundOfCongestion) {
  MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=4,spines=4,hosts-per-leaf=4)", 16, 1, RingPattern(16, 10));
  problem.objective = {.congestion = 1};
  const Mapping shuffled =
      RunAlgorithm(**FindMappingAlgorithm("random"), problem, {}, {}, {})->mapping;
  std::vector<EndpointIndex> slots;
  for (const PlaceIndex p : shuffled) slots.push_back(problem.places->endpoint(p));
  problem.places = Places::OfEndpoints(*problem.snapshot->fabric, slots, 1).value();
  CountedTime time(1e9, 0);
  const SearchControl control = time.Control();
  const Mapped mapped = RunAlgorithm(Auto(), problem, {}, {}, control).value();
  EXPECT_THAT(mapped.note, HasSubstr("proven: no order's greatest congestion is below"));
}

// Main's own thread, its orders merged as they come; whichever ends first.
TEST(AutoTime, IsSharedWithASearchOnAThreadOfItsOwn) {
  for (const double seconds : {2e4, 2e5}) {
    MappingProblem problem = ProblemOnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=4)", 16, 2,
                                            RandomPattern(32, 0.2, TestSeed()));
    problem.objective = {.congestion = 1};
    CountedTime time(seconds);
    AlgorithmOptions options;
    options.threads = 2;
    const Mapped mapped = RunAlgorithm(Auto(), problem, {}, options, time.Control()).value();
    EXPECT_TRUE(CheckMapping(*problem.places, 32, mapped.mapping).ok());
    EXPECT_LE(ScoreOf(problem, mapped.mapping), 1 + 1e-12);
    EXPECT_THAT(mapped.note, HasSubstr("congestion "));
  }
}

TEST(AutoTime, EndsAtAProvenBoundOfTheCost) {
  MappingProblem problem = ProblemOnModel("torus(dims=4x4)", 16, 1, RingPattern(16, 10));
  CountedTime time(1e9, 0);
  const SearchControl control = time.Control();
  const Mapped mapped = RunAlgorithm(Auto(), problem, {}, {}, control).value();
  EXPECT_THAT(mapped.note, HasSubstr("proven: no order's cost is below"));
  EXPECT_EQ(MeasureOf(problem, mapped.mapping).hop_bytes, 16 * 2 * 10 * 3);
}

TEST(AutoTime, IsNotSpentOnScoresThatComeTooLate) {
  MappingProblem problem = ProblemOnModel("torus(dims=4x4)", 16, 1, RingPattern(16, 10));
  problem.objective = {.congestion = 1};
  std::vector<double> left = {100, 60};  // a measure takes 40 of 100 seconds
  size_t asked = 0;
  const SearchControl control([] { return false; }, nullptr,
                              [&] { return left[std::min(asked++, left.size() - 1)]; });
  const auto sparse = MakeSparseProblem(problem).value();
  const auto incumbent = Incumbent::Make(problem, *sparse, control).value();
  EXPECT_TRUE(incumbent->WorthScoring(true));
  EXPECT_FALSE(incumbent->WorthScoring(false));
  left.assign(1, 30);
  EXPECT_FALSE(incumbent->WorthScoring(true));
  EXPECT_FALSE(incumbent->TimeForScores(1));
}

TEST(AutoTime, ScoresWhatATaskOffersAndComesToOnce) {
  MappingProblem problem = ProblemOnModel("torus(dims=4x4)", 16, 1, RingPattern(16, 10));
  problem.objective = {.congestion = 1};
  double seconds = 1e6;
  uint32_t asked = 0;  // twice for each measure
  const SearchControl control([] { return false; }, nullptr,
                              [&] {
                                ++asked;
                                return seconds;
                              });
  const auto sparse = MakeSparseProblem(problem).value();
  const auto incumbent = Incumbent::Make(problem, *sparse, control).value();
  Attempt attempt(*incumbent, true);
  attempt.Offer(problem.present());
  const uint32_t once = asked;
  attempt.Finish(problem.present());
  incumbent->Merge("task", attempt.best());
  EXPECT_EQ(asked, once);
  EXPECT_EQ(attempt.best().score, 1);
}

TEST(AutoIncumbent, OfEqualsHasFewerFullChannels) {
  MappingProblem problem = ProblemOnModel("torus(dims=4x4)", 16, 1, RingPattern(16, 10));
  problem.objective = {.congestion = 1};
  const SearchControl control;
  const auto sparse = MakeSparseProblem(problem).value();
  const auto incumbent = Incumbent::Make(problem, *sparse, control).value();
  const Mapping present = problem.present(), other(present.rbegin(), present.rend());
  const double smooth = *Measure(problem, present)->smooth_congestion;
  EXPECT_GE(smooth, *Measure(problem, present)->max_congestion);
  incumbent->Merge("fuller", {{1, 1.1 * smooth, 0}, other});
  EXPECT_EQ(incumbent->best(), present);
  incumbent->Merge("emptier", {{1, 0.9 * smooth, 1e9}, other});
  EXPECT_EQ(incumbent->best(), other);
  incumbent->Merge("worse", {{1.1, 0.1 * smooth, 0}, present});
  EXPECT_EQ(incumbent->best(), other);
}

TEST(AutoIncumbent, DoesNotTradeFullChannelsForHopBytesLittleByLittle) {
  MappingProblem problem = ProblemOnModel("torus(dims=4x4)", 16, 1, RingPattern(16, 10));
  problem.objective = {.congestion = 1};
  const SearchControl control;
  const auto sparse = MakeSparseProblem(problem).value();
  const auto incumbent = Incumbent::Make(problem, *sparse, control).value();
  MappingStanding standing = incumbent->standing();
  const double smooth = standing.smooth;
  for (int step = 0; step < 100; ++step) {
    standing.smooth *= 1 + 5e-4;
    standing.hop_bytes *= 0.99;
    incumbent->Merge("drift", {standing, problem.present()});
  }
  EXPECT_LT(incumbent->standing().smooth, smooth * (1 + 2e-3));
}

TEST(AutoTime, StoppedCutsAreExactAllTheSame) {
  const uint64_t seed = TestSeed();
  const auto pattern = RandomPattern(200, 0.1, seed);
  const WeightedGraph graph = GraphOf(*pattern);
  const SearchControl stopped([] { return true; }, nullptr);
  std::vector<uint32_t> parts(200, 3);
  const std::vector<uint32_t> capacities = {70, 70, 50, 10};
  FitParts(graph, capacities, parts, stopped);
  std::vector<uint32_t> sizes(4, 0);
  for (const uint32_t p : parts) ++sizes[p];
  for (size_t p = 0; p < 4; ++p) EXPECT_LE(sizes[p], capacities[p]);
  parts.assign(200, 0);
  FitParts(graph, {20, 80, 99, 1}, parts, stopped);
  sizes.assign(4, 0);
  for (const uint32_t p : parts) ++sizes[p];
  EXPECT_EQ(sizes, (std::vector<uint32_t>{20, 80, 99, 1}));
}

TEST(AutoTime, IsNotGivenToACutThatCannotEndInIt) {
  const WeightedGraph graph = GraphOf(*GridPattern(200, 200, 3));
  CountedTime time(1e-4, 0);
  EXPECT_EQ(Partition(graph, {20000, 20000}, {}, time.Control()).status().code(),
            absl::StatusCode::kCancelled);
  time.Set(1e4);
  EXPECT_TRUE(Partition(graph, {20000, 20000}, {}, time.Control()).ok());
}

// With no time at all: the start and the reason, even if the start is worse than the present order;
// the answer to a caller then is the present order.
TEST(AutoTime, ThatIsOverAtOnceIsToldOf) {
  MappingProblem problem =
      ProblemOnModel("fat-tree(leaves=4,spines=1,hosts-per-leaf=4)", 16, 1, RingPattern(16, 10));
  problem.objective = {.congestion = 1};
  const Mapping worse =
      RunAlgorithm(**FindMappingAlgorithm("random"), problem, {}, {}, {})->mapping;
  const SearchControl stopped([] { return true; }, nullptr, [] { return 0.0; });
  const Mapped mapped = RunAlgorithm(Auto(), problem, worse, {}, stopped).value();
  EXPECT_EQ(mapped.mapping, worse);
  EXPECT_THAT(mapped.note, HasSubstr("no time to search"));
  const MappingMeasures before = Measure(problem, problem.present()).value();
  const MappingAnswer answer = AnswerMapping(problem, before, Auto(), worse, {}, stopped).value();
  EXPECT_EQ(answer.mapping, problem.present());
  EXPECT_EQ(answer.score, 1);
  EXPECT_THAT(answer.reason, HasSubstr("it stays; no time to search"));
}

// Every method hands back an order that can be had, whenever it is stopped.
TEST(AutoTime, LeavesAnAdmissibleOrderWheneverItEnds) {
  Xoshiro random(TestSeed());
  for (uint32_t round = 0; round < (FullTier() ? 40u : 8u); ++round) {
    const uint32_t per_host = 1 + 5 * (round % 2);
    MappingProblem problem = ProblemOnModel("torus(dims=4x4)", 16, per_host,
                                            RandomPattern(15 * per_host, 0.2, random()));
    problem.objective = {.congestion = 1, .hop_bytes = round % 3 == 0 ? 1.0 : 0.0};
    for (const char* name : {"auto", "recursive", "multicore", "multisection", "congestion"}) {
      CountedTime time(random.Below(1 << (round % 8 + 2)), 1);
      const SearchControl control = time.Control();
      const auto mapped = RunAlgorithm(**FindMappingAlgorithm(name), problem, {}, {}, control);
      ASSERT_TRUE(mapped.ok()) << name << ": " << mapped.status();
      EXPECT_TRUE(CheckMapping(*problem.places, problem.rank_count(), mapped->mapping).ok());
    }
  }
}

}  // namespace
}  // namespace coppice::auto_stop_test
