// What a planner pays for each candidate tree: building it, walking its edges, evaluating it. 64
// and 512 ranks on the paper's fabric, 40,960 on 80 supernodes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/type1.h"
#include "tests/support/fabrics.h"

namespace coppice {
namespace {

struct Place {
  std::shared_ptr<const Snapshot> snapshot;
  std::vector<EndpointIndex> members;
};

// `ranks` distinct endpoints at random, rank order as the endpoints' (fixed seed).
Place MakePlace(uint32_t ranks) {
  const FabricPtr fabric =
      ranks > 512 ? ThreeLevelFatTree(80, 32, 16, 64, 16) : TwoLevelFatTree(32, 16, 16);
  Place place = {*MakeSnapshot(fabric, nullptr), {}};
  std::mt19937_64 random(7);
  const std::vector<EndpointIndex> all = AllEndpoints(*fabric);
  std::sample(all.begin(), all.end(), std::back_inserter(place.members), ranks, random);
  return place;
}

const Place& PlaceOf(uint32_t ranks) {
  static const Place few = MakePlace(64), some = MakePlace(512), many = MakePlace(40960);
  return ranks == 64 ? few : ranks == 512 ? some : many;
}

void BM_Group(benchmark::State& state) {
  const Place& place = PlaceOf(static_cast<uint32_t>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(GroupMembers(*place.snapshot->hierarchy, place.members));
  }
}
BENCHMARK(BM_Group)->Arg(64)->Arg(512)->Arg(40960);

void BM_Arrange(benchmark::State& state) {
  const Place& place = PlaceOf(static_cast<uint32_t>(state.range(0)));
  const NestedGroups groups = GroupMembers(*place.snapshot->hierarchy, place.members);
  const auto width = static_cast<uint32_t>(state.range(1));
  const auto limit = static_cast<uint32_t>(state.range(2));
  for (auto _ : state) benchmark::DoNotOptimize(ArrangeGroups(groups, width, limit));
}
BENCHMARK(BM_Arrange)
    ->Args({64, 2, 1000})
    ->Args({64, 8, 1000})
    ->Args({64, 32, 64})
    ->Args({512, 32, 64})
    ->Args({40960, 2, 1000})
    ->Args({40960, 32, 1000})
    ->Args({40960, 32, 64})
    ->Args({40960, 64, 1000});

void BM_EdgeCosts(benchmark::State& state) {
  const Place& place = PlaceOf(static_cast<uint32_t>(state.range(0)));
  const CostProfile profile = *BuiltInProfile("paper");
  const AggregationTree tree =
      *BuildKnomial(*place.snapshot->fabric, place.members, 8, /*nic_degree=*/1000);
  std::vector<ChannelIndex> path;
  std::vector<EdgeCost> edges;
  for (auto _ : state) {
    benchmark::DoNotOptimize(EdgeCosts(*place.snapshot, profile, tree, path, edges).ok());
  }
}
BENCHMARK(BM_EdgeCosts)->Arg(64)->Arg(512)->Arg(40960);

void BM_Evaluate(benchmark::State& state) {
  const Place& place = PlaceOf(static_cast<uint32_t>(state.range(0)));
  const CostProfile profile = *BuiltInProfile("paper");
  const AggregationTree tree =
      *BuildKnomial(*place.snapshot->fabric, place.members, 8, /*nic_degree=*/1000);
  const std::vector<EdgeCost> edges = *EdgeCosts(*place.snapshot, profile, tree);
  const Payload payload = PayloadOf(Operation::kAllreduce, 8);
  for (auto _ : state) benchmark::DoNotOptimize(Evaluate(profile, tree, edges, payload));
}
BENCHMARK(BM_Evaluate)->Arg(64)->Arg(512)->Arg(40960);

}  // namespace
}  // namespace coppice
