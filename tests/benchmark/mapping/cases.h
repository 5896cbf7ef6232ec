// Patterns, fabrics and present orders that mapping is measured on.
#ifndef COPPICE_TESTS_BENCHMARK_MAPPING_CASES_H_
#define COPPICE_TESTS_BENCHMARK_MAPPING_CASES_H_

#include <memory>
#include <string>
#include <vector>

#include "daemon/mapping/mapping_problem.h"

namespace coppice {

struct BenchmarkPattern {
  std::string name;
  std::string text;  // as METIS reads it, with whole weights
};

struct BenchmarkTarget {
  std::string name;
  uint32_t places = 0;
  // A uniform hierarchy, or a fabric of which the first `places` hosts are taken.
  std::vector<uint32_t> extents;
  std::vector<double> distances;
  std::string fabric;  // as LoadFabric takes it
  std::string tables;  // file or directory of forwarding tables, or ""
};

// From the directory of shared data, and stencils.
std::vector<BenchmarkPattern> BenchmarkPatterns(const std::string& data);
// Those that suit `ranks` ranks: with one rank a place and, for 2,000 and more, with many.
std::vector<BenchmarkTarget> BenchmarkTargets(const std::string& data, uint32_t ranks);

// The target's fabric with its routes. Aborts where there is none.
std::shared_ptr<const Snapshot> LoadSnapshot(const BenchmarkTarget& target);

// rows x columns x planes ranks, each exchanging with its neighbours in the 3x3x3 cube around it
// (`all`) or its six faces; faces 100, edges 10, corners 1.
std::string StencilText(uint32_t rows, uint32_t columns, uint32_t planes, bool all);

// The places in order or `shuffled`, each for so many ranks that all have room with `slack`; the
// objective is the QAP cost.
MappingProblem BenchmarkProblem(const BenchmarkTarget& target,
                                std::shared_ptr<const Pattern> pattern, double slack,
                                bool shuffled);

}  // namespace coppice

#endif  // COPPICE_TESTS_BENCHMARK_MAPPING_CASES_H_
