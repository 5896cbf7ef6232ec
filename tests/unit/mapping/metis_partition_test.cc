#include "daemon/mapping/search/groups/metis_partition.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::metis_partition_test {
namespace {

std::vector<uint32_t> SizesOf(const WeightedGraph& graph, const std::vector<uint32_t>& parts,
                              uint32_t count) {
  std::vector<uint32_t> sizes(count, 0);
  for (uint32_t v = 0; v < graph.vertex_count(); ++v) sizes[parts[v]] += graph.vertex_sizes[v];
  return sizes;
}

double CutOf(const WeightedGraph& graph, const std::vector<uint32_t>& parts) {
  double cut = 0;
  for (uint32_t v = 0; v < graph.vertex_count(); ++v) {
    for (size_t e = graph.begin[v]; e < graph.begin[v + 1]; ++e) {
      if (parts[v] != parts[graph.neighbours[e]]) cut += graph.weights[e] / 2;
    }
  }
  return cut;
}

TEST(Partition, CutsAGridInTwo) {
  const WeightedGraph graph = GraphOf(*GridPattern(8, 8, 5));
  for (const PartitionMethod method :
       {PartitionMethod::kWays, PartitionMethod::kRecursiveBisection}) {
    std::vector<uint32_t> parts = Partition(graph, {32, 32}, {.method = method}).value();
    BalanceParts(graph, {32, 32}, parts);
    EXPECT_EQ(SizesOf(graph, parts, 2), (std::vector<uint32_t>{32, 32}));
    EXPECT_LE(CutOf(graph, parts), 12 * 10);  // the best is 8 pairs of 5 bytes each way
  }
}

TEST(Partition, IsEqualForEqualSeedsOnAllThreads) {
  const WeightedGraph graph = GraphOf(*RandomPattern(200, 0.05, TestSeed()));
  const std::vector<uint32_t> sizes(10, 20);
  const std::vector<uint32_t> alone = Partition(graph, sizes, {.seed = 7}).value();
  std::vector<std::vector<uint32_t>> found(4);
  std::vector<std::thread> threads;
  for (std::vector<uint32_t>& parts : found) {
    threads.emplace_back([&] { parts = Partition(graph, sizes, {.seed = 7}).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<uint32_t>& parts : found) EXPECT_EQ(parts, alone);
}

TEST(BalanceParts, ReachesAnySizesFromAnyParts) {
  Xoshiro random(TestSeed());
  for (uint32_t round = 0; round < (FullTier() ? 2000u : 100u); ++round) {
    const uint32_t vertices = 1 + random.Below(40), count = 1 + random.Below(6);
    const WeightedGraph graph = GraphOf(*RandomPattern(vertices, 0.2, random()));
    std::vector<uint32_t> sizes(count, 0), parts(vertices);
    for (uint32_t v = 0; v < vertices; ++v) {
      ++sizes[random.Below(count)];
      parts[v] = random.Below(count);
    }
    BalanceParts(graph, sizes, parts);
    EXPECT_EQ(SizesOf(graph, parts, count), sizes);
  }
}

// A row of weights 9-1-9: of the part {0 1 2}, vertex 2 hangs on the lightest edge.
TEST(BalanceParts, MovesTheVertexThatLosesLeast) {
  const WeightedGraph graph =
      GraphOf(*Pattern::Make(4, {{0, 1, 9, 1}, {1, 2, 1, 1}, {2, 3, 9, 1}}).value());
  std::vector<uint32_t> parts = {0, 0, 0, 1};
  BalanceParts(graph, {2, 2}, parts);
  EXPECT_EQ(parts, (std::vector<uint32_t>{0, 0, 1, 1}));
}

TEST(BalanceParts, ComesAsNearAsWholeVerticesAllow) {
  WeightedGraph graph = GraphOf(*RingPattern(3, 1));
  graph.vertex_sizes = {4, 3, 0};
  std::vector<uint32_t> parts = {0, 0, 0};
  BalanceParts(graph, {4, 3}, parts);
  EXPECT_EQ(SizesOf(graph, parts, 2), (std::vector<uint32_t>{4, 3}));
}

TEST(Partition, RefusesWhatMetisCannotCount) {
  const WeightedGraph graph = GraphOf(*RingPattern(3, 1));
  const uint32_t first = 1;  // of a list that is refused by its length alone
  const absl::Span<const uint32_t> sizes(&first, (size_t{1} << 28) + 1);
  EXPECT_EQ(Partition(graph, sizes, {}).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Subgraph, KeepsOnePartAndItsInnerEdges) {
  const WeightedGraph graph = GraphOf(*RingPattern(5, 2));
  std::vector<uint32_t> kept;
  const WeightedGraph sub = Subgraph(graph, {1, 0, 1, 1, 0}, 1, kept);
  EXPECT_EQ(kept, (std::vector<uint32_t>{0, 2, 3}));
  EXPECT_EQ(sub.begin, (std::vector<size_t>{0, 0, 1, 2}));
  EXPECT_EQ(sub.neighbours, (std::vector<uint32_t>{2, 1}));
}

}  // namespace
}  // namespace coppice::metis_partition_test
