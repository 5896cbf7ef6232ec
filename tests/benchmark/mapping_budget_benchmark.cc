// How late "auto" comes back from a budget, and how much memory it takes for how many ranks: a
// 26-point stencil, from the order of its numbers and from a shuffled one.
//
//   coppice_mapping_budget_benchmark [--ranks=65536] [--only=TEXT] [--budgets=0,0.01,0.1,1]
//                                    [--threads=1]
//
// Each line is a process of its own, so that its greatest memory is that of the line. "measure" is
// what measuring the present order once takes, "late" what the answer took beyond the budget,
// "before" and "most" the resident memory without the search and with it at its greatest.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/input/pattern_file.h"
#include "daemon/mapping/mapping_metrics.h"
#include "tests/benchmark/mapping/cases.h"
#include "tests/support/search_bytes.h"

namespace coppice {
namespace {

struct Case {
  const char* name;
  const char* fabric;
  uint32_t places;
  uint32_t x, y, z;  // of the stencil: ranks
};

constexpr Case kCases[] = {
    {"fat tree, 64", "model:fat-tree(leaves=8,spines=4,hosts-per-leaf=8)", 64, 4, 4, 4},
    {"fat tree, 1,024", "model:fat-tree(leaves=64,spines=16,hosts-per-leaf=16)", 1024, 16, 8, 8},
    {"fat tree, 16,384", "model:fat-tree(ports=42,levels=3)", 16384, 32, 32, 16},
    {"fat tree, 32,768", "model:fat-tree(ports=52,levels=3)", 32768, 32, 32, 32},
    {"fat tree, 65,536", "model:fat-tree(ports=64,levels=3)", 65536, 64, 32, 32},
    {"fat tree, 131,072", "model:fat-tree(ports=64,levels=3)", 65536, 64, 64, 32},
    {"torus, 64", "model:torus(dims=4x4x4)", 64, 4, 4, 4},
    {"torus, 1,024", "model:torus(dims=16x8x8)", 1024, 16, 8, 8},
    {"torus, 16,384", "model:torus(dims=32x32x16)", 16384, 32, 32, 16},
    {"torus, 32,768", "model:torus(dims=32x32x16,hosts=2)", 32768, 32, 32, 32},
    {"torus, 65,536", "model:torus(dims=32x32x16,hosts=4)", 65536, 64, 32, 32},
    {"torus, 131,072", "model:torus(dims=32x32x16,hosts=4)", 65536, 64, 64, 32},
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ResidentMiB() {
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double MostMiB() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void RunCase(const Case& c, bool congestion, bool shuffled, double budget, uint32_t threads) {
  BenchmarkTarget target;
  target.name = c.name;
  target.fabric = c.fabric;
  target.places = c.places;
  const auto pattern = ReadMetisGraph(StencilText(c.x, c.y, c.z, true), "stencil").value();
  MappingProblem problem = BenchmarkProblem(target, pattern, 0, shuffled);
  problem.objective = {.congestion = congestion ? 1.0 : 0.0, .qap_cost = congestion ? 0.0 : 1.0};
  double begin = Now();
  const MappingMeasures present = Measure(problem, problem.present()).value();
  const double measure = Now() - begin, before = ResidentMiB();
  // What reading took at its greatest is not the search's.
  std::ofstream("/proc/self/clear_refs") << "5";
  AlgorithmOptions options;
  options.threads = threads;
  const MappingAlgorithm& algorithm = **FindMappingAlgorithm("auto");
  const size_t estimate = SearchBytes(algorithm, problem, options.threads);
  begin = Now();
  const SearchControl control([&] { return Now() - begin >= budget; }, nullptr,
                              [&] { return begin + budget - Now(); });
  const Mapped mapped = RunAlgorithm(algorithm, problem, {}, options, control).value();
  const double took = Now() - begin;
  std::ifstream status("/proc/self/status");
  double most = MostMiB();
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) most = std::stod(line.substr(6)) / 1024;
  }
  const double score = Score(problem.objective, Measure(problem, mapped.mapping).value(), present);
  std::printf("| %s | %s | %s | %g | %.3f | %.3f | %.4f | %.0f | %.0f | %.0f | %.0f |\n", c.name,
              congestion ? "congestion" : "cost", shuffled ? "shuffled" : "block", budget, measure,
              took - budget, score, before, most, most - before,
              static_cast<double>(estimate) / (1 << 20));
  std::fflush(stdout);
  if (getenv("NOTES") != nullptr) std::printf("%s\n", mapped.note.c_str());
}

int Run(int argc, char** argv) {
  uint32_t ranks = 1 << 20, threads = 1;
  std::string only;
  std::vector<double> budgets = {0, 0.01, 0.1, 1};
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (absl::ConsumePrefix(&word, "--only=")) only = std::string(word);
    if (absl::ConsumePrefix(&word, "--ranks=") && !absl::SimpleAtoi(word, &ranks)) return 2;
    if (absl::ConsumePrefix(&word, "--threads=") && !absl::SimpleAtoi(word, &threads)) return 2;
    if (absl::ConsumePrefix(&word, "--budgets=")) {
      budgets.clear();
      for (const absl::string_view text : absl::StrSplit(word, ',')) {
        if (!absl::SimpleAtod(text, &budgets.emplace_back())) return 2;
      }
    }
  }
  std::printf(
      "| fabric, ranks | objective | order | budget | measure | late | score | before | most | "
      "search MiB | estimate MiB |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Case& c : kCases) {
    if (c.x * c.y * c.z > ranks) continue;
    for (const bool congestion : {false, true}) {
      for (const bool shuffled : {false, true}) {
        const std::string name = absl::StrCat(c.name, congestion ? " congestion" : " cost",
                                              shuffled ? " shuffled" : " block");
        if (name.find(only) == std::string::npos) continue;
        for (const double budget : budgets) {
          std::fflush(stdout);
          const pid_t child = fork();
          if (child == 0) {
            RunCase(c, congestion, shuffled, budget, threads);
            std::fflush(stdout);
            _exit(0);
          }
          waitpid(child, nullptr, 0);
        }
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) { return coppice::Run(argc, argv); }
