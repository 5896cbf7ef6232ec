// What a search is said to take is more than what it takes, for every method of the portfolio's
// kinds of problems: all that is allocated is counted here, by a binary of its own.
#include "tests/support/search_bytes.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/input/pattern_file.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace {

std::atomic<size_t> held = 0, most_held = 0;

void* Counted(void* at) {
  if (at == nullptr) std::abort();
  const size_t now = held += malloc_usable_size(at);
  for (size_t most = most_held; most < now && !most_held.compare_exchange_weak(most, now);) {
  }
  return at;
}

void Free(void* at) {
  if (at != nullptr) held -= malloc_usable_size(at);
  std::free(at);
}

}  // namespace

void* operator new(size_t size) { return Counted(std::malloc(size)); }
void* operator new(size_t size, std::align_val_t align) {
  const auto unit = static_cast<size_t>(align);
  return Counted(std::aligned_alloc(unit, (size + unit - 1) / unit * unit));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return Counted(std::malloc(size));
}
void operator delete(void* at) noexcept { Free(at); }
void operator delete(void* at, size_t) noexcept { Free(at); }
void operator delete(void* at, std::align_val_t) noexcept { Free(at); }
void operator delete(void* at, size_t, std::align_val_t) noexcept { Free(at); }

namespace coppice::search_bytes_test {
namespace {

// Stopped after it has asked `most` times: some methods' presets take minutes.
void ExpectEnough(absl::string_view name, const MappingProblem& problem, uint32_t threads,
                  double rounds, uint64_t most = FullTier() ? 60'000 : 6'000) {
  AlgorithmOptions options;
  options.threads = threads;
  if (rounds > 0) options.parameters = {{"rounds", rounds}};
  uint64_t asked = 0;
  const SearchControl control(
      [&] { return __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) > most; }, nullptr);
  const MappingAlgorithm& algorithm = **FindMappingAlgorithm(name);
  const size_t estimate = SearchBytes(algorithm, problem, threads), before = held;
  most_held = before;
  const auto mapped = RunAlgorithm(algorithm, problem, {}, options, control);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_LE(most_held - before, estimate)
      << name << ", " << problem.rank_count() << " ranks, " << threads << " threads";
}

TEST(SearchBytes, AreEnoughForSparsePatterns) {
  for (const char* model : {"fat-tree(leaves=16,spines=8,hosts-per-leaf=16)", "torus(dims=16x16x8)",
                            "dragonfly-plus(p=8,leaves=8,spines=8,h=8)"}) {
    for (const uint32_t per_host : {1u, 8u}) {
      MappingProblem problem =
          ProblemOnModel(model, 256, per_host, GridPattern(16, 16 * per_host, 7));
      for (const Objective& objective : {Objective{.hop_bytes = 1}, Objective{.congestion = 1}}) {
        problem.objective = objective;
        ExpectEnough("auto", problem, 1, 1);
        ExpectEnough("auto", problem, 4, 1);
      }
    }
  }
}

TEST(SearchBytes, AreEnoughForDensePatterns) {
  MappingProblem problem = ProblemOnModel("torus(dims=7x7)", 49, 1, RandomPattern(49, 0.5, 1));
  for (const uint32_t threads : {1u, 4u}) {
    ExpectEnough("auto", problem, threads, 5);
    for (const char* name : {"memetic", "robust-tabu", "parallel-annealing", "parallel-genetic"}) {
      ExpectEnough(name, problem, threads, 0);
    }
    problem.traffic = TrafficModel::kEvenShortestPaths;
    for (const char* name : {"congestion", "greedy", "recursive", "multicore", "multisection"}) {
      ExpectEnough(name, problem, threads, 0);
    }
  }
}

void ExpectEnoughForAll(const MappingProblem& problem) {
  for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
    const bool is_endless = algorithm->memory == SearchMemory::kPortfolio;
    ExpectEnough(algorithm->name, problem, 2, is_endless ? 1 : 0, 500);
  }
}

