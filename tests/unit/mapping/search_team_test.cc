// Searches that span processes, over a team whose processes are threads of the test: the same
// result however the workers are spread, the same decisions in all processes whatever stops one of
// them, and errors of the team handed on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::search_team_test {
namespace {

// Where the processes meet: each leaves something and takes what all have left. Processes that call
// unlike functions, or one that has left for good, are an error and never a wait without end.
class MeetingPlace {
 public:
  explicit MeetingPlace(uint32_t count) : count_(count) {}

  absl::StatusOr<std::vector<std::vector<DenseSolution>>> Meet(uint32_t process,
                                                               const std::string& call,
                                                               std::vector<DenseSolution> left) {
    const absl::MutexLock lock(&mutex_);
    const uint64_t number = next_[process]++;
    Round& round = rounds_[number];
    if (round.left.empty()) round = {call, std::vector<std::vector<DenseSolution>>(count_), 0};
    if (round.call != call) failed_ = absl::StrCat(round.call, " meets ", call);
    round.left[process] = std::move(left);
    ++round.came;
    const auto is_over = [&] {
      for (const uint32_t gone : gone_) {
        if (next_[gone] <= number) failed_ = absl::StrCat("process ", gone, " has left");
      }
      return round.came == count_ || !failed_.empty();
    };
    mutex_.Await(absl::Condition(&is_over));
    if (!failed_.empty()) return absl::UnavailableError(failed_);
    return round.left;
  }

  // The process will not come again.
  void Leave(uint32_t process) {
    const absl::MutexLock lock(&mutex_);
    gone_.push_back(process);
  }

 private:
  struct Round {
    std::string call;
    std::vector<std::vector<DenseSolution>> left;
    uint32_t came = 0;
  };
  const uint32_t count_;
  absl::Mutex mutex_;
  std::map<uint64_t, Round> rounds_;
  std::map<uint32_t, uint64_t> next_;
  std::vector<uint32_t> gone_;
  std::string failed_;
};

class TeamOfThreads final : public SearchTeam {
 public:
  // Calls from `fails_at` on fail; 0: none do.
  TeamOfThreads(MeetingPlace* place, uint32_t process, uint32_t count, uint64_t fails_at = 0)
      : place_(place), process_(process), count_(count), fails_at_(fails_at) {}

