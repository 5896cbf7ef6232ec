// Mapping beside Debian's Scotch and METIS in one run, at equal processor time: sums of bytes times
// distance over patterns and meshes, on hierarchies and fabrics, with block
// and shuffled present orders, one rank a place and many.
//
// DATA holds patterns/ and infiniband/plafrim/ as tests/data does, and meshes/ with 3elt.graph and
// copter2.graph of METIS and VieM.
//
//   coppice_mapping_benchmark DATA [--seconds=10] [--only=TEXT] [--threads=1]
//   coppice_mapping_benchmark --large
//
// "auto" has what Scotch took, in processor seconds from the pattern's text on (Scotch's start and
// reading are in its time, too), "long" the seconds of the option. A ratio below 1 is Coppice's
// gain. "!": the rival overfills places, so that its figure is none that a job could have.
// --large: 131,072 ranks of a 26-point stencil on a 3-level fat tree, against block order.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/input/pattern_file.h"
#include "daemon/mapping/mapping_metrics.h"
#include "tests/benchmark/mapping/cases.h"
#include "tests/benchmark/mapping/rivals.h"

namespace coppice {
namespace {

struct Flags {
  std::string data, only;
  double seconds = 0;
  uint32_t threads = 1;
};

// The logarithms' mean of ratios, of one kind of case.
struct Mean {
  double sum = 0;
  int count = 0, worse = 0;
  void Add(double ratio) {
    sum += std::log(ratio);
    ++count;
    worse += ratio > 1 + 1e-9 ? 1 : 0;
  }
  double value() const { return count > 0 ? std::exp(sum / count) : 1; }
};

double CostOf(const MappingProblem& problem, const Mapping& mapping) {
  return QapCost(*problem.pattern, *problem.distances, mapping);
}

// Stopped by processor time; the pattern is read anew within it.
double AutoCost(const MappingProblem& problem, const std::string& text, double seconds,
                uint32_t threads) {
  const double end = ProcessorSeconds() + seconds;
  MappingProblem mine = problem;
  mine.pattern = ReadMetisGraph(text, "benchmark").value();
  AlgorithmOptions options;
  options.threads = threads;
  const SearchControl control([end] { return ProcessorSeconds() > end; }, nullptr,
                              [end] { return end - ProcessorSeconds(); });
  const auto mapped = RunAlgorithm(**FindMappingAlgorithm("auto"), mine, {}, options, control);
  return CostOf(problem, mapped.value().mapping);
}

std::string TreeOf(const BenchmarkTarget& target) {
  if (target.extents.empty()) return "";
  std::string tree = absl::StrCat("tleaf ", target.extents.size());
  for (size_t level = target.extents.size(); level-- > 0;) {
    absl::StrAppend(&tree, " ", target.extents[level], " ", target.distances[level]);
  }
  return tree + "\n";
}

void Compare(const BenchmarkPattern& pattern, const BenchmarkTarget& target, double slack,
             const Flags& flags, Mean& small, Mean& large) {
  const auto ranks = ReadMetisGraph(pattern.text, pattern.name).value();
  const MappingProblem block = BenchmarkProblem(target, ranks, slack, false);
  const std::optional<RivalAnswer> scotch = RunScotch(block, TreeOf(target), slack);
  const std::optional<RivalAnswer> metis = RunMetis(block);
  for (const bool shuffled : {false, true}) {
    const MappingProblem problem = BenchmarkProblem(target, ranks, slack, shuffled);
    const double present = CostOf(problem, problem.present());
    std::printf("| %s | %s | %g %% | %s | %.0f |", pattern.name.c_str(), target.name.c_str(),
                100 * slack, shuffled ? "shuffled" : "block", present);
    if (metis.has_value()) {
      std::printf(" %.0f%s |", CostOf(block, metis->mapping), metis->overfull > 0 ? "!" : "");
    } else {
      std::printf(" |");
    }
    if (scotch.has_value()) {
      const double theirs = CostOf(block, scotch->mapping);
      const double ours = AutoCost(problem, pattern.text, scotch->seconds, flags.threads);
      std::printf(" %.0f%s | %.3f | %.0f | %.3f |", theirs, scotch->overfull > 0 ? "!" : "",
                  scotch->seconds, ours, ours / theirs);
      const bool is_large = ranks->rank_count() >= 1000;
      (is_large ? large : small).Add(ours / theirs);
    } else {
      std::printf(" | | | |");
    }
    if (flags.seconds > 0) {
      std::printf(" %.0f |", AutoCost(problem, pattern.text, flags.seconds, flags.threads));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

int CompareAll(const Flags& flags) {
  std::printf(
      "| pattern | places | slack | order | present | METIS | Scotch | s | auto | ratio |%s\n",
      flags.seconds > 0 ? " long |" : "");
  std::printf("|---|---|---|---|---|---|---|---|---|---|%s\n", flags.seconds > 0 ? "---|" : "");
  Mean small, large;
  for (const BenchmarkPattern& pattern : BenchmarkPatterns(flags.data)) {
    const uint32_t ranks = ReadMetisGraph(pattern.text, pattern.name).value()->rank_count();
    for (const BenchmarkTarget& target : BenchmarkTargets(flags.data, ranks)) {
      const std::string name = absl::StrCat(pattern.name, " ", target.name);
      if (name.find(flags.only) == std::string::npos) continue;
      if (ranks >= 2 * target.places) Compare(pattern, target, 0.03, flags, small, large);
      Compare(pattern, target, 0.0, flags, small, large);
    }
  }
  std::printf(
      "\nbelow 1,000 ranks: mean ratio %.3f, worse in %d of %d; from 1,000: %.3f, %d of %d\n",
      small.value(), small.worse, small.count, large.value(), large.worse, large.count);
  return 0;
}

int Large() {
  const std::string text = StencilText(64, 64, 32, true);
  const double begin = ProcessorSeconds();
  const auto pattern = ReadMetisGraph(text, "stencil").value();
  const double reading = ProcessorSeconds() - begin;
  BenchmarkTarget target;
  target.name = "fat tree, 3 levels";
  target.fabric = "model:fat-tree(ports=64,levels=3)";
  target.places = 65536;
  const MappingProblem problem = BenchmarkProblem(target, pattern, 0, false);
  const double block = CostOf(problem, problem.present());
  const double start = ProcessorSeconds();
  double best = block;
  const SearchControl control([&] { return ProcessorSeconds() > start + 10 * reading; },
                              [&](const Mapping& mapping) {
                                best = CostOf(problem, mapping);
                                std::printf("%.2f s: %.4f of block order\n",
                                            ProcessorSeconds() - start, best / block);
                              },
                              [&] { return start + 10 * reading - ProcessorSeconds(); });
  const auto mapped = RunAlgorithm(**FindMappingAlgorithm("auto"), problem, {}, {}, control);
  std::printf("131,072 ranks: reading %.2f s; after %.2f s %.4f of block order; %s\n", reading,
              ProcessorSeconds() - start, CostOf(problem, mapped.value().mapping) / block,
              mapped->note.c_str());
  return 0;
}

int Run(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    double number = 0;
    if (word == "--large") return Large();
    if (absl::ConsumePrefix(&word, "--seconds=") && absl::SimpleAtod(word, &number)) {
      flags.seconds = number;
    } else if (absl::ConsumePrefix(&word, "--threads=") && absl::SimpleAtod(word, &number)) {
      flags.threads = static_cast<uint32_t>(number);
    } else if (absl::ConsumePrefix(&word, "--only=")) {
      flags.only = std::string(word);
    } else {
      flags.data = std::string(word);
    }
  }
  if (flags.data.empty()) {
    std::fprintf(stderr, "usage: %s DATA [--seconds=S] [--only=TEXT] [--threads=N] | --large\n",
                 argv[0]);
    return 2;
  }
  return CompareAll(flags);
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Run(argc, argv); }