// What a method's row leaves out shows where patterns are sparse: 32 to 56 MiB of matrices and
// populations on a thousand slots, 90 MiB of shares between 256 leaf switches, where 12 and 10 are
// said for a method that needs nothing else.
TEST(SearchBytes, AreEnoughForEveryMethod) {
  ExpectEnoughForAll(ProblemOnModel("fat-tree(leaves=16,spines=8,hosts-per-leaf=16)", 256, 4,
                                    GridPattern(32, 32, 1.0 / 3)));
  MappingProblem problem =
      ProblemOnModel("torus(dims=16x16)", 256, 1, GridPattern(16, 16, 1.0 / 3));
  problem.traffic = TrafficModel::kEvenShortestPaths;
  ExpectEnoughForAll(problem);
}

TEST(SearchBytes, AreEnoughForEigenvectors) {
  for (const uint32_t ranks : {1024u, 4096u}) {
    const MappingProblem problem = ProblemOnModel("fat-tree(leaves=16,spines=8,hosts-per-leaf=16)",
                                                  256, ranks / 256, GridPattern(32, ranks / 32, 7));
    for (const char* name : {"cp-nsc", "hierarchical-clustering", "pair-exchange"}) {
      ExpectEnough(name, problem, 2, 0);
    }
  }
}

// What reading a text takes, and then making one of it and of its like as --messages.
void ExpectEnoughToRead(const std::string& text) {
  const size_t estimate = ReadingBytes(text), before = held;
  most_held = before;
  {
    const auto pattern = ReadPattern(text, "p");
    ASSERT_TRUE(pattern.ok()) << pattern.status();
    EXPECT_LE(most_held - before, estimate) << text.substr(0, 60);
    const auto counts = ReadPattern(text, "p").value();
    ASSERT_TRUE(WithMessages(**pattern, *counts).ok());
  }
  EXPECT_LE(most_held - before, 2 * estimate) << text.substr(0, 60);
}

TEST(ReadingBytes, AreEnoughForTheDensestFiles) {
  std::string matrix, graph, coordinates, symmetric, trace;
  constexpr int kRanks = 90;
  for (int row = 1; row <= kRanks; ++row) {
    for (int column = 1; column <= kRanks; ++column) {
      absl::StrAppend(&matrix, 1, " ");
      if (column != row) absl::StrAppend(&graph, column, " ");
      absl::StrAppend(&coordinates, row, " ", column, "\n");
      if (column < row) absl::StrAppend(&symmetric, row, " ", column, "\n");
      absl::StrAppend(&trace, row - 1, " ", column - 1, " 1 1\n");
    }
    matrix += "\n";
    graph += "\n";
  }
  constexpr int kPairs = kRanks * (kRanks - 1) / 2;
  const auto market = [&](absl::string_view symmetry, int entries, absl::string_view lines) {
    return absl::StrCat("%%MatrixMarket matrix coordinate pattern ", symmetry, "\n", kRanks, " ",
                        kRanks, " ", entries, "\n", lines);
  };
  ExpectEnoughToRead(matrix);
  ExpectEnoughToRead(absl::StrCat(kRanks, " ", kPairs, "\n", graph));
  ExpectEnoughToRead(market("general", kRanks * kRanks, coordinates));
  ExpectEnoughToRead(market("symmetric", kPairs, symmetric));
  ExpectEnoughToRead(
      absl::StrCat("coppice-trace 1\nranks ", kRanks, "\n", trace, "end ", kRanks * kRanks, "\n"));
}

TEST(ReadingBytes, AreEnoughForRanksThatSayNothing) {
  ExpectEnoughToRead("%%MatrixMarket matrix coordinate pattern general\n1000000 1000000 1\n1 2\n");
  ExpectEnoughToRead("coppice-trace 1\napplication a\nranks 1000000\n0 1 1 1\nend 1\n");
  ExpectEnoughToRead(absl::StrCat("100000 1\n2\n1\n", std::string(99'998, '\n')));
  EXPECT_LT(ReadingBytes("2\n0 1\n1 0\n"), 10'000u);
}

}  // namespace
}  // namespace coppice::search_bytes_test
