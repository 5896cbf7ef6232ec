// Reading and indexing a fabric file of 131,072 endpoints against reading it and splitting its
// lines, in one run; and the memory that the fabric then holds.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <stdlib.h>
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
#include "daemon/fabric/ibnetdiscover_writer.h"

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

size_t ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  size_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// `ratio`: the best load over the best split of the same run.
void BM_LoadFabricFile(benchmark::State& state) {
  const std::string& path = FabricPath();
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
  malloc_trim(0);
  const size_t before = ResidentBytes();
  const auto kept = LoadFabric(absl::StrCat("file:", path));
  malloc_trim(0);
  const size_t after = ResidentBytes();
  state.counters["load_seconds"] = best_load;
  state.counters["split_seconds"] = best_split;
  state.counters["ratio"] = best_load / best_split;
  state.counters["endpoints"] = endpoints;
  state.counters["resident_bytes_per_endpoint"] =
      static_cast<double>(after - before) / static_cast<double>(endpoints);
}
BENCHMARK(BM_LoadFabricFile)->Iterations(7)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace coppice

BENCHMARK_MAIN();