  uint32_t process() const override { return process_; }
  uint32_t process_count() const override { return count_; }
  absl::StatusOr<bool> Any(bool mine) override {
    auto all = Meet("Any", {{{}, mine ? 1.0 : 0.0}});
    if (!all.ok()) return all.status();
    bool any = false;
    for (const auto& one : *all) any |= one[0].cost > 0;
    return any;
  }
  absl::Status ShareBest(DenseSolution& solution) override {
    auto all = Meet("ShareBest", {solution});
    if (!all.ok()) return all.status();
    solution = (*all)[0][0];
    for (const auto& one : *all) {
      if (one[0].cost < solution.cost) solution = one[0];
    }
    return absl::OkStatus();
  }
  absl::Status PassOn(DenseSolution& solution) override {
    auto all = Meet("PassOn", {solution});
    if (!all.ok()) return all.status();
    solution = (*all)[(process_ + count_ - 1) % count_][0];
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<DenseSolution>> Gather(std::vector<DenseSolution> mine) override {
    auto all = Meet("Gather", std::move(mine));
    if (!all.ok()) return all.status();
    std::vector<DenseSolution> gathered;
    if (process_ > 0) return gathered;
    for (const auto& one : *all) gathered.insert(gathered.end(), one.begin(), one.end());
    return gathered;
  }
  absl::StatusOr<std::vector<DenseSolution>> Scatter(std::vector<DenseSolution> all_solutions,
                                                     uint32_t each) override {
    auto all = Meet("Scatter", std::move(all_solutions));
    if (!all.ok()) return all.status();
    const auto begin = (*all)[0].begin() + process_ * each;
    return std::vector<DenseSolution>(begin, begin + each);
  }

  const std::vector<std::string>& calls() const { return calls_; }

 private:
  absl::StatusOr<std::vector<std::vector<DenseSolution>>> Meet(const std::string& call,
                                                               std::vector<DenseSolution> left) {
    calls_.push_back(call);
    if (fails_at_ > 0 && calls_.size() >= fails_at_) {
      return absl::UnavailableError(absl::StrCat("process ", process_, " is cut off"));
    }
    return place_->Meet(process_, call, std::move(left));
  }

  MeetingPlace* const place_;
  const uint32_t process_, count_;
  const uint64_t fails_at_;
  std::vector<std::string> calls_;
};

// Four nodes of four cores; groups of four ranks that talk a lot, shuffled over them.
MappingProblem Grouped(uint64_t seed) {
  constexpr uint32_t kSize = 16;
  Xoshiro random(seed);
  std::vector<double> distances(kSize * kSize);
  std::vector<Pattern::Entry> entries;
  for (uint32_t r = 0; r < kSize; ++r) {
    for (uint32_t c = 0; c < kSize; ++c) {
      if (r == c) continue;
      distances[r * kSize + c] = r / 4 == c / 4 ? 1 : r / 8 == c / 8 ? 5 : 20;
      entries.push_back({r, c, static_cast<double>(r % 4 == c % 4 ? 30 : 1 + random.Below(4)), 0});
    }
  }
  return ProblemOnMatrix(std::move(distances), Pattern::Make(kSize, std::move(entries)).value());
}

struct Method {
  std::string label, algorithm, workers;  // the option that says how many workers a process has
  std::vector<std::pair<std::string, double>> parameters;
};
void PrintTo(const Method& method, std::ostream* out) { *out << method.label; }

const Method kMethods[] = {
    {"annealing", "parallel-annealing", "workers", {{"iterations", 300}, {"exchange", 25}}},
    {"proportional",
     "parallel-annealing",
     "workers",
     {{"iterations", 300}, {"exchange", 25}, {"cauchy", 0}, {"candidates", 5}}},
    {"ring", "parallel-genetic", "workers", {{"generations", 12}}},
    {"master_slave", "parallel-genetic", "workers", {{"generations", 12}, {"master-slave", 1}}},
    {"combined", "combined", "workers", {{"generations", 6}, {"iterations", 20}}},
    {"combined_master_slave",
     "combined",
     "workers",
     {{"generations", 6}, {"iterations", 20}, {"master-slave", 1}}},
    {"memetic", "memetic", "islands", {{"population", 5}, {"sweeps", 4}, {"epochs", 2}}},
};

struct Outcome {
  std::vector<absl::StatusOr<Mapped>> mapped;   // [process]
  std::vector<std::vector<std::string>> calls;  // [process]
};

using StoppedOf = std::function<SearchControl::Stopped(uint32_t process)>;

// Every process on a thread of its own, with `workers` workers. Calls of the last one fail from
// `fails_at` on; 0: none do.
Outcome RunTeam(const MappingProblem& problem, const Method& method, uint32_t processes,
                uint32_t workers, uint32_t threads, const StoppedOf& stopped = nullptr,
                uint64_t fails_at = 0) {
  const MappingAlgorithm& algorithm = **FindMappingAlgorithm(method.algorithm);
  MeetingPlace place(processes);
  Outcome outcome;
  outcome.mapped.assign(processes, absl::UnknownError("not run"));
  outcome.calls.resize(processes);
  std::vector<std::thread> runs;
  for (uint32_t p = 0; p < processes; ++p) {
    runs.emplace_back([&, p] {
      TeamOfThreads team(&place, p, processes, p + 1 == processes ? fails_at : 0);
      const SearchControl control(stopped ? stopped(p) : nullptr, nullptr, nullptr, &team);
      AlgorithmOptions options;
      options.seed = 7;
      options.threads = threads;
      options.parameters = method.parameters;
      options.parameters.emplace_back(method.workers, workers);
      outcome.mapped[p] = RunAlgorithm(algorithm, problem, {}, options, control);
      outcome.calls[p] = team.calls();
      place.Leave(p);
    });
  }
  for (std::thread& run : runs) run.join();
  return outcome;
}

class SpanningMethods : public ::testing::TestWithParam<Method> {};

TEST_P(SpanningMethods, GiveOneResultHoweverWorkersAreSpread) {
  const MappingProblem problem = Grouped(TestSeed());
  const Outcome alone = RunTeam(problem, GetParam(), 1, 6, 1);
  ASSERT_TRUE(alone.mapped[0].ok()) << alone.mapped[0].status();
  for (const auto& [processes, workers, threads] :
       {std::tuple(2, 3, 1), std::tuple(2, 3, 2), std::tuple(3, 2, 1), std::tuple(6, 1, 1)}) {
    const Outcome team = RunTeam(problem, GetParam(), processes, workers, threads);
    for (int p = 0; p < processes; ++p) {
      ASSERT_TRUE(team.mapped[p].ok()) << team.mapped[p].status();
      EXPECT_EQ(team.mapped[p]->mapping, alone.mapped[0]->mapping)
          << p << " of " << processes << " processes, " << threads << " threads";
      EXPECT_EQ(team.mapped[p]->note, alone.mapped[0]->note);
    }
  }
}

TEST_P(SpanningMethods, StopTogether) {
  const MappingProblem problem = Grouped(TestSeed());
  for (const int patience : {0, 1, 40, 300}) {
    // Each process is stopped by a clock of its own, one of them never.
    std::vector<std::atomic<int>> asked(3);
    const StoppedOf stopped = [&](uint32_t p) {
      return [&asked, p, patience] { return p > 0 && ++asked[p] > patience * static_cast<int>(p); };
    };
    const Outcome team = RunTeam(problem, GetParam(), 3, 2, 1, stopped);
    for (int p = 0; p < 3; ++p) {
      ASSERT_TRUE(team.mapped[p].ok()) << patience << ": " << team.mapped[p].status();
      EXPECT_EQ(team.mapped[p]->mapping, team.mapped[0]->mapping) << patience;
      EXPECT_EQ(team.calls[p], team.calls[0]) << patience;
    }
  }
}

TEST_P(SpanningMethods, HandOnWhatTheTeamSays) {
  const MappingProblem problem = Grouped(TestSeed());
  const size_t calls = RunTeam(problem, GetParam(), 3, 2, 1).calls[0].size();
  ASSERT_GT(calls, 4);
  for (uint64_t fails_at = 1; fails_at <= calls; fails_at += 1 + calls / 12) {
    const Outcome team = RunTeam(problem, GetParam(), 3, 2, 1, nullptr, fails_at);
    EXPECT_EQ(team.mapped[2].status().message(), "process 2 is cut off") << fails_at;
    for (int p = 0; p < 2; ++p) {
      EXPECT_EQ(team.mapped[p].status().code(), absl::StatusCode::kUnavailable) << fails_at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpanningMethods, ::testing::ValuesIn(kMethods),
                         [](const auto& method) { return method.param.label; });

TEST(SearchTeam, EveryAlgorithmThatSpansProcessesIsTested) {
  for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
    const bool is_tested =
        std::any_of(std::begin(kMethods), std::end(kMethods),
                    [&](const auto& m) { return m.algorithm == algorithm->name; });
    EXPECT_EQ(algorithm->spans_processes, is_tested) << algorithm->name;
  }
}

}  // namespace
}  // namespace coppice::search_team_test
