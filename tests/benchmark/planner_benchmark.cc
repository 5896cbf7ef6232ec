// What one plan costs: 64 ranks on the 512-port fabric, for 8 B and for 64 KiB, whose packets are
// followed one by one; and all 40,960 ports of the 80-supernode fabric against one breadth-first
// search over that fabric in the same run.
//
// Type 0 is both types and the choice between them. Cold: a snapshot whose routes nobody has asked
// yet, so that the plan pays for every distance it needs; making the snapshot is not counted.
//
// Counters: `bfs_ratio` = time of one plan / time of one search over all vertices. It must be at
// most 50, cold or not.
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/tree/planner.h"

namespace coppice {
namespace {

// Processor time, so that the ratio also holds on a machine that is busy otherwise.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::shared_ptr<const Snapshot> Snap(const std::string& spec) {
  absl::StatusOr<std::shared_ptr<const Fabric>> fabric = LoadFabric(spec);
  if (!fabric.ok()) std::abort();
  absl::StatusOr<std::shared_ptr<const Snapshot>> snapshot = MakeSnapshot(*fabric, nullptr);
  if (!snapshot.ok()) std::abort();
  return *snapshot;
}

// Chen 2024, 6.2.2: 80 supernodes of 32 leaf switches with 16 ports and 16 spines, 64 top switches.
std::shared_ptr<const Snapshot> Large() {
  static const std::shared_ptr<const Snapshot> snapshot =
      Snap("model:fat-tree(supernodes=80,leaves=32,spines=16,hosts-per-leaf=16,tops=64)");
  return snapshot;
}

uint32_t SearchWholeFabric(const Fabric& fabric) {
  std::vector<uint32_t> hops(fabric.vertex_count(), UINT32_MAX);
  std::vector<VertexIndex> queue;
  queue.reserve(fabric.vertex_count());
  queue.emplace_back(0);
  hops[0] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const Channel& channel : fabric.channels(queue[i])) {
      if (hops[channel.to.value()] != UINT32_MAX) continue;
      hops[channel.to.value()] = hops[queue[i].value()] + 1;
      queue.push_back(channel.to);
    }
  }
  return hops[queue.back().value()];
}

void PlanSixtyFourRanks(benchmark::State& state) {
  const std::shared_ptr<const Snapshot> snapshot = Snap("model:fat-tree");
  const CostProfile profile = *BuiltInProfile("hdr");
  const std::vector<SwitchCapacity> capacity(snapshot->fabric->switch_count(), {16, 16, 64});
  std::mt19937_64 random(1);
  TreeRequest request;
  if (state.range(0) != 0) request.type = static_cast<TreeType>(state.range(0));
  request.sizes = {{.bytes = static_cast<uint64_t>(state.range(1)), .weight = 1}};
  request.members.resize(64);
  for (auto _ : state) {
    for (EndpointIndex& member : request.members) {
      member = EndpointIndex(static_cast<uint32_t>(random() % snapshot->fabric->endpoint_count()));
    }
    absl::StatusOr<TreePlan> plan = PlanTree(*snapshot, profile, capacity, request);
    if (!plan.ok()) state.SkipWithError(std::string(plan.status().message()).c_str());
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(PlanSixtyFourRanks)
    ->ArgNames({"type", "bytes"})
    ->ArgsProduct({{0, 1, 2}, {8, 64 << 10}})
    ->Unit(benchmark::kMicrosecond);

// `snapshot` as it is just after a sweep: nobody has asked its routes for a distance yet.
std::shared_ptr<const Snapshot> Untouched(const Snapshot& snapshot) {
  auto fresh = std::make_shared<Snapshot>(snapshot);
  fresh->routes = Routes::ShortestPaths(snapshot.fabric);
  return fresh;
}

void PlanAllPorts(benchmark::State& state) {
  std::shared_ptr<const Snapshot> snapshot = Large();
  const CostProfile profile = *BuiltInProfile("hdr");
  const std::vector<SwitchCapacity> capacity(snapshot->fabric->switch_count(), {16, 16, 256});
  TreeRequest request;
  if (state.range(0) != 0) request.type = static_cast<TreeType>(state.range(0));
  const bool cold = state.range(1) != 0;
  for (uint32_t e = 0; e < snapshot->fabric->endpoint_count(); ++e) request.members.emplace_back(e);
  double searches = 0, plans = 0;  // in turns, so that both see the machine alike
  for (auto _ : state) {
    state.PauseTiming();
    if (cold) snapshot = Untouched(*snapshot);
    benchmark::DoNotOptimize(SearchWholeFabric(*snapshot->fabric));  // the next finds caches warm
    const double search = CpuSeconds();
    benchmark::DoNotOptimize(SearchWholeFabric(*snapshot->fabric));
    searches += CpuSeconds() - search;
    state.ResumeTiming();
    const double begin = CpuSeconds();
    absl::StatusOr<TreePlan> plan = PlanTree(*snapshot, profile, capacity, request);
    plans += CpuSeconds() - begin;
    if (!plan.ok()) state.SkipWithError(std::string(plan.status().message()).c_str());
    benchmark::DoNotOptimize(plan);
  }
  state.counters["bfs_ratio"] = plans / searches;
  state.counters["bfs_us"] = searches * 1e6 / static_cast<double>(state.iterations());
}
BENCHMARK(PlanAllPorts)
    ->ArgNames({"type", "cold"})
    ->ArgsProduct({{2, 1, 0}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace coppice
