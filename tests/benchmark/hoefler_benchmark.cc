// Hoefler and Snir's figures (ICS 2011, section 5) on generated equivalents: sparse matrices cut by
// METIS, mapped onto a 12x12x12 torus, PERCS and two fat trees, against the consecutive order, his
// methods beside congestion's.
//
//   coppice_hoefler_benchmark [EFFORT [SEEDS [NETWORK [metis|shuffled]]]]
//
// EFFORT 1, times the annealings of a search; SEEDS 3; all networks, both numberings. All ends by
// steps and not by the clock: equal arguments give equal numbers, but for the seconds. Threshold
// accepting looks at 20,000 candidates; in his 10 minutes, at 12 to 35 ms each, at 17,000 to
// 50,000.
//
// His matrices are not ours to ship. What stands for them, and how it differs:
//   fem   audikw_1, F1: stiffness matrices of crankshafts. Here nodes of a bent beam of bricks,
//         60x36x36, each joined to the 26 around it, one edge in eight missing and every fourth
//         brick hollow: a row has about 16 neighbours, theirs 28 to 78 with three unknowns a node,
//         which share their neighbours and so weigh what they exchange alike.
//   kkt   nlpkkt240: an optimal control problem on a 240^3 grid. Here 36^3: a control and a
//         multiplier for each point, multipliers joined to the controls of the 27 points around
//         and to each other along the axes. The same shape at 1/300 of its size, so that parts
//         have more surface.
// As in his paper a part needs an element of another once however many rows ask for it: 8 bytes.
//
// Consecutive is process i on node i, and what that is worth depends on how the partitioner numbers
// its parts. In his torus it has the torus's mean distance, 9.00: ParMETIS's numbers did not follow
// its cuts there, and parts numbered at random ("shuffled") are what he compares with. METIS's own
// numbers ("metis") follow its bisections: the torus begins at 4.75. On PERCS it is his methods
// that tell: from METIS's numbers they gain here about what he reports, from shuffled ones little.
//
// Congestion counts links between switches and hosts' own, which are made wide (his nodes are the
// switches themselves); dilation here leaves out the two links of the hosts. Torus: dimension
// order; the others: one shortest path a pair. Juropa: 3,292 nodes, leaf switches of 24 hosts.
// Ranger: 4,081 nodes; the paper does not give its shape. Here leaf switches of 12 hosts with four
// 12x cables up (a chassis of Sun's), and above them two more levels without pruning.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search/random.h"

