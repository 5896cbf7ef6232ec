// Reading and indexing a fabric file of 131,072 endpoints against reading it and splitting its
// lines, in one run; and the memory that this takes at its peak and that the fabric then holds.
// Shortest routes, warm and on a fresh snapshot, against one breadth-first search over the whole
// fabric.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/routes.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {
namespace {

// Two planes of full 3-level trees of 64-port switches: 10,240 switches, 393,216 links.
class FabricFile {
 public:
  FabricFile() : path_("/tmp/coppice_fabric_benchmark_XXXXXX") {
    const int fd = mkstemp(path_.data());
    if (fd >= 0) close(fd);
    const auto fabric = LoadFabric("model:fat-tree(ports=64,levels=3,rails=2)");
    if (fabric.ok()) std::ofstream(path_) << WriteIbnetdiscover(**fabric);
  }
  ~FabricFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

const std::string& FabricPath() {
  static const FabricFile file;
  return file.path();
}

double Seconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

size_t ReadAndSplit(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::string text(static_cast<size_t>(in.tellg()), '\0');
  in.seekg(0);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  return lines.size();
}

// A line of /proc/self/status in bytes: "VmRSS:" is what is resident now, "VmHWM:" its peak.
size_t StatusBytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  std::string word;
  size_t kib = 0;
  while (in >> word && word != key) {
  }
  in >> kib;
  return kib * 1024;
}

struct LoadMemory {
  size_t peak = 0, kept = 0;  // bytes more than before
};

LoadMemory MeasureLoad(const std::string& path) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5\n";  // proc(5): the peak starts afresh
  const size_t before = StatusBytes("VmRSS:");
  const auto fabric = LoadFabric(absl::StrCat("file:", path));
  LoadMemory memory;
  memory.peak = StatusBytes("VmHWM:") - before;
  malloc_trim(0);
  memory.kept = StatusBytes("VmRSS:") - before;
  return memory;
}

// Of one load in a process of its own, whose heap nothing has used before.
LoadMemory LoadMemoryOf(const std::string& path) {
  LoadMemory memory;
  int ends[2];
  if (pipe(ends) != 0) return memory;
  const pid_t child = fork();
  if (child == 0) {
    memory = MeasureLoad(path);
    _exit(write(ends[1], &memory, sizeof memory) == sizeof memory ? 0 : 1);
  }
  close(ends[1]);
  if (read(ends[0], &memory, sizeof memory) != sizeof memory) memory = {};
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return memory;
}

// `ratio`: the best load over the best split of the same run.
void BM_LoadFabricFile(benchmark::State& state) {
  const std::string& path = FabricPath();
  const LoadMemory memory = LoadMemoryOf(path);
  double best_load = 1e9, best_split = 1e9;
  uint32_t endpoints = 1;
  for (auto _ : state) {
    auto start = std::chrono::steady_clock::now();
    const auto fabric = LoadFabric(absl::StrCat("file:", path));
    best_load = std::min(best_load, Seconds(start));
    if (!fabric.ok()) {
      state.SkipWithError(std::string(fabric.status().message()).c_str());
      return;
    }
    endpoints = (*fabric)->endpoint_count();
    start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(ReadAndSplit(path));
    best_split = std::min(best_split, Seconds(start));
  }
  state.counters["load_seconds"] = best_load;
  state.counters["split_seconds"] = best_split;
  state.counters["ratio"] = best_load / best_split;
  state.counters["endpoints"] = endpoints;
  state.counters["peak_bytes_per_endpoint"] = static_cast<double>(memory.peak) / endpoints;
  state.counters["resident_bytes_per_endpoint"] = static_cast<double>(memory.kept) / endpoints;
}
BENCHMARK(BM_LoadFabricFile)->Iterations(7)->Unit(benchmark::kMillisecond);

constexpr const char* kFabrics[] = {
    "model:fat-tree(supernodes=80,leaves=32,spines=16,hosts-per-leaf=16,tops=64)",
    "model:fat-tree(ports=64,levels=3)",
};

const std::shared_ptr<const Fabric>& BenchmarkFabric(benchmark::State& state) {
  static const std::shared_ptr<const Fabric> fabrics[] = {*LoadFabric(kFabrics[0]),
                                                          *LoadFabric(kFabrics[1])};
  state.SetLabel(kFabrics[state.range(0)] + 6);
  return fabrics[state.range(0)];
}

// Over all vertices, endpoints included, along the rows of channels.
void BM_BreadthFirstSearch(benchmark::State& state) {
  const Fabric& fabric = *BenchmarkFabric(state);
  for (auto _ : state) {
    std::vector<uint32_t> distance(fabric.vertex_count(), 0xffffffff);
    std::vector<VertexIndex> queue{VertexIndex(0)};
    distance[0] = 0;
    for (size_t head = 0; head < queue.size(); ++head) {
      const VertexIndex v = queue[head];
      for (const Channel& channel : fabric.channels(v)) {
        uint32_t& entry = distance[channel.to.value()];
        if (entry != 0xffffffff) continue;
        entry = distance[v.value()] + 1;
        queue.push_back(channel.to);
      }
    }
    benchmark::DoNotOptimize(distance.data());
  }
}
BENCHMARK(BM_BreadthFirstSearch)->DenseRange(0, 1)->Unit(benchmark::kMicrosecond);

void BM_WarmRoute(benchmark::State& state) {
  const std::shared_ptr<const Fabric>& fabric = BenchmarkFabric(state);
  const auto routes = Routes::ShortestPaths(fabric);
  std::vector<ChannelIndex> path;
  uint64_t e = 0;
  for (auto _ : state) {
    const auto from = EndpointIndex(static_cast<uint32_t>(e % fabric->endpoint_count()));
    const auto to = EndpointIndex(static_cast<uint32_t>((e * 7919 + 1) % fabric->endpoint_count()));
    path.clear();
    if (!routes->Append(fabric->Vertex(from), fabric->Vertex(to), path).ok()) {
      state.SkipWithError("no route");
    }
    e += 40503;
  }
}
BENCHMARK(BM_WarmRoute)->DenseRange(0, 1)->MinWarmUpTime(0.5);

// Both routes of every edge of a binary tree over all endpoints, from a fresh snapshot on.
void BM_ColdRoutesOfABinaryTree(benchmark::State& state) {
  const std::shared_ptr<const Fabric>& fabric = BenchmarkFabric(state);
  std::vector<ChannelIndex> path;
  for (auto _ : state) {
    const auto routes = Routes::ShortestPaths(fabric);
    for (uint32_t e = 1; e < fabric->endpoint_count(); ++e) {
      const VertexIndex child = fabric->Vertex(EndpointIndex(e));
      const VertexIndex parent = fabric->Vertex(EndpointIndex((e - 1) / 2));
      path.clear();
      if (!routes->Append(child, parent, path).ok() || !routes->Append(parent, child, path).ok()) {
        state.SkipWithError("no route");
      }
    }
  }
}
BENCHMARK(BM_ColdRoutesOfABinaryTree)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);

void BM_FreshDistances(benchmark::State& state) {
  const std::shared_ptr<const Fabric>& fabric = BenchmarkFabric(state);
  for (auto _ : state) benchmark::DoNotOptimize(SwitchDistances(fabric).ClassRowTo(0).data());
}
BENCHMARK(BM_FreshDistances)->DenseRange(0, 1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace coppice

BENCHMARK_MAIN();
