// Wang's figures (Chinese Journal of Computers 38(5), 2015, section 5) on generated equivalents:
// the QAP cost of cp-nsc beside block order, pair exchange with 500,000 iterations and METIS, and
// the time it takes: 128, 144 and 192 ranks as in figures 7 and 9 and table 1, and 2,000, for which
// the paper estimates 250 s.
//
//   coppice_wang_benchmark [SEEDS]      3
//
// His traces are not to be had. What stands for them, and how it differs:
//   cg      NPB CG: 8 rows of 16; sums over a row by halves of it (butterfly), and the exchange
//   with
//           the transposed rank, of one vector each. Sizes as NPB has them, without the setup.
//   lu      NPB LU: 16 x 8, north, south, east, west.
//   sp, bt  NPB's multi-partition on a square torus: six successors and predecessors; bt's
//           solutions along the sweeps are 5 x 5 blocks, 4 times as large.
//   wing    3dwing (acoustic waves, 12 x 12): halos of four planes; here a 5-point stencil, of
//   which
//           the longer side weighs twice.
//   foam    openform (16 x 12): its mesh is not known; here a beam of bricks, an edge in eight
//           missing, cut by METIS into as many parts; numbered as METIS numbers them.
// At 2,000 ranks the same kinds and a 26-point stencil. Each in the program's own numbers and in
// shuffled ones. Nodes of 16 cores, switches; distances 1 : 3.7 : 4.1 as measured in the paper.
// Costs are of all bytes, those within a node included, relative to block order's.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/random.h"
#include "tests/benchmark/mapping/rivals.h"

namespace coppice {
namespace {

using Entries = std::vector<Pattern::Entry>;

constexpr uint32_t kCores = 16;

void Both(uint32_t u, uint32_t v, double bytes, Entries& entries) {
  entries.push_back({u, v, bytes, 1});
  entries.push_back({v, u, bytes, 1});
}

Entries ConjugateGradient(uint32_t rows, uint32_t columns) {
  Entries entries;
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t c = 0; c < columns; ++c) {
      const uint32_t u = r * columns + c;
      for (uint32_t half = 1; half < columns; half *= 2) {
        if ((c & half) == 0) Both(u, u + half, 6000, entries);
      }
      // The transposed rank holds the part of the vector that a row needs next; NPB with twice as
      // many columns as rows.
      const uint32_t v = (c / 2) * columns + 2 * r + c % 2;
      if (u < v && v < rows * columns) Both(u, v, 3000, entries);
    }
  }
  return entries;
}

Entries Stencil2d(uint32_t rows, uint32_t columns, double along, double across) {
  Entries entries;
  for (uint32_t u = 0; u < rows * columns; ++u) {
    if (u % columns + 1 < columns) Both(u, u + 1, along, entries);
    if (u / columns + 1 < rows) Both(u, u + columns, across, entries);
  }
  return entries;
}

// Successors (+1, 0), (0, +1), (-1, -1) of a square torus.
Entries MultiPartition(uint32_t side, double faces, double sweeps) {
  Entries entries;
  for (uint32_t i = 0; i < side; ++i) {
    for (uint32_t j = 0; j < side; ++j) {
      const uint32_t right = (i + 1) % side, down = (j + 1) % side;
      Both(i * side + j, right * side + j, faces + sweeps, entries);
      Both(i * side + j, i * side + down, faces + sweeps, entries);
      Both(right * side + down, i * side + j, faces + sweeps, entries);
    }
  }
  return entries;
}

Entries Stencil3d(uint32_t nx, uint32_t ny, uint32_t nz) {
  Entries entries;
  const auto at = [&](uint32_t x, uint32_t y, uint32_t z) { return (x * ny + y) * nz + z; };
  for (uint32_t u = 0; u < nx * ny * nz; ++u) {
    const uint32_t x = u / (ny * nz), y = u / nz % ny, z = u % nz;
    for (uint32_t d = 14; d < 27; ++d) {  // half of the 26 around
      const uint32_t i = x + d / 9 - 1, j = y + d / 3 % 3 - 1, k = z + d % 3 - 1;
      if (i >= nx || j >= ny || k >= nz) continue;  // below 0 wraps around
      const int off = (i != x) + (j != y) + (k != z);
      Both(u, at(i, j, k), off == 1 ? 100 : off == 2 ? 10 : 1, entries);
    }
  }
  return entries;
}

