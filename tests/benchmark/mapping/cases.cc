#include "tests/benchmark/mapping/cases.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/forwarding_tables.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tables.h"

namespace coppice {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

template <class T>
void Shuffle(std::vector<T>& values) {
  Xoshiro random(7);
  for (auto i = static_cast<uint32_t>(values.size()); i > 1; --i) {
    std::swap(values[i - 1], values[random.Below(i)]);
  }
}

// A level code per place is all that a hierarchy keeps; shuffled places are shuffled codes, which
// PlaceDistances has no door for: a matrix says the same.
std::shared_ptr<const PlaceDistances> Shuffled(const PlaceDistances& distances,
                                               const std::vector<uint32_t>& order) {
  std::vector<double> values;
  for (const uint32_t a : order) {
    for (const uint32_t b : order) values.push_back(distances(PlaceIndex(a), PlaceIndex(b)));
  }
  return PlaceDistances::Matrix(static_cast<uint32_t>(order.size()), std::move(values)).value();
}

BenchmarkTarget OnFabric(std::string name, uint32_t places, std::string fabric) {
  BenchmarkTarget target;
  target.name = std::move(name);
  target.places = places;
  target.fabric = std::move(fabric);
  return target;
}

BenchmarkTarget UniformTree(std::string name, std::vector<uint32_t> extents) {
  BenchmarkTarget target;
  target.name = std::move(name);
  target.places = std::accumulate(extents.begin(), extents.end(), 1U, std::multiplies<uint32_t>());
  target.extents = std::move(extents);
  target.distances = {1, 10, 100};
  return target;
}

}  // namespace

std::shared_ptr<const Snapshot> LoadSnapshot(const BenchmarkTarget& target) {
  const std::shared_ptr<const Fabric> fabric = LoadFabric(target.fabric).value();
  if (target.tables.empty()) return MakeSnapshot(fabric, nullptr).value();
  std::string text;
  if (std::filesystem::is_regular_file(target.tables)) {
    text = ReadFile(target.tables);
  } else {
    for (const auto& entry : std::filesystem::directory_iterator(target.tables)) {
      text += ReadFile(entry.path());
    }
  }
  return MakeSnapshot(fabric, std::make_shared<const ForwardingTables>(
                                  ReadForwardingTables(*fabric, text).value()))
      .value();
}

std::string StencilText(uint32_t rows, uint32_t columns, uint32_t planes, bool all) {
  const auto number = [&](int64_t x, int64_t y, int64_t z) {
    return (z * columns + y) * rows + x + 1;
  };
  std::string lines;
  size_t edges = 0;
  for (int64_t z = 0; z < planes; ++z) {
    for (int64_t y = 0; y < columns; ++y) {
      for (int64_t x = 0; x < rows; ++x) {
        for (int i = 0; i < 27; ++i) {
          const int64_t dx = i % 3 - 1, dy = i / 3 % 3 - 1, dz = i / 9 - 1;
          const auto off = std::abs(dx) + std::abs(dy) + std::abs(dz);
          if (off == 0 || (!all && off > 1)) continue;
          if (x + dx < 0 || x + dx >= rows || y + dy < 0 || y + dy >= columns) continue;
          if (z + dz < 0 || z + dz >= planes) continue;
          absl::StrAppend(&lines, number(x + dx, y + dy, z + dz), " ",
                          off == 1   ? 100
                          : off == 2 ? 10
                                     : 1,
                          " ");
          ++edges;
        }
        lines += '\n';
      }
    }
  }
  return absl::StrCat(uint64_t{rows} * columns * planes, " ", edges / 2, " 1\n", lines);
}

std::vector<BenchmarkPattern> BenchmarkPatterns(const std::string& data) {
  std::vector<BenchmarkPattern> patterns;
  for (const char* name : {"comm_lammps_melt64", "comm_lammps_peptide64", "comm_openfoam_pitz64",
                           "comm_copter2_k256", "comm_mdual_k1024"}) {
    patterns.push_back({name, ReadFile(absl::StrCat(data, "/patterns/", name, ".graph"))});
  }
  patterns.push_back({"stencil_12x12x12_7", StencilText(12, 12, 12, false)});
  patterns.push_back({"stencil_16x16x8_27", StencilText(16, 16, 8, true)});
  for (const char* name : {"3elt", "copter2"}) {
    patterns.push_back({name, ReadFile(absl::StrCat(data, "/meshes/", name, ".graph"))});
  }
  return patterns;
}

