// Clusters of ranks: eigenvectors against their equation and against closed forms, k-means against
// exhaustive search, and clusters that were planted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <set>

#include "daemon/mapping/search/cluster/clusters.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/mapping_oracle.h"

namespace coppice::rank_clusters_test {
namespace {

const SearchControl kSpent([] { return true; }, nullptr);

std::vector<uint32_t> ShuffledNumbers(uint32_t count, uint64_t seed) {
  std::vector<uint32_t> number(count);
  std::iota(number.begin(), number.end(), 0);
  Xoshiro random(seed);
  for (uint32_t i = count; i > 1; --i) std::swap(number[i - 1], number[random.Below(i)]);
  return number;
}

// A grid whose edges have random weights, so that no two eigenvalues coincide.
WeightedGraph RandomGrid(uint32_t rows, uint32_t columns, uint64_t seed) {
  Xoshiro random(seed);
  std::vector<Pattern::Entry> entries;
  for (uint32_t u = 0; u < rows * columns; ++u) {
    if (u % columns + 1 < columns) entries.push_back({u, u + 1, 1 + random.Unit(), 1});
    if (u + columns < rows * columns) entries.push_back({u, u + columns, 1 + random.Unit(), 1});
  }
  return GraphOf(*Pattern::Make(rows * columns, std::move(entries)).value());
}

// The normalised Laplacian times a vector, entry by entry from its definition.
std::vector<double> LaplacianTimes(const WeightedGraph& graph, const SimilarityOptions& similarity,
                                   const std::vector<double>& v) {
  const double most = *std::max_element(graph.weights.begin(), graph.weights.end());
  const uint32_t n = graph.vertex_count();
  std::vector<double> degrees(n, similarity.self), result(n);
  for (uint32_t u = 0; u < n; ++u) {
    for (size_t e = graph.begin[u]; e < graph.begin[u + 1]; ++e) {
      degrees[u] += graph.weights[e] / most * similarity.greatest;
    }
  }
  for (uint32_t u = 0; u < n; ++u) {
    result[u] = v[u] - similarity.self / degrees[u] * v[u];
    for (size_t e = graph.begin[u]; e < graph.begin[u + 1]; ++e) {
      const uint32_t w = graph.neighbours[e];
      result[u] -=
          graph.weights[e] / most * similarity.greatest / std::sqrt(degrees[u] * degrees[w]) * v[w];
    }
  }
  return result;
}

void ExpectEigenvectors(const WeightedGraph& graph, const SimilarityOptions& similarity,
                        const Eigenvectors& found) {
  const uint32_t n = graph.vertex_count(), k = found.count;
  ASSERT_EQ(found.values.size(), k);
  ASSERT_EQ(found.vectors.size(), size_t{n} * k);
  EXPECT_NEAR(found.values[0], 0, 1e-6);
  for (uint32_t j = 0; j < k; ++j) {
    if (j > 0) {
      EXPECT_LE(found.values[j - 1], found.values[j] + 1e-9);
    }
    EXPECT_LE(found.values[j], 2 + 1e-9);
    std::vector<double> v(n);
    for (uint32_t u = 0; u < n; ++u) v[u] = found.vectors[size_t{u} * k + j];
    EXPECT_NEAR(std::inner_product(v.begin(), v.end(), v.begin(), 0.0), 1, 1e-6);
    const std::vector<double> product = LaplacianTimes(graph, similarity, v);
    for (uint32_t u = 0; u < n; ++u) ASSERT_NEAR(product[u], found.values[j] * v[u], 1e-4);
  }
}

TEST(FirstEigenvectors, SatisfyTheirEquationDenseAndByLanczos) {
  const uint64_t seed = TestSeed();
  for (const SimilarityOptions& similarity :
       {SimilarityOptions{}, SimilarityOptions{0.25, 1}, SimilarityOptions{1, 5}}) {
    const WeightedGraph graph = RandomGrid(15, 20, seed);
    const Eigenvectors some = FirstEigenvectors(graph, similarity, 12, seed, {}).value();
    const Eigenvectors most = FirstEigenvectors(graph, similarity, 160, seed, {}).value();
    EXPECT_EQ(some.count, 12u);
    EXPECT_FALSE(some.dense);
    EXPECT_EQ(most.count, 160u);
    EXPECT_TRUE(most.dense);
    ExpectEigenvectors(graph, similarity, some);
    ExpectEigenvectors(graph, similarity, most);
    for (uint32_t j = 0; j < 12; ++j) EXPECT_NEAR(some.values[j], most.values[j], 1e-6) << j;
  }
}

// With self-similarity 1 every degree of a ring is 3: 1 - (1 + 2 cos(2 pi j / n)) / 3, j and -j.
TEST(FirstEigenvectors, HaveTheValuesOfARing) {
  const WeightedGraph ring = GraphOf(*RingPattern(60, 7));
  const Eigenvectors found = FirstEigenvectors(ring, {}, 60, 1, {}).value();
  ExpectEigenvectors(ring, {}, found);
  for (uint32_t i = 0; i < 60; ++i) {
    const double angle = 2 * std::numbers::pi * ((i + 1) / 2) / 60;
    EXPECT_NEAR(found.values[i], 1 - (1 + 2 * std::cos(angle)) / 3, 1e-9) << i;
  }
}

TEST(FirstEigenvectors, AreNoMoreThanTheVerticesAndNoneOnceStopped) {
  const WeightedGraph graph = RandomGrid(2, 3, 1);
  EXPECT_EQ(FirstEigenvectors(graph, {}, 100, 1, {})->count, 6u);
  EXPECT_FALSE(FirstEigenvectors(graph, {}, 3, 1, kSpent).has_value());
  uint32_t asked = 0;  // in the middle of Lanczos
  const SearchControl later([&] { return ++asked > 20; }, nullptr);
  EXPECT_FALSE(FirstEigenvectors(RandomGrid(20, 20, 1), {}, 10, 1, later).has_value());
  EXPECT_LE(asked, 30u);
}

double SpreadOf(const Points& points, const std::vector<uint32_t>& labels, uint32_t clusters) {
  double spread = 0;
  for (uint32_t c = 0; c < clusters; ++c) {
    for (uint32_t d = 0; d < points.dimension; ++d) {
      double sum = 0, squares = 0, count = 0;
      for (uint32_t i = 0; i < labels.size(); ++i) {
        if (labels[i] != c) continue;
        const double x = points.values[size_t{i} * points.dimension + d];
        sum += x;
        squares += x * x;
        ++count;
      }
      if (count > 0) spread += squares - sum * sum / count;
    }
  }
  return spread;
}

TEST(KMeans, FindsTheBestOfAllPartitionsOfFewPoints) {
  const uint64_t seed = TestSeed();
  for (uint64_t round = 0; round < (FullTier() ? 100 : 10); ++round) {
    Xoshiro random(seed + round);
    Points points;
    points.dimension = 2;
    for (int i = 0; i < 18; ++i) points.values.push_back(static_cast<float>(random.Unit()));
    double least = std::numeric_limits<double>::infinity();
    for (uint32_t code = 0; code < 19683; ++code) {  // 3^9
      std::vector<uint32_t> labels;
      for (uint32_t i = 0, rest = code; i < 9; ++i, rest /= 3) labels.push_back(rest % 3);
      least = std::min(least, SpreadOf(points, labels, 3));
    }
    double best = std::numeric_limits<double>::infinity();
    for (uint64_t run = 0; run < 40; ++run) {
      const Clustering found = KMeans(points, {3, seed + run, 50}, {}).value();
      ASSERT_EQ(std::set<uint32_t>(found.labels.begin(), found.labels.end()).size(),
                found.clusters);
      ASSERT_EQ(*std::max_element(found.labels.begin(), found.labels.end()), found.clusters - 1);
      EXPECT_NEAR(found.spread, SpreadOf(points, found.labels, found.clusters), 1e-4);
      EXPECT_EQ(KMeans(points, {3, seed + run, 50}, {})->labels, found.labels);
      best = std::min(best, found.spread);
    }
    EXPECT_NEAR(best, least, 1e-4) << seed + round;
  }
}

TEST(KMeans, MakesNoMoreClustersThanPointsDiffer) {
  Points points;
  points.dimension = 1;
  points.values = {1, 5, 1, 5, 9, 9, 1};
  const Clustering found = KMeans(points, {6, 1, 10}, {}).value();
  EXPECT_EQ(found.clusters, 3u);
  EXPECT_NEAR(found.spread, 0, 1e-6);
  EXPECT_FALSE(KMeans(points, {3, 1, 10}, kSpent).has_value());
}

// `groups` of `size` ranks that talk 10 to 20 bytes to each other and 1 to some others, numbered at
// random: [rank] group.
std::shared_ptr<const Pattern> Planted(uint32_t groups, uint32_t size, uint64_t seed,
                                       std::vector<uint32_t>& group_of) {
  const std::vector<uint32_t> number = ShuffledNumbers(groups * size, seed);
  Xoshiro random(seed + 1);
  std::vector<Pattern::Entry> entries;
  group_of.resize(number.size());
  for (uint32_t u = 0; u < number.size(); ++u) {
    group_of[number[u]] = u / size;
    for (uint32_t v = 0; v < number.size(); ++v) {
      if (u != v && u / size == v / size) {
        entries.push_back({number[u], number[v], 10.0 + random.Below(11), 1});
      } else if (u != v && random.Below(4 * size) == 0) {
        entries.push_back({number[u], number[v], 1, 1});
      }
    }
  }
  return Pattern::Make(groups * size, std::move(entries)).value();
}

void ExpectPartition(const Clusters& clusters, uint32_t ranks) {
  std::vector<uint32_t> seen(ranks, 0);
  uint32_t first = 0;
  for (const std::vector<uint32_t>& cluster : clusters) {
    ASSERT_FALSE(cluster.empty());
    EXPECT_TRUE(std::is_sorted(cluster.begin(), cluster.end()));
    EXPECT_GE(cluster[0], first);
    first = cluster[0];
    for (const uint32_t rank : cluster) ++seen[rank];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), ranks);
}

TEST(RankEmbedding, RecoversPlantedClusters) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 5; ++seed) {
    for (const uint32_t groups : {4u, 20u}) {  // dense, and Lanczos
      std::vector<uint32_t> group_of;
      const auto pattern = Planted(groups, 15, seed, group_of);
      const RankEmbedding embedding(GraphOf(*pattern), {groups, 0, {}, seed}, {});
      const Clusters clusters = embedding.Cluster(groups, seed, {});
      ExpectPartition(clusters, groups * 15);
      ASSERT_EQ(clusters.size(), groups) << seed;
      for (const std::vector<uint32_t>& cluster : clusters) {
        for (const uint32_t rank : cluster) EXPECT_EQ(group_of[rank], group_of[cluster[0]]) << seed;
      }
      EXPECT_EQ(SizeDeviation(clusters), 0);
    }
  }
}

