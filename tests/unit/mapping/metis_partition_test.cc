#include "daemon/mapping/search/groups/metis_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "daemon/mapping/search/partition/partition.h"
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
    FitParts(graph, {32, 32}, parts, {});
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

TEST(FitParts, ReachesAnySizesFromAnyParts) {
  Xoshiro random(TestSeed());
  for (uint32_t round = 0; round < (FullTier() ? 2000u : 100u); ++round) {
    const uint32_t vertices = 1 + random.Below(40), count = 1 + random.Below(6);
    const WeightedGraph graph = GraphOf(*RandomPattern(vertices, 0.2, random()));
    std::vector<uint32_t> sizes(count, 0), parts(vertices);
    for (uint32_t v = 0; v < vertices; ++v) {
      ++sizes[random.Below(count)];
      parts[v] = random.Below(count);
    }
    FitParts(graph, sizes, parts, {});
    EXPECT_EQ(SizesOf(graph, parts, count), sizes);
  }
}

// A row of weights 9-1-9: of the part {0 1 2}, vertex 2 hangs on the lightest edge.
TEST(FitParts, MovesTheVertexThatLosesLeast) {
  const WeightedGraph graph =
      GraphOf(*Pattern::Make(4, {{0, 1, 9, 1}, {1, 2, 1, 1}, {2, 3, 9, 1}}).value());
  std::vector<uint32_t> parts = {0, 0, 0, 1};
  FitParts(graph, {2, 2}, parts, {});
  EXPECT_EQ(parts, (std::vector<uint32_t>{0, 0, 1, 1}));
}

TEST(FitParts, ComesAsNearAsWholeVerticesAllow) {
  WeightedGraph graph = GraphOf(*RingPattern(3, 1));
  graph.vertex_sizes = {4, 3, 0};
  std::vector<uint32_t> parts = {0, 0, 0};
  FitParts(graph, {4, 3}, parts, {});
  EXPECT_EQ(SizesOf(graph, parts, 2), (std::vector<uint32_t>{4, 3}));
}

TEST(Partition, RefusesWhatMetisCannotCount) {
  const WeightedGraph graph = GraphOf(*RingPattern(3, 1));
  const uint32_t first = 1;  // of a list that is refused by its length alone
  const absl::Span<const uint32_t> sizes(&first, (size_t{1} << 28) + 1);
  EXPECT_EQ(Partition(graph, sizes, {}).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(SplitGraph, KeepsPartsAndTheirInnerEdges) {
  const WeightedGraph graph = GraphOf(*RingPattern(5, 2));
  const std::vector<GraphPart> parts = SplitGraph(graph, {1, 0, 1, 1, 0}, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].vertices, (std::vector<uint32_t>{0, 2, 3}));
  EXPECT_EQ(parts[1].graph.begin, (std::vector<size_t>{0, 0, 1, 2}));
  EXPECT_EQ(parts[1].graph.neighbours, (std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(parts[0].vertices, (std::vector<uint32_t>{1, 4}));
  EXPECT_TRUE(parts[2].vertices.empty());
}

// Six dimensions, four parts: two directions are cut, 64 edges, both ways.
TEST(CutIntoSizes, CutsACubeAlongItsEdges) {
  const uint64_t seed = TestSeed();
  std::vector<Pattern::Entry> entries;
  for (uint32_t u = 0; u < 64; ++u) {
    // Multiplication by an odd number numbers the ranks anew.
    const auto number = [](uint32_t v) { return v * 37 % 64; };
    for (uint32_t bit = 1; bit < 64; bit *= 2)
      entries.push_back({number(u), number(u ^ bit), 1, 1});
  }
  const WeightedGraph graph = GraphOf(*Pattern::Make(64, std::move(entries)).value());
  double least = 1e9;
  for (uint64_t i = 0; i < 16; ++i) {
    const PartitionOptions options = {.seed = seed + i,
                                      .method = PartitionMethod::kRecursiveBisection};
    const auto parts = CutIntoSizes(graph, {16, 16, 16, 16}, options, {}).value();
    EXPECT_EQ(SizesOf(graph, parts, 4), (std::vector<uint32_t>(4, 16)));
    least = std::min(least, CutOf(graph, parts));
  }
  EXPECT_EQ(least, 64 * 2);
}

TEST(CutIntoSizes, KeepsAnySizes) {
  const SearchControl spent([] { return true; }, nullptr);
  const WeightedGraph graph = GraphOf(*RandomPattern(30, 0.02, TestSeed()));
  for (const std::vector<uint32_t>& sizes :
       {std::vector<uint32_t>{30}, {1, 29}, {7, 0, 3, 11, 9}, std::vector<uint32_t>(30, 1)}) {
    for (const SearchControl& control : {SearchControl(), spent}) {
      const auto parts = CutIntoSizes(graph, sizes, {}, control).value();
      EXPECT_EQ(SizesOf(graph, parts, static_cast<uint32_t>(sizes.size())), sizes);
    }
  }
}

}  // namespace
}  // namespace coppice::metis_partition_test