std::vector<BenchmarkTarget> BenchmarkTargets(const std::string& data, uint32_t ranks) {
  std::vector<BenchmarkTarget> targets;
  BenchmarkTarget real =
      OnFabric("plafrim", std::min(ranks, 125U),
               absl::StrCat("file:", data, "/infiniband/plafrim/ibnetdiscover.txt"));
  real.tables = data + "/infiniband/plafrim/ibroute";
  if (ranks == 64) {
    targets = {
        UniformTree("4:4:4", {4, 4, 4}),
        OnFabric("fat tree, 2 levels", 64, "model:fat-tree(leaves=8,spines=4,hosts-per-leaf=8)"),
        OnFabric("fat tree, 3 levels", 64, "model:fat-tree(ports=8,levels=3)"),
        OnFabric("torus 4x4x4", 64, "model:torus(dims=4x4x4)"),
        OnFabric("dragonfly+", 64, "model:dragonfly-plus"),
        real,
        OnFabric("PERCS", 64, "model:percs(supernodes=8,d=1)")};
  } else if (ranks == 256) {
    targets = {
        UniformTree("4:8:8", {4, 8, 8}),
        OnFabric("fat tree, 2 levels", 256, "model:fat-tree(leaves=16,spines=8,hosts-per-leaf=16)"),
        OnFabric("fat tree, 3 levels", 256, "model:fat-tree(ports=12,levels=3)"),
        OnFabric("torus 8x8x4", 256, "model:torus(dims=8x8x4)"),
        OnFabric("dragonfly+", 256, "model:dragonfly-plus"),
        OnFabric("PERCS", 256, "model:percs(supernodes=9,d=1)")};
  } else if (ranks <= 2048) {
    if (ranks == 1024) targets.push_back(UniformTree("4:16:16", {4, 16, 16}));
    targets.push_back(OnFabric("fat tree, 2 levels", ranks,
                               "model:fat-tree(leaves=64,spines=16,hosts-per-leaf=32)"));
    targets.push_back(OnFabric("fat tree, 3 levels", ranks, "model:fat-tree(ports=22,levels=3)"));
    targets.push_back(
        OnFabric("torus 12x12x12", std::min(ranks, 1728U), "model:torus(dims=12x12x12)"));
    targets.push_back(
        OnFabric("dragonfly+", ranks, "model:dragonfly-plus(p=8,leaves=8,spines=8,h=8)"));
    targets.push_back(OnFabric("PERCS", ranks, "model:percs(supernodes=65,d=2)"));
  } else {
    targets = {
        UniformTree("4:8:6", {4, 8, 6}),
        OnFabric("fat tree, 2 levels", 128, "model:fat-tree(leaves=8,spines=4,hosts-per-leaf=16)"),
        OnFabric("fat tree, 3 levels", 128, "model:fat-tree(ports=8,levels=3)"),
        OnFabric("torus 6x6x6", 216, "model:torus(dims=6x6x6)"),
        OnFabric("dragonfly+", 272, "model:dragonfly-plus"),
        real,
        OnFabric("PERCS", 256, "model:percs(supernodes=9,d=1)")};
  }
  std::erase_if(targets, [&](const BenchmarkTarget& t) { return t.places > ranks; });
  return targets;
}

MappingProblem BenchmarkProblem(const BenchmarkTarget& target,
                                std::shared_ptr<const Pattern> pattern, double slack,
                                bool shuffled) {
  MappingProblem problem;
  const uint32_t each = (pattern->rank_count() + target.places - 1) / target.places;
  const auto capacity = static_cast<uint32_t>((1 + slack) * each + 1e-9);
  std::vector<uint32_t> order(target.places);
  std::iota(order.begin(), order.end(), 0);
  if (shuffled) Shuffle(order);
  problem.pattern = std::move(pattern);
  problem.objective = {.qap_cost = 1};
  if (!target.extents.empty()) {
    problem.places = Places::Numbered(target.places, capacity).value();
    problem.distances = PlaceDistances::Uniform(target.extents, target.distances).value();
    if (shuffled) problem.distances = Shuffled(*problem.distances, order);
    return problem;
  }
  problem.snapshot = LoadSnapshot(target);
  const Fabric& fabric = *problem.snapshot->fabric;
  std::vector<EndpointIndex> hosts;
  for (uint32_t h = 0; h < fabric.host_count() && hosts.size() < target.places; ++h) {
    for (const EndpointIndex e : fabric.endpoints_of_host(HostIndex(h)).subspan(0, 1)) {
      if (fabric.attached_switch(e).has_value()) hosts.push_back(e);
    }
  }
  std::vector<EndpointIndex> slots;
  for (const uint32_t i : order) slots.push_back(hosts[i]);
  problem.places = Places::OfEndpoints(fabric, slots, capacity).value();
  problem.distances =
      target.tables.empty()
          ? PlaceDistances::Hops(*problem.places, problem.snapshot->routes->distances()).value()
          : PlaceDistances::RouteLengths(*problem.places, *problem.snapshot->routes).value();
  return problem;
}

}  // namespace coppice