// A beam of 24 points a rank, cut by METIS.
Entries CutMesh(uint32_t ranks, uint64_t seed) {
  const uint32_t ny = ranks < 1000 ? 12 : 24, nz = ny, nx = 24 * ranks / (ny * nz);
  Xoshiro random(seed);
  WeightedGraph graph;
  std::vector<std::vector<uint32_t>> rows(nx * ny * nz);
  for (const Pattern::Entry& entry : Stencil3d(nx, ny, nz)) {
    if (entry.from > entry.to || random.Below(8) == 0) continue;
    rows[entry.from].push_back(entry.to);
    rows[entry.to].push_back(entry.from);
  }
  graph.begin.assign(1, 0);
  for (const std::vector<uint32_t>& row : rows) {
    graph.neighbours.insert(graph.neighbours.end(), row.begin(), row.end());
    graph.begin.push_back(graph.neighbours.size());
  }
  graph.weights.assign(graph.neighbours.size(), 1.0);
  graph.vertex_sizes.assign(rows.size(), 1);
  const std::vector<uint32_t> sizes(ranks, static_cast<uint32_t>(rows.size()) / ranks + 1);
  const std::vector<uint32_t> parts =
      Partition(graph, sizes, {.seed = seed, .imbalance = 0.03}).value();
  Entries entries;
  for (uint32_t u = 0; u < rows.size(); ++u) {
    for (const uint32_t v : rows[u]) {
      if (parts[u] != parts[v]) entries.push_back({parts[u], parts[v], 8, 0});
    }
  }
  return entries;
}

struct Case {
  const char* name;
  uint32_t ranks, nodes, switches;
  std::function<Entries(uint64_t seed)> make;
};

std::vector<Case> Cases() {
  return {
      {"cg 8x16", 128, 4, 2, [](uint64_t) { return ConjugateGradient(8, 16); }},
      {"lu 16x8", 128, 4, 2, [](uint64_t) { return Stencil2d(16, 8, 100, 100); }},
      {"sp 12x12", 144, 3, 3, [](uint64_t) { return MultiPartition(12, 100, 100); }},
      {"bt 12x12", 144, 3, 3, [](uint64_t) { return MultiPartition(12, 100, 400); }},
      {"wing 12x12", 144, 3, 3, [](uint64_t) { return Stencil2d(12, 12, 100, 200); }},
      {"foam", 192, 6, 2, [](uint64_t seed) { return CutMesh(192, seed); }},
      {"cg 32x64", 2048, 16, 8, [](uint64_t) { return ConjugateGradient(32, 64); }},
      {"lu 40x50", 2000, 25, 5, [](uint64_t) { return Stencil2d(40, 50, 100, 100); }},
      {"wing 40x50", 2000, 25, 5, [](uint64_t) { return Stencil2d(40, 50, 100, 200); }},
      {"sp 44x44", 1936, 11, 11, [](uint64_t) { return MultiPartition(44, 100, 100); }},
      {"26-point", 2000, 25, 5, [](uint64_t) { return Stencil3d(20, 10, 10); }},
      {"foam", 2000, 25, 5, [](uint64_t seed) { return CutMesh(2000, seed); }},
  };
}

std::shared_ptr<const Pattern> PatternOf(const Case& one, bool shuffled, uint64_t seed) {
  Entries entries = one.make(seed);
  std::vector<uint32_t> number(one.ranks);
  std::iota(number.begin(), number.end(), 0);
  Xoshiro random(seed);
  for (uint32_t r = one.ranks; shuffled && r > 1; --r) {
    std::swap(number[r - 1], number[random.Below(r)]);
  }
  for (Pattern::Entry& entry : entries) {
    entry.from = number[entry.from];
    entry.to = number[entry.to];
  }
  return Pattern::Make(one.ranks, std::move(entries)).value();
}

