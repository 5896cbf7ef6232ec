// What postal trees are worth: the predicted time of the best k-ary, k-nomial or hierarchical tree
// and of the postal tree, for 3 to 31 ranks on each leaf switch; then what building one costs.
//
//   coppice_postal_benchmark                 both
//   coppice_postal_benchmark --benchmark_filter=none     the table alone
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/type1_postal.h"

namespace coppice {
namespace {

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
  std::abort();
}

std::shared_ptr<const Snapshot> Snap(const std::string& spec) {
  return Must(MakeSnapshot(Must(LoadFabric(spec)), nullptr));
}

struct Place {
  const char* name;
  const char* spec;  // without hosts
};
constexpr Place kPlaces[] = {
    {"2 levels, 8 leaves", "model:fat-tree(leaves=8,spines=8,hosts-per-leaf="},
    {"2 levels, 32 leaves", "model:fat-tree(leaves=32,spines=16,hosts-per-leaf="},
    {"2 ports a host, 8 leaves",
     "model:fat-tree(leaves=8,spines=8,ports-per-host=2,hosts-per-leaf="},
    {"3 levels, 4 x 4 leaves",
     "model:fat-tree(supernodes=4,leaves=4,spines=4,tops=4,hosts-per-leaf="},
};
constexpr uint32_t kHosts[] = {3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 19, 23, 27, 31};
constexpr uint64_t kBytes[] = {8, 2048, 16384, 65536};

double TimeOf(const Snapshot& snapshot, const CostProfile& profile, TreeRequest request,
              TreeBuilder builder) {
  request.builder = builder;
  const std::vector<SwitchCapacity> capacity(snapshot.fabric->switch_count());
  return Must(PlanTree(snapshot, profile, capacity, request)).predicted.total_us;
}

void PrintRow(const Place& place, uint32_t hosts, const CostProfile& profile) {
  const auto snapshot = Snap(place.spec + std::to_string(hosts) + ")");
  TreeRequest request;
  request.type = TreeType::kTypeI;
  for (uint32_t e = 0; e < snapshot->fabric->endpoint_count(); ++e) request.members.emplace_back(e);
  std::printf("%-25s %5u %6zu", place.name, hosts, request.members.size());
  for (const uint64_t bytes : kBytes) {
    request.sizes = {{bytes, 1}};
    double three = std::numeric_limits<double>::infinity();
    for (const TreeBuilder builder :
         {TreeBuilder::kKary, TreeBuilder::kKnomial, TreeBuilder::kHierarchical}) {
      three = std::min(three, TimeOf(*snapshot, profile, request, builder));
    }
    const double postal = TimeOf(*snapshot, profile, request, TreeBuilder::kPostal);
    std::printf("  %7.2f %7.2f %5.1f", three, postal, 100 * (1 - postal / three));
  }
  std::printf("\n");
}

void PrintTable() {
  const CostProfile profile = *BuiltInProfile("hdr");
  std::printf(
      "Allreduce, profile hdr: us of the best of three, us of postal, gain in %%\n%-25s %5s %6s",
      "fabric", "hosts", "ranks");
  for (const uint64_t bytes : kBytes)
    std::printf("  %19llu B", static_cast<unsigned long long>(bytes));
  std::printf("\n");
  for (const Place& place : kPlaces) {
    for (const uint32_t hosts : kHosts) PrintRow(place, hosts, profile);
  }
}

// Random members of the 512-port fabric, as the planner asks for them.
void BuildPostalTree(benchmark::State& state) {
  const auto snapshot = Snap("model:fat-tree");
  const CostProfile profile = *BuiltInProfile("hdr");
  std::mt19937_64 random(1);
  TreeRequest request;
  request.type = TreeType::kTypeI;
  request.builder = TreeBuilder::kPostal;
  const std::vector<SwitchCapacity> capacity(snapshot->fabric->switch_count());
  request.members.resize(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    for (EndpointIndex& member : request.members) {
      member = EndpointIndex(static_cast<uint32_t>(random() % snapshot->fabric->endpoint_count()));
    }
    benchmark::DoNotOptimize(PlanTree(*snapshot, profile, capacity, request));
  }
}
BENCHMARK(BuildPostalTree)->ArgName("ranks")->Arg(6)->Arg(16)->Arg(64)->Arg(512)->Arg(4096);

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) {
  coppice::PrintTable();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
