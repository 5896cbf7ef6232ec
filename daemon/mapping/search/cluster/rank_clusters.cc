#include "daemon/mapping/search/cluster/rank_clusters.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/types/span.h"

namespace coppice {
namespace {

constexpr uint32_t kUnseen = 0xffffffff;

// Connected by edges above 0; [component] its vertices, ascending, in the order of the first.
std::vector<std::vector<uint32_t>> ConnectedComponents(const WeightedGraph& graph) {
  std::vector<std::vector<uint32_t>> components;
  std::vector<bool> seen(graph.vertex_count(), false);
  for (uint32_t first = 0; first < graph.vertex_count(); ++first) {
    if (seen[first]) continue;
    std::vector<uint32_t>& component = components.emplace_back(1, first);
    seen[first] = true;
    for (size_t next = 0; next < component.size(); ++next) {
      for (size_t e = graph.begin[component[next]]; e < graph.begin[component[next] + 1]; ++e) {
        const uint32_t v = graph.neighbours[e];
        if (seen[v] || !(graph.weights[e] > 0)) continue;
        seen[v] = true;
        component.push_back(v);
      }
    }
    std::sort(component.begin(), component.end());
  }
  return components;
}

// The edges among `vertices`, renumbered; `number` holds kUnseen throughout, before and after.
WeightedGraph Among(const WeightedGraph& graph, absl::Span<const uint32_t> vertices,
                    std::vector<uint32_t>& number) {
  for (uint32_t i = 0; i < vertices.size(); ++i) number[vertices[i]] = i;
  WeightedGraph among;
  among.begin.assign(1, 0);
  among.vertex_sizes.assign(vertices.size(), 1);
  for (const uint32_t u : vertices) {
    for (size_t e = graph.begin[u]; e < graph.begin[u + 1]; ++e) {
      if (number[graph.neighbours[e]] == kUnseen) continue;
      among.neighbours.push_back(number[graph.neighbours[e]]);
      among.weights.push_back(graph.weights[e]);
    }
    among.begin.push_back(among.neighbours.size());
  }
  for (const uint32_t u : vertices) number[u] = kUnseen;
  return among;
}

// Step 5: rows of length 1, of the first `count` vectors.
Points NormalisedRows(const Eigenvectors& vectors, uint32_t count) {
  Points rows;
  rows.dimension = std::min(count, vectors.count);
  for (size_t begin = 0; begin < vectors.vectors.size(); begin += vectors.count) {
    double squares = 0;
    for (uint32_t j = 0; j < rows.dimension; ++j) {
      squares += vectors.vectors[begin + j] * vectors.vectors[begin + j];
    }
    const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (uint32_t j = 0; j < rows.dimension; ++j) {
      rows.values.push_back(static_cast<float>(scale * vectors.vectors[begin + j]));
    }
  }
  return rows;
}

// Runs of equal length, as nearly as they go.
std::vector<uint32_t> RunsOf(size_t count, uint32_t runs) {
  std::vector<uint32_t> labels;
  for (size_t i = 0; i < count; ++i) labels.push_back(static_cast<uint32_t>(i * runs / count));
  return labels;
}

}  // namespace

RankEmbedding::RankEmbedding(const WeightedGraph& graph, const ClusteringOptions& options,
                             const SearchControl& control)
    : ranks_(graph.vertex_count()),
      most_vectors_(options.eigenvectors == 0 ? ranks_ : options.eigenvectors) {
  for (std::vector<uint32_t>& ranks : ConnectedComponents(graph)) {
    components_.push_back({std::move(ranks), {}});
  }
  const std::vector<uint32_t> shares = ShareOut(options.clusters);
  std::vector<uint32_t> number(ranks_, kUnseen);
  size_t largest = 0;
  for (uint32_t c = 0; c < components_.size(); ++c) {
    Component& component = components_[c];
    // A cluster for all, or for each.
    if (shares[c] == 1 || shares[c] == component.ranks.size()) continue;
    std::optional<Eigenvectors> vectors =
        FirstEigenvectors(Among(graph, component.ranks, number), options.similarity,
                          std::min(most_vectors_, shares[c]), options.seed, control);
    if (!vectors.has_value()) continue;
    component.vectors = *std::move(vectors);
    if (component.ranks.size() <= largest) continue;
    largest = component.ranks.size();
    eigenvectors_ = component.vectors.count;
  }
}

// [component] its clusters: by the largest remainder, one each at least.
std::vector<uint32_t> RankEmbedding::ShareOut(uint32_t clusters) const {
  std::vector<uint32_t> shares;
  std::vector<std::pair<double, uint32_t>> remainders;
  uint64_t given = 0;
  for (uint32_t c = 0; c < components_.size(); ++c) {
    const auto size = static_cast<double>(components_[c].ranks.size());
    const double share = std::min(size, size * clusters / ranks_);
    shares.push_back(std::max(1U, static_cast<uint32_t>(share)));
    given += shares[c];
    if (share > shares[c]) remainders.emplace_back(shares[c] - share, c);
  }
  std::sort(remainders.begin(), remainders.end());
  for (const auto& [remainder, c] : remainders) {
    if (given >= clusters) break;
    ++shares[c];
    ++given;
  }
  return shares;
}

Clusters RankEmbedding::Cluster(uint32_t wanted, uint64_t seed,
                                const SearchControl& control) const {
  const std::vector<uint32_t> shares = ShareOut(wanted);
  Clusters clusters;
  for (uint32_t c = 0; c < components_.size(); ++c) {
    const Component& component = components_[c];
    std::optional<Clustering> found;
    if (component.vectors.count > 0 && shares[c] > 1) {
      found = KMeans(NormalisedRows(component.vectors, shares[c]), {shares[c], seed}, control);
    }
    if (!found.has_value()) {
      found.emplace();
      found->labels = RunsOf(component.ranks.size(), shares[c]);
      found->clusters = shares[c];
    }
    const size_t first = clusters.size();
    clusters.resize(first + found->clusters);
    for (size_t i = 0; i < component.ranks.size(); ++i) {
      clusters[first + found->labels[i]].push_back(component.ranks[i]);
    }
  }
  std::sort(clusters.begin(), clusters.end());
  return clusters;
}

double SizeDeviation(const Clusters& clusters) {
  double sum = 0, squares = 0;
  for (const std::vector<uint32_t>& cluster : clusters) {
    const auto size = static_cast<double>(cluster.size());
    sum += size;
    squares += size * size;
  }
  const auto count = static_cast<double>(clusters.size());
  if (count == 0) return 0;
  const double mean = sum / count;
  return std::sqrt(std::max(0.0, squares / count - mean * mean));
}

}  // namespace coppice
