#include "tests/unit/mapping/algorithm_cases.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice {
namespace {

// Ranks, slots a host and objective by the digits of the seed.
MappingProblem OnModel(const std::string& model, uint32_t hosts, uint64_t seed) {
  const uint32_t per_host = 1 + seed % 2;
  const uint32_t ranks = std::min(hosts * per_host, static_cast<uint32_t>(4 + seed / 2 % 4));
  const uint32_t used = std::min(hosts, (ranks + per_host - 1) / per_host + 1);
  MappingProblem problem = ProblemOnModel(model, used, per_host, RandomPattern(ranks, 0.5, seed));
  const Objective objectives[] = {{0, 1, 0}, {0, 0, 1}, {1, 0, 0}};
  problem.objective = objectives[seed / 6 % 3];
  problem.traffic = seed / 18 % 2 == 0 ? TrafficModel::kRoutes : TrafficModel::kEvenShortestPaths;
  return problem;
}

MappingProblem OnFatTree(uint64_t seed) {
  return OnModel("fat-tree(leaves=4,spines=2,hosts-per-leaf=2)", 8, seed);
}
MappingProblem OnTorus(uint64_t seed) { return OnModel("torus(dims=2x3)", 6, seed); }
MappingProblem OnCube(uint64_t seed) { return OnModel("hypercube(dims=3)", 8, seed); }
MappingProblem OnDragonfly(uint64_t seed) { return OnModel("dragonfly()", 12, seed); }

MappingProblem OnHierarchy(uint64_t seed) {
  MappingProblem problem;
  problem.pattern = RandomPattern(5 + seed % 4, 0.5, seed);
  problem.places = Places::Numbered(4, 2).value();
  problem.distances = PlaceDistances::Uniform({2, 2}, {1.0 + seed % 5, 10}).value();
  problem.objective = {.qap_cost = 1};
  return problem;
}

// Asymmetric, and places that are not at distance 0 from themselves; ranks that talk to themselves.
MappingProblem OnMatrix(uint64_t seed) {
  Xoshiro random(seed);
  const uint32_t places = 6 + seed % 2, ranks = places - seed / 2 % 2;
  std::vector<double> distances(places * places);
  for (double& d : distances) d = random.Below(30);
  std::vector<Pattern::Entry> entries;
  for (uint32_t i = 0; i < 3 * ranks; ++i) {
    entries.push_back({random.Below(ranks), random.Below(ranks), 1.0 + random.Below(9), 1});
  }
  return ProblemOnMatrix(std::move(distances), Pattern::Make(ranks, std::move(entries)).value());
}

MappingProblem OnLargeFatTree(uint64_t seed) {
  return ProblemOnModel("fat-tree(leaves=8,spines=4,hosts-per-leaf=4)", 32, 8,
                        seed % 2 == 0 ? GridPattern(16, 16, 7) : RandomPattern(250, 0.03, seed));
}
MappingProblem OnLargeTorus(uint64_t seed) {
  const uint32_t rows = FullTier() ? 32 : 20, hosts = 16 * rows;
  MappingProblem problem = ProblemOnModel(
      FullTier() ? "torus(dims=8x8x8)" : "torus(dims=8x8x5)", hosts, 1,
      seed % 2 == 0 ? GridPattern(16, rows, 7) : RandomPattern(hosts - 12, 0.01, seed));
  problem.objective = seed % 2 == 0 ? Objective{1, 1, 0} : Objective{0, 1, 0};
  return problem;
}
MappingProblem OnLargeHierarchy(uint64_t seed) {
  MappingProblem problem;
  problem.pattern = seed % 2 == 0 ? GridPattern(32, 32, 3) : RandomPattern(1024, 0.005, seed);
  problem.places = Places::Numbered(256, 4).value();
  problem.distances = PlaceDistances::Uniform({4, 8, 8}, {1, 10, 100}).value();
  problem.objective = {.qap_cost = 1};
  return problem;
}

}  // namespace

const std::vector<ProblemKind>& SmallKinds() {
  static const auto* const kinds = new std::vector<ProblemKind>{
      {"fat tree", OnFatTree},    {"torus", OnTorus},         {"cube", OnCube},
      {"dragonfly", OnDragonfly}, {"hierarchy", OnHierarchy}, {"matrix", OnMatrix}};
  return *kinds;
}

const std::vector<ProblemKind>& LargeKinds() {
  static const auto* const kinds = new std::vector<ProblemKind>{
      {"fat tree", OnLargeFatTree}, {"torus", OnLargeTorus}, {"hierarchy", OnLargeHierarchy}};
  return *kinds;
}

Mapping RandomMapping(const MappingProblem& problem, uint64_t seed) {
  std::vector<uint32_t> slots(problem.places->slot_count());
  for (uint32_t s = 0; s < slots.size(); ++s) slots[s] = s;
  Xoshiro random(seed);
  for (uint32_t i = static_cast<uint32_t>(slots.size()); i > 1; --i) {
    std::swap(slots[i - 1], slots[random.Below(i)]);
  }
  Mapping mapping;
  for (uint32_t r = 0; r < problem.rank_count(); ++r) {
    mapping.push_back(problem.places->place_of_slot(slots[r]));
  }
  return mapping;
}

bool MinimisesQapCost(const MappingAlgorithm& algorithm) {
  return absl::StrContains(algorithm.source, "QAP cost");
}

double Judged(const MappingAlgorithm& algorithm, const MappingProblem& problem,
              NaiveEvaluator& evaluator, const Mapping& mapping) {
  const NaiveMeasures measures = evaluator.Measure(mapping);
  // Distances are links here, so that it is hop-bytes, too.
  if (MinimisesQapCost(algorithm) && problem.objective.congestion > 0) return measures.qap_cost;
  return evaluator.Score(measures);
}

double LeastJudged(const MappingAlgorithm& algorithm, const MappingProblem& problem,
                   NaiveEvaluator& evaluator) {
  double least = std::numeric_limits<double>::infinity();
  ForEachMapping(problem, [&](const Mapping& mapping) {
    least = std::min(least, Judged(algorithm, problem, evaluator, mapping));
  });
  return least;
}

AlgorithmOptions QuickOptions(const MappingAlgorithm& algorithm, uint64_t seed) {
  constexpr std::pair<absl::string_view, double> kQuick[] = {
      {"rounds", 2},     {"proposals", 10},  {"iterations", 10},       {"workers", 3},
      {"population", 2}, {"generations", 2}, {"outer-iterations", 50}, {"steps", 200},
      {"sweeps", 2},     {"islands", 2},     {"candidates", 10},       {"exchange", 5}};
  AlgorithmOptions options;
  options.seed = seed;
  for (const AlgorithmParameter& parameter : algorithm.parameters) {
    for (const auto& [name, value] : kQuick) {
      if (parameter.name != name) continue;
      options.parameters.emplace_back(std::string(name),
                                      std::clamp(value, parameter.least, parameter.greatest));
    }
  }
  return options;
}

bool IsQuickFor(const MappingAlgorithm& algorithm, const MappingProblem& problem) {
  if (FullTier() || problem.places->slot_count() <= 256) return true;
  return std::none_of(algorithm.parameters.begin(), algorithm.parameters.end(),
                      [](const AlgorithmParameter& p) { return p.name == "population"; });
}

std::string TestName(const MappingAlgorithm& algorithm) {
  std::string name(algorithm.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace coppice