// A place for each core.
MappingProblem OnCores(const Case& one, std::shared_ptr<const Pattern> pattern) {
  MappingProblem problem;
  problem.pattern = std::move(pattern);
  problem.places = Places::Numbered(one.nodes * one.switches * kCores, 1).value();
  problem.distances =
      PlaceDistances::Uniform({kCores, one.nodes, one.switches}, {1, 3.7, 4.1}).value();
  problem.objective = {.qap_cost = 1};
  return problem;
}

// The nodes as places of 16 ranks, 1 from themselves: what METIS cuts for.
Mapping ByMetis(const Case& one, const MappingProblem& cores, double& seconds) {
  MappingProblem problem = cores;
  const uint32_t nodes = one.nodes * one.switches;
  std::vector<double> distances;
  for (uint32_t a = 0; a < nodes; ++a) {
    for (uint32_t b = 0; b < nodes; ++b) {
      distances.push_back((*cores.distances)(PlaceIndex(a * kCores), PlaceIndex(b * kCores)));
      if (a == b) distances.back() = 1;
    }
  }
  problem.places = Places::Numbered(nodes, kCores).value();
  problem.distances = PlaceDistances::Matrix(nodes, std::move(distances)).value();
  const RivalAnswer answer = *RunMetis(problem);
  seconds = answer.seconds;
  std::vector<uint32_t> parts;
  for (const PlaceIndex p : answer.mapping) parts.push_back(p.value());
  // Its parts may be larger than a node.
  FitParts(GraphOf(*problem.pattern), std::vector<uint32_t>(nodes, kCores), parts, {});
  std::vector<uint32_t> used(nodes, 0);
  Mapping mapping;
  for (const uint32_t node : parts) mapping.emplace_back(node * kCores + used[node]++);
  return mapping;
}

struct Line {
  const char* name;
  const char* algorithm;
  std::vector<std::pair<std::string, double>> parameters;
};

const std::vector<Line>& Lines() {
  static const auto* const lines = new std::vector<Line>{
      {"pe-500k", "pair-exchange", {}},
      {"published",
       "cp-nsc",
       {{"tries", 1}, {"vary", 0}, {"exchange-ranks", 0}, {"eigenvectors", 0}}},
      {"cp-nsc", "cp-nsc", {}},
      {"hierarchical", "hierarchical-clustering", {}},
  };
  return *lines;
}

void Compare(const Case& one, bool shuffled, uint64_t seed, bool notes) {
  const MappingProblem problem = OnCores(one, PatternOf(one, shuffled, seed));
  const double block = QapCost(*problem.pattern, *problem.distances, problem.present());
  std::printf("%-11s %4d %-8s %llu", one.name, one.ranks, shuffled ? "shuffled" : "own",
              static_cast<unsigned long long>(seed));
  const auto print = [&](const Mapping& mapping, double seconds) {
    std::printf("  %6.4f %6.3f s", QapCost(*problem.pattern, *problem.distances, mapping) / block,
                seconds);
    std::fflush(stdout);
  };
  double seconds = 0;
  const Mapping metis = ByMetis(one, problem, seconds);
  print(metis, seconds);
  std::string note;
  for (const Line& line : Lines()) {
    AlgorithmOptions options;
    options.seed = seed;
    options.parameters = line.parameters;
    const double begin = ProcessorSeconds();
    const Mapped mapped =
        RunAlgorithm(**FindMappingAlgorithm(line.algorithm), problem, {}, options, {}).value();
    print(mapped.mapping, ProcessorSeconds() - begin);
    if (std::string(line.name) == "cp-nsc") note = mapped.note;
  }
  std::printf("\n");
  if (notes) std::printf("    %s\n", note.c_str());
}

int Main(uint64_t seeds, bool notes) {
  std::printf("%-11s %4s %-8s %s  %-15s", "pattern", "P", "numbers", "s", "metis");
  for (const Line& line : Lines()) std::printf("  %-15s", line.name);
  std::printf("\n");
  for (const Case& one : Cases()) {
    for (const bool shuffled : {false, true}) {
      for (uint64_t seed = 1; seed <= seeds; ++seed) Compare(one, shuffled, seed, notes);
    }
  }
  return 0;
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) {
  return coppice::Main(argc > 1 ? static_cast<uint64_t>(std::atoi(argv[1])) : 3,
                       argc > 2 && std::string(argv[2]) == "--notes");
}
