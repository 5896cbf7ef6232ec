// The portfolio is never above any other method of the table: at random, on small and medium
// problems of every kind, by rounds and not by time.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::auto_portfolio_test {
namespace {

// Presets, but for those that would take minutes here.
AlgorithmOptions OptionsFor(const MappingAlgorithm& algorithm) {
  AlgorithmOptions options;
  for (const AlgorithmParameter& parameter : algorithm.parameters) {
    if (parameter.name == "iterations") options.parameters.emplace_back("iterations", 50);
    if (parameter.name == "generations") options.parameters.emplace_back("generations", 20);
    // Of memetic, whose 60 individuals find the best of so few ranks with a fifth of the cooling.
    if (parameter.name == "sweeps" && !FullTier()) options.parameters.emplace_back("sweeps", 60);
  }
  return options;
}

void ExpectNeverAbove(const MappingProblem& problem) {
  AlgorithmOptions rounds;
  rounds.parameters = {{"rounds", 6}};
  const MappingAlgorithm& portfolio = **FindMappingAlgorithm("auto");
  const Mapped mapped = RunAlgorithm(portfolio, problem, {}, rounds, {}).value();
  const double score = ScoreOf(problem, mapped.mapping);
  for (const MappingAlgorithm* other : MappingAlgorithms()) {
    if (other == &portfolio) continue;
    const auto theirs = RunAlgorithm(*other, problem, {}, OptionsFor(*other), {});
    if (!theirs.ok()) continue;  // it declines this kind of problem
    EXPECT_LE(score, ScoreOf(problem, theirs->mapping) * (1 + 1e-9))
        << other->name << " is better on " << problem.rank_count() << " ranks; " << mapped.note;
  }
}

TEST(AutoPortfolio, IsNeverAboveOthersOnFabrics) {
  Xoshiro random(TestSeed());
  const char* const models[] = {"fat-tree(leaves=4,spines=2,hosts-per-leaf=4)", "torus(dims=4x4)",
                                "dragonfly-plus", "torus(dims=2x3x3)"};
  const Objective objectives[] = {{1, 0, 0}, {0, 1, 0}, {1, 1, 0}, {0, 0, 1}};
  for (uint32_t round = 0; round < (FullTier() ? 48u : 3u); ++round) {
    const uint32_t per_host = FullTier() && round % 3 == 2 ? 5 : 1,
                   ranks = (10 + random.Below(7)) * per_host;
    const auto pattern = round % 2 == 0
                             ? RandomPattern(ranks, 0.05 + 0.5 * random.Unit() / per_host, random())
                             : GridPattern(4 * per_host, ranks / (4 * per_host), 9);
    MappingProblem problem = ProblemOnModel(models[round % 4], 16, per_host, pattern);
    problem.objective = objectives[(round / 4 + round) % 4];
    SCOPED_TRACE(models[round % 4]);
    SCOPED_TRACE(round);
    ExpectNeverAbove(problem);
  }
}

// Each rank of a binary tree and its parent, more bytes near the root.
std::shared_ptr<const Pattern> TreePattern(uint32_t ranks) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t r = 1; r < ranks; ++r) {
    const double bytes = 1000.0 / std::bit_width(r);
    entries.push_back({r, (r - 1) / 2, bytes, 1});
    entries.push_back({(r - 1) / 2, r, bytes, 1});
  }
  return Pattern::Make(ranks, std::move(entries)).value();
}

// Two to four ranks a host: no exchange of single ranks leads where those of whole hosts do.
TEST(AutoPortfolio, IsNeverAboveOthersWithAFewRanksAHost) {
  Xoshiro random(TestSeed());
  const char* const models[] = {"percs(supernodes=2,d=2)", "torus(dims=3x4)",
                                "fat-tree(leaves=4,spines=2,hosts-per-leaf=4)"};
  const Objective objectives[] = {{0, 1, 0}, {1, 1, 0}, {0, 0, 1}, {1, 0, 1}};
  for (uint32_t round = 0; round < (FullTier() ? 24u : 2u); ++round) {
    const uint32_t per_host = 2 + (round + 1) % 3, hosts = 12,
                   ranks = hosts * per_host - (FullTier() ? random.Below(per_host * 3) : 0);
    const auto pattern = round % 3 == 0   ? TreePattern(ranks)
                         : round % 3 == 1 ? GridPattern(hosts, per_host, 9)
                                          : RandomPattern(ranks, 0.1, random());
    MappingProblem problem = ProblemOnModel(models[round % 3], hosts, per_host, pattern);
    problem.objective = objectives[round % 4];
    SCOPED_TRACE(models[round % 3]);
    SCOPED_TRACE(round);
    ExpectNeverAbove(problem);
  }
}

// One pair weighs more than all others together: a search that is hot enough for it never settles
// the rest.
TEST(AutoPortfolio, IsNeverAboveOthersWhereOnePairOutweighsAll) {
  Xoshiro random(TestSeed());
  for (uint32_t round = 0; round < (FullTier() ? 24u : 2u); ++round) {
    const uint32_t ranks = 12;
    std::vector<Pattern::Entry> entries = {{3, 7, 3.4e8, 1}};
    for (uint32_t u = 0; u < ranks; ++u) {
      for (uint32_t v = 0; v < ranks; ++v) {
        if (u != v && random.Unit() < 0.3) entries.push_back({u, v, 1.0 + random.Below(1000), 1});
      }
    }
    std::vector<double> distances(64);
    for (uint32_t i = 0; i < 64; ++i) distances[i] = i / 8 == i % 8 ? 0 : 1.0 + random.Below(50);
    MappingProblem problem =
        ProblemOnMatrix(distances, Pattern::Make(ranks, std::move(entries)).value());
    problem.places = Places::Numbered(8, 3).value();
    SCOPED_TRACE(round);
    ExpectNeverAbove(problem);
  }
}

TEST(AutoPortfolio, IsNeverAboveOthersOnMatrices) {
  Xoshiro random(TestSeed());
  for (uint32_t round = 0; round < (FullTier() ? 24u : 1u); ++round) {
    const uint32_t places = 10 + random.Below(8);
    std::vector<double> distances(places * places);
    for (uint32_t a = 0; a < places; ++a) {
      for (uint32_t b = 0; b < places; ++b) {
        const uint32_t mirror = round % 2 == 0 && b < a ? b * places + a : a * places + b;
        distances[a * places + b] = a == b                     ? 0
                                    : mirror == a * places + b ? 1.0 + random.Below(50)
                                                               : distances[mirror];
      }
    }
    ExpectNeverAbove(ProblemOnMatrix(
        distances, RandomPattern(places - round % 3, 0.1 + 0.8 * random.Unit(), random())));
  }
}

}  // namespace
}  // namespace coppice::auto_portfolio_test
