// One placement of 512 hosts beside one breadth-first search over the switches of the same fabric,
// 131,072 endpoints on 65,536 hosts, in the same run; all hosts free, half of them held, and with
// running jobs' links, load and trees to look at. The index is made once and not counted.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_metrics.h"
#include "daemon/placement/placer.h"

namespace coppice {
namespace {

constexpr uint32_t kHosts = 512;

struct Machine {
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const PlacementIndex> index;
};

const Machine& BenchmarkMachine(uint32_t which) {
  static const Machine machines[] = {
      [] {
        const auto fabric = LoadFabric("model:fat-tree(ports=64,levels=3,rails=2)");
        const auto snapshot = MakeSnapshot(*fabric, nullptr);
        return Machine{*snapshot, PlacementIndex::Make(**snapshot)};
      }(),
      // As many endpoints, all of them hosts: half held leaves 65,536 free.
      [] {
        const auto fabric = LoadFabric("model:xgft(m=64x32x64,w=1x32x32)");
        const auto snapshot = MakeSnapshot(*fabric, nullptr);
        return Machine{*snapshot, PlacementIndex::Make(**snapshot)};
      }(),
  };
  return machines[which];
}

double Seconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Over the switches of the fabric that are connected to the first, along its rows of channels.
double SearchSeconds(const Fabric& fabric) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<uint32_t> distance(fabric.switch_count(), 0xffffffff);
  std::vector<uint32_t> queue{0};
  queue.reserve(fabric.switch_count());
  distance[0] = 0;
  for (size_t head = 0; head < queue.size(); ++head) {
    const uint32_t s = queue[head];
    for (const Channel& channel : fabric.switch_channels(SwitchIndex(s))) {
      uint32_t& entry = distance[channel.to.value()];
      if (entry != 0xffffffff) continue;
      entry = distance[s] + 1;
      queue.push_back(channel.to.value());
    }
  }
  benchmark::DoNotOptimize(distance.data());
  return Seconds(start);
}

enum Situation : int { kAllFree, kRandomHeld, kJobsRunning };

struct Case {
  std::shared_ptr<const Snapshot> snapshot;
  Occupancy occupancy;
  PlacementRequest request;
};

void HoldAtRandom(const Fabric& fabric, std::mt19937_64& rng, Occupancy& occupancy) {
  std::vector<uint32_t> hosts(fabric.host_count());
  for (uint32_t h = 0; h < hosts.size(); ++h) hosts[h] = h;
  std::shuffle(hosts.begin(), hosts.end(), rng);
  for (size_t i = 0; i < hosts.size() / 2; ++i) occupancy.holder[hosts[i]] = 1;
}

// Jobs of 8 to 1,024 hosts one after another until half of the machine is held; every second job
// then ends, and others take random leaf switches' worth of what is free.
void RunJobs(const Machine& machine, std::mt19937_64& rng, Case& c) {
  const Fabric& fabric = *machine.snapshot->fabric;
  uint32_t next = 0, job = 0;
  while (next < fabric.host_count()) {
    const uint32_t size = std::min<uint32_t>(8U << (rng() % 8), fabric.host_count() - next);
    std::vector<HostIndex> hosts;
    for (uint32_t i = 0; i < size; ++i) hosts.push_back(HostIndex(next + i));
    next += size;
    if (++job % 2 == 0) continue;
    for (const HostIndex h : hosts) c.occupancy.holder[h.value()] = job;
    AddHolder(*machine.snapshot, *machine.index, hosts, c.occupancy.channel_users);
  }
  std::vector<float> load(fabric.channel_count());
  for (uint32_t i = 0; i < load.size(); ++i) {
    load[i] = c.occupancy.channel_users[i] > 0 ? static_cast<float>(rng() % 100) / 100 : 0;
  }
  auto snapshot = std::make_shared<Snapshot>(*c.snapshot);
  snapshot->load = std::make_shared<const LinkLoad>(load);
  c.snapshot = snapshot;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    c.occupancy.entries_left.push_back(static_cast<uint32_t>(rng() % 64));
  }
  c.request.trees = 2;
}

// `ratio`: the median placement over the median search of the same run.
void BM_PlaceHosts(benchmark::State& state) {
  const Machine& machine = BenchmarkMachine(static_cast<uint32_t>(state.range(0)));
  const Fabric& fabric = *machine.snapshot->fabric;
  std::mt19937_64 rng(1);
  Case c;
  c.snapshot = machine.snapshot;
  c.occupancy.holder.assign(fabric.host_count(), Occupancy::kFree);
  c.occupancy.is_placed.assign(fabric.host_count(), false);
  c.occupancy.is_out.assign(fabric.host_count(), false);
  c.request.constraints.host_count = kHosts;
  if (state.range(1) == kRandomHeld) HoldAtRandom(fabric, rng, c.occupancy);
  if (state.range(1) == kJobsRunning) RunJobs(machine, rng, c);
  state.SetLabel(state.range(1) == kAllFree      ? "all free"
                 : state.range(1) == kRandomHeld ? "half held at random"
                                                 : "half held by jobs, links, load, trees");
  std::vector<double> searches, placements;
  PlacementPlan plan;
  for (auto _ : state) {
    searches.push_back(SearchSeconds(fabric));
    const auto start = std::chrono::steady_clock::now();
    auto answer = Place(*c.snapshot, *machine.index, c.occupancy, c.request, {});
    placements.push_back(Seconds(start));
    if (!answer.ok()) {
      state.SkipWithError(std::string(answer.status().message()).c_str());
      return;
    }
    plan = *std::move(answer);
  }
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  };
  state.counters["search_us"] = 1e6 * median(searches);
  state.counters["place_us"] = 1e6 * median(placements);
  state.counters["ratio"] = median(placements) / median(searches);
  state.counters["leaf_switches"] = plan.measures.leaf_switches;
  state.counters["pods"] = plan.measures.pods;
  state.counters["cost"] = plan.measures.cost;
  state.counters["optimal"] = plan.is_optimal;
}
BENCHMARK(BM_PlaceHosts)
    ->ArgsProduct({{0, 1}, {kAllFree, kRandomHeld, kJobsRunning}})
    ->Iterations(51)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace coppice

BENCHMARK_MAIN();