namespace coppice {
namespace {

// Of the processor, whatever else runs.
double SecondsSince(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Edges from both ends, as WeightedGraph wants them.
WeightedGraph GraphOfEdges(uint32_t vertices,
                           const std::vector<std::pair<uint32_t, uint32_t>>& edges) {
  std::vector<std::vector<uint32_t>> rows(vertices);
  for (const auto& [a, b] : edges) {
    rows[a].push_back(b);
    rows[b].push_back(a);
  }
  WeightedGraph graph;
  graph.begin.assign(1, 0);
  graph.vertex_sizes.assign(vertices, 1);
  for (const std::vector<uint32_t>& row : rows) {
    graph.neighbours.insert(graph.neighbours.end(), row.begin(), row.end());
    graph.begin.push_back(graph.neighbours.size());
  }
  graph.weights.assign(graph.neighbours.size(), 1.0);
  return graph;
}

// Calls visit(a, b) for every two points of a grid that differ by at most 1 in each coordinate.
void ForEachBrickEdge(uint32_t nx, uint32_t ny, uint32_t nz,
                      const std::function<void(uint32_t a, uint32_t b, bool axis)>& visit) {
  const auto at = [&](int64_t x, int64_t y, int64_t z) {
    return static_cast<uint32_t>((x * ny + y) * nz + z);
  };
  for (int64_t x = 0; x < nx; ++x) {
    for (int64_t y = 0; y < ny; ++y) {
      for (int64_t z = 0; z < nz; ++z) {
        for (int64_t d = 14; d < 27; ++d) {  // half of the 26 around
          const int64_t i = x + d / 9 - 1, j = y + d / 3 % 3 - 1, k = z + d % 3 - 1;
          if (i < 0 || j < 0 || k < 0 || i >= nx || j >= ny || k >= nz) continue;
          visit(at(x, y, z), at(i, j, k), std::abs(i - x) + std::abs(j - y) + std::abs(k - z) == 1);
        }
      }
    }
  }
}

WeightedGraph FiniteElements(uint64_t seed) {
  constexpr uint32_t kX = 60, kY = 36, kZ = 36;
  Xoshiro random(seed);
  const auto hollow = [](uint32_t v) {  // holes of 6x6x6 in bricks of 12x12x12
    const uint32_t x = v / (kY * kZ), y = v / kZ % kY, z = v % kZ;
    return (x / 12 + y / 12 + z / 12) % 4 == 0 && x % 12 >= 6 && y % 12 >= 6 && z % 12 >= 6;
  };
  std::vector<uint32_t> number(kX * kY * kZ, 0);
  uint32_t vertices = 0;
  for (uint32_t v = 0; v < number.size(); ++v) number[v] = hollow(v) ? 0 : vertices++;
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  ForEachBrickEdge(kX, kY, kZ, [&](uint32_t a, uint32_t b, bool) {
    if (!hollow(a) && !hollow(b) && random.Below(8) != 0) edges.emplace_back(number[a], number[b]);
  });
  return GraphOfEdges(vertices, edges);
}

WeightedGraph Kkt(uint64_t) {
  constexpr uint32_t kN = 36, kPoints = kN * kN * kN;
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  ForEachBrickEdge(kN, kN, kN, [&](uint32_t a, uint32_t b, bool axis) {
    edges.emplace_back(a, kPoints + b);
    edges.emplace_back(b, kPoints + a);
    if (axis) edges.emplace_back(kPoints + a, kPoints + b);
  });
  for (uint32_t v = 0; v < kPoints; ++v) edges.emplace_back(v, kPoints + v);
  return GraphOfEdges(2 * kPoints, edges);
}

// What a product with the matrix sends between `ranks` parts of it.
std::shared_ptr<const Pattern> PatternOf(const WeightedGraph& graph, uint32_t ranks, uint64_t seed,
                                         bool shuffled) {
  const std::vector<uint32_t> sizes(ranks, graph.vertex_count() / ranks + 1);
  const std::vector<uint32_t> parts =
      Partition(graph, sizes, {.seed = seed, .imbalance = 0.03}).value();
  std::vector<uint32_t> number(ranks);
  for (uint32_t r = 0; r < ranks; ++r) number[r] = r;
  Xoshiro random(seed);
  for (uint32_t r = ranks; shuffled && r > 1; --r) {
    std::swap(number[r - 1], number[random.Below(r)]);
  }
  std::vector<Pattern::Entry> entries;
  std::vector<uint32_t> asked(ranks, 0);  // the vertex that this part asked for last, plus 1
  for (uint32_t v = 0; v < graph.vertex_count(); ++v) {
    for (size_t e = graph.begin[v]; e < graph.begin[v + 1]; ++e) {
      const uint32_t to = parts[graph.neighbours[e]];
      if (to == parts[v] || asked[to] == v + 1) continue;
      asked[to] = v + 1;
      entries.push_back({number[parts[v]], number[to], 8, 1});
    }
  }
  return Pattern::Make(ranks, std::move(entries)).value();
}

struct Network {
  const char* name;
  const char* model;
  bool dimension_order;
  uint32_t ranks;
  double rounds;  // annealings of each search: on the torus one takes some 4 s, else less than 1 s
};

MappingProblem ProblemOn(const Network& network, std::shared_ptr<const Pattern> pattern) {
  MappingProblem problem;
  const auto fabric = LoadFabric(std::string("model:") + network.model).value();
  auto snapshot = MakeSnapshot(fabric, nullptr).value();
  if (network.dimension_order) {
    snapshot = std::make_shared<Snapshot>(Snapshot{fabric, Routes::DimensionOrder(fabric).value(),
                                                   snapshot->hierarchy, snapshot->load});
  }
  problem.snapshot = snapshot;
  std::vector<EndpointIndex> endpoints;
  for (uint32_t h = 0; h < network.ranks; ++h) {
    endpoints.push_back(fabric->endpoints_of_host(HostIndex(h))[0]);
  }
  problem.places = Places::OfEndpoints(*fabric, endpoints, 1).value();
  problem.distances = PlaceDistances::Hops(*problem.places, snapshot->routes->distances()).value();
  problem.pattern = std::move(pattern);
  problem.objective = {.congestion = 1};
  return problem;
}

struct Line {
  const char* name;
  const char* algorithm;
  const char* start;  // an earlier line, or null
  Objective objective = {.congestion = 1};
};

constexpr Line kLines[] = {
    {"greedy", "greedy", nullptr},
    {"recursive", "recursive", nullptr},
    {"rcm", "rcm", nullptr},
    {"greedy + threshold", "threshold-accepting", "greedy"},
    {"recursive + threshold", "threshold-accepting", "recursive"},
    {"rcm + threshold", "threshold-accepting", "rcm"},
    {"congestion", "congestion", nullptr},
    {"congestion for both", "congestion", nullptr, {.congestion = 1, .hop_bytes = 16}},
};

void Compare(const Network& network, const std::string& what, MappingProblem problem, double rounds,
             uint64_t seed) {
  const MappingMeasures present = Measure(problem, problem.present()).value();
  const auto print = [&](const char* name, const Mapping& mapping, double taken) {
    const MappingMeasures m = Measure(problem, mapping).value();
    std::printf("%-8s %-12s %4u  %llu  %-24s %10.1f %6.1f %%  %6.2f %6.1f %%  %9.4f s\n",
                network.name, what.c_str(), network.ranks, static_cast<unsigned long long>(seed),
                name, *m.max_congestion, 100 - 100 * *m.max_congestion / *present.max_congestion,
                *m.average_dilation - 2,
                100 - 100 * (*m.average_dilation - 2) / (*present.average_dilation - 2), taken);
    std::fflush(stdout);
  };
  print("consecutive", problem.present(), 0);
  std::map<std::string, Mapping> done;
  for (const Line& line : kLines) {
    AlgorithmOptions options;
    options.seed = seed;
    if (std::string(line.algorithm) == "threshold-accepting") {
      options.parameters = {{"outer-iterations", 1000}};
    } else if (std::string(line.algorithm) == "congestion") {
      options.parameters = {{"rounds", rounds}};
    }
    const Mapping start = line.start != nullptr ? done[line.start] : Mapping{};
    problem.objective = line.objective;
    const std::clock_t begin = std::clock();
    const Mapped mapped =
        RunAlgorithm(**FindMappingAlgorithm(line.algorithm), problem, start, options, {}).value();
    print(line.name, mapped.mapping, SecondsSince(begin));
    done[line.name] = mapped.mapping;
  }
}

int Main(double effort, uint64_t seeds, const std::string& only, const std::string& numbering) {
  const Network networks[] = {
      {"torus", "torus(dims=12x12x12,speeds=12xxdr/4xsdr)", true, 1728, 2},
      {"percs", "percs(supernodes=289,d=9)", false, 1792, 8},
      {"juropa", "fat-tree(leaves=138,spines=12,hosts-per-leaf=24,speeds=12xxdr/qdr)", false, 1792,
       8},
      {"ranger", "xgft(m=12x12x29,w=1x4x12,speeds=12xxdr/12xsdr)", false, 1792, 8},
  };
  std::printf("%-8s %-12s %4s  %s  %-24s %10s %8s  %6s %8s  %11s\n", "network", "what", "P", "s",
              "method", "congestion", "less", "dilat.", "less", "time");
  for (const bool shuffled : {false, true}) {
    if (!numbering.empty() && (numbering == "shuffled") != shuffled) continue;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      for (const Network& network : networks) {
        if (!only.empty() && only != network.name) continue;
        const bool kkt = network.dimension_order;  // he shows nlpkkt240 on the torus
        const WeightedGraph graph = kkt ? Kkt(seed) : FiniteElements(seed);
        Compare(network, std::string(kkt ? "kkt " : "fem ") + (shuffled ? "shuffled" : "metis"),
                ProblemOn(network, PatternOf(graph, network.ranks, seed, shuffled)),
                effort * network.rounds, seed);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) {
  return coppice::Main(argc > 1 ? std::atof(argv[1]) : 1,
                       argc > 2 ? static_cast<uint64_t>(std::atoi(argv[2])) : 3,
                       argc > 3 ? argv[3] : "", argc > 4 ? argv[4] : "");
}
