#include "tests/unit/mapping/mapping_oracle.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/fabric/fabric_source.h"
#include "daemon/mapping/search/random.h"

namespace coppice {

MappingProblem ProblemOnModel(const std::string& model, uint32_t hosts, uint32_t ranks_per_host,
                              std::shared_ptr<const Pattern> pattern) {
  MappingProblem problem;
  const std::shared_ptr<const Fabric> fabric = LoadFabric("model:" + model).value();
  problem.snapshot = MakeSnapshot(fabric, nullptr).value();
  std::vector<EndpointIndex> endpoints;
  for (uint32_t h = 0; h < hosts; ++h) {
    endpoints.push_back(fabric->endpoints_of_host(HostIndex(h))[0]);
  }
  problem.places = Places::OfEndpoints(*fabric, endpoints, ranks_per_host).value();
  problem.distances =
      PlaceDistances::Hops(*problem.places, problem.snapshot->routes->distances()).value();
  problem.pattern = std::move(pattern);
  problem.objective = {.hop_bytes = 1};
  return problem;
}

MappingProblem ProblemOnMatrix(std::vector<double> distances,
                               std::shared_ptr<const Pattern> pattern) {
  MappingProblem problem;
  uint32_t count = 0;
  while (size_t{count} * count < distances.size()) ++count;
  problem.places = Places::Numbered(count, 1).value();
  problem.distances = PlaceDistances::Matrix(count, std::move(distances)).value();
  problem.pattern = std::move(pattern);
  problem.objective = {.qap_cost = 1};
  return problem;
}

std::shared_ptr<const Pattern> RandomPattern(uint32_t ranks, double density, uint64_t seed) {
  Xoshiro random(seed);
  std::vector<Pattern::Entry> entries;
  for (uint32_t u = 0; u < ranks; ++u) {
    for (uint32_t v = 0; v < ranks; ++v) {
      if (u != v && random.Unit() < density) {
        entries.push_back({u, v, 1.0 + random.Below(20), 1.0});
      }
    }
  }
  return Pattern::Make(ranks, std::move(entries)).value();
}

std::shared_ptr<const Pattern> RingPattern(uint32_t ranks, double bytes) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t u = 0; u < ranks; ++u) {
    entries.push_back({u, (u + 1) % ranks, bytes, 1});
    entries.push_back({(u + 1) % ranks, u, bytes, 1});
  }
  return Pattern::Make(ranks, std::move(entries)).value();
}

std::shared_ptr<const Pattern> GridPattern(uint32_t rows, uint32_t columns, double bytes) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t u = 0; u < rows * columns; ++u) {
    for (const uint32_t v : {u + 1, u + columns}) {
      if (v >= rows * columns || (v == u + 1 && v % columns == 0)) continue;
      entries.push_back({u, v, bytes, 1});
      entries.push_back({v, u, bytes, 1});
    }
  }
  return Pattern::Make(rows * columns, std::move(entries)).value();
}

std::shared_ptr<const Pattern> Scaled(const Pattern& pattern, double unit) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t u = 0; u < pattern.rank_count(); ++u) {
    entries.push_back({u, u, unit * pattern.self_bytes(u), 0});
    for (const Exchange& e : pattern.exchanges(u)) {
      if (e.out_bytes > 0) entries.push_back({u, e.peer, unit * e.out_bytes, 1});
    }
  }
  return Pattern::Make(pattern.rank_count(), std::move(entries)).value();
}

void ForEachMapping(const MappingProblem& problem,
                    const std::function<void(const Mapping&)>& visit) {
  const uint32_t places = problem.places->count();
  std::vector<uint32_t> room(places);
  for (uint32_t p = 0; p < places; ++p) room[p] = problem.places->capacity(PlaceIndex(p));
  Mapping mapping(problem.rank_count());
  const std::function<void(uint32_t)> place = [&](uint32_t rank) {
    if (rank == mapping.size()) return visit(mapping);
    for (uint32_t p = 0; p < places; ++p) {
      if (room[p] == 0) continue;
      --room[p];
      mapping[rank] = PlaceIndex(p);
      place(rank + 1);
      ++room[p];
    }
  };
  place(0);
}

double LeastScore(const MappingProblem& problem) {
  const MappingMeasures present = MeasureOf(problem, problem.present());
  double least = std::numeric_limits<double>::infinity();
  ForEachMapping(problem, [&](const Mapping& mapping) {
    least = std::min(least, Score(problem.objective, MeasureOf(problem, mapping), present));
  });
  return least;
}

MappingMeasures MeasureOf(const MappingProblem& problem, const Mapping& mapping) {
  return Measure(problem, mapping).value();
}

double ScoreOf(const MappingProblem& problem, const Mapping& mapping) {
  return Score(problem.objective, MeasureOf(problem, mapping),
               MeasureOf(problem, problem.present()));
}

}  // namespace coppice