TEST(RankEmbedding, NeverMixesWhatIsNotConnected) {
  // A ring of 40, ten pairs and five ranks that talk to nobody, numbered at random.
  const std::vector<uint32_t> number = ShuffledNumbers(65, TestSeed());
  std::vector<Pattern::Entry> entries;
  std::vector<uint32_t> component(65);
  for (uint32_t u = 0; u < 65; ++u) {
    component[number[u]] = u < 40 ? 0 : u < 60 ? u / 2 : u;
    if (u < 40) entries.push_back({number[u], number[(u + 1) % 40], 3, 1});
    if (u >= 40 && u < 60 && u % 2 == 0) entries.push_back({number[u], number[u + 1], 9, 1});
  }
  const WeightedGraph graph = GraphOf(*Pattern::Make(65, std::move(entries)).value());
  for (const uint32_t wanted : {1u, 2u, 16u, 30u, 60u, 64u, 65u}) {
    const RankEmbedding embedding(graph, {wanted, 0, {}, 1}, {});
    EXPECT_EQ(embedding.components(), 16u);
    const Clusters clusters = embedding.Cluster(wanted, 1, {});
    ExpectPartition(clusters, 65);
    EXPECT_GE(clusters.size(), 16u);
    EXPECT_LE(clusters.size(), wanted + 16);
    for (const std::vector<uint32_t>& cluster : clusters) {
      for (const uint32_t rank : cluster) EXPECT_EQ(component[rank], component[cluster[0]]);
    }
  }
}

TEST(RankEmbedding, TakesNearlyAsManyClustersAsRanks) {
  const WeightedGraph graph = RandomGrid(20, 15, TestSeed());
  for (const uint32_t wanted : {150u, 299u, 300u}) {
    const RankEmbedding embedding(graph, {wanted, 64, {}, 1}, {});
    const Clusters clusters = embedding.Cluster(wanted, 1, {});
    ExpectPartition(clusters, 300);
    EXPECT_LE(clusters.size(), wanted);
  }
}

TEST(RankEmbedding, GivesRunsOfRanksOnceStopped) {
  const RankEmbedding embedding(RandomGrid(4, 5, 1), {4, 0, {}, 1}, kSpent);
  EXPECT_EQ(embedding.eigenvectors(), 0u);
  const Clusters clusters = embedding.Cluster(4, 1, kSpent);
  ASSERT_EQ(clusters.size(), 4u);
  EXPECT_EQ(clusters[1], (std::vector<uint32_t>{5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace coppice::rank_clusters_test
