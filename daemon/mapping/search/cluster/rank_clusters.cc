#include <Spectra/SymEigsSolver.h>

#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include "daemon/mapping/search/cluster/clusters.h"
#include "daemon/mapping/search/random.h"

namespace coppice {
namespace {

constexpr uint32_t kFewVertices = 64;     // O(n^3) is below a millisecond
constexpr uint32_t kDenseVertices = 200;  // ... milliseconds: for many vectors
constexpr uint32_t kFewVectors = 8;
constexpr double kTolerance = 1e-6;
constexpr int kRestarts = 60;
constexpr uint32_t kMinBasis = 40;

using SparseMatrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;

// What a weight is multiplied with.
double Scale(const WeightedGraph& graph, const SimilarityOptions& similarity) {
  double most = 0;
  for (const double weight : graph.weights) most = std::max(most, weight);
  return most > 0 ? similarity.greatest / most : 0;
}

// D^-1/2 S D^-1/2 = I - L: the same vectors, the eigenvalues 1 - lambda, the greatest first.
SparseMatrix NormalisedSimilarity(const WeightedGraph& graph, const SimilarityOptions& similarity) {
  const uint32_t n = graph.vertex_count();
  const double scale = Scale(graph, similarity);
  std::vector<double> root = SimilarityDegrees(graph, similarity);
  for (double& degree : root) degree = 1 / std::sqrt(degree);
  std::vector<Eigen::Triplet<double>> entries;
  entries.reserve(graph.neighbours.size() + n);
  for (uint32_t u = 0; u < n; ++u) {
    entries.emplace_back(u, u, similarity.self * root[u] * root[u]);
    for (size_t e = graph.begin[u]; e < graph.begin[u + 1]; ++e) {
      const uint32_t v = graph.neighbours[e];
      entries.emplace_back(u, v, scale * graph.weights[e] * root[u] * root[v]);
    }
  }
  SparseMatrix matrix(n, n);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

// `values` ascending, `vectors` in their order; the last `count` are the wanted ones.
template <class Values, class Vectors>
Eigenvectors LastOf(const Values& values, const Vectors& vectors, uint32_t count) {
  Eigenvectors result;
  result.count = count;
  const auto n = static_cast<uint32_t>(vectors.rows());
  const auto columns = static_cast<uint32_t>(vectors.cols());
  result.vectors.resize(size_t{n} * count);
  for (uint32_t j = 0; j < count; ++j) {
    const uint32_t column = columns - 1 - j;
    result.values.push_back(1 - values[column]);
    for (uint32_t i = 0; i < n; ++i) result.vectors[size_t{i} * count + j] = vectors(i, column);
  }
  return result;
}

std::optional<Eigenvectors> Dense(const SparseMatrix& matrix, uint32_t count) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver{Eigen::MatrixXd(matrix)};
  if (solver.info() != Eigen::Success) return std::nullopt;
  Eigenvectors result = LastOf(solver.eigenvalues(), solver.eigenvectors(), count);
  result.dense = true;
  return result;
}

struct Stopped : std::exception {};

// The matrix as Spectra asks for it: also the only moment at which Spectra can be stopped.
class Product final {
 public:
  using Scalar = double;
  Product(const SparseMatrix& matrix, const SearchControl& control)
      : matrix_(matrix), control_(control) {}
  Eigen::Index rows() const { return matrix_.rows(); }
  Eigen::Index cols() const { return matrix_.cols(); }
  void perform_op(const double* in, double* out) const {
    if (control_.stopped()) throw Stopped();
    Eigen::Map<Eigen::VectorXd>(out, rows()).noalias() =
        matrix_ * Eigen::Map<const Eigen::VectorXd>(in, rows());
  }

 private:
  const SparseMatrix& matrix_;
  const SearchControl& control_;
};

std::optional<Eigenvectors> Lanczos(const SparseMatrix& matrix, uint32_t count, uint32_t basis,
                                    uint64_t seed, const SearchControl& control) {
  Product product(matrix, control);
  Xoshiro random(seed);
  Eigen::VectorXd start(matrix.rows());
  for (double& x : start) x = random.Unit() - 0.5;
  try {
    Spectra::SymEigsSolver<Product> solver(product, count, basis);
    solver.init(start.data());
    const auto found = static_cast<uint32_t>(solver.compute(
        Spectra::SortRule::LargestAlge, kRestarts, kTolerance, Spectra::SortRule::SmallestAlge));
    if (found == 0) return std::nullopt;
    return LastOf(solver.eigenvalues(), solver.eigenvectors(found), found);
  } catch (const std::exception&) {  // stopped, or Spectra's own: a basis that broke down
    return std::nullopt;
  }
}

using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using PointRows = Eigen::Map<const RowMatrix>;

constexpr uint32_t kBlock = 128;     // points whose distances are kept at once
constexpr float kSamePoint = 1e-9F;  // squared distance

class Lloyd final {
 public:
  Lloyd(const Points& points, const KMeansOptions& options, const SearchControl& control)
      : points_(points.values.data(), points.count(), points.dimension),
        options_(options),
        control_(control),
        random_(options.seed),
        labels_(points.count(), 0),
        distances_(points.count(), std::numeric_limits<float>::infinity()),
        lengths_(points_.rowwise().squaredNorm()) {}

  std::optional<Clustering> Run() {
    if (!Seed()) return std::nullopt;
    for (uint32_t i = 0; i < options_.iterations; ++i) {
      bool moved = false;
      if (!Assign(moved) && i == 0) return std::nullopt;
      if (!moved || control_.stopped()) break;
      UpdateMeans();
    }
    return Result();
  }

 private:
  uint32_t count() const { return static_cast<uint32_t>(points_.rows()); }

  // The first mean at random, each other one at a point drawn by its squared distance from the
  // nearest of those before.
  bool Seed() {
    means_.resize(std::min(options_.clusters, count()), points_.cols());
    uint32_t made = 0;
    for (uint32_t next = random_.Below(count()); made < means_.rows();) {
      means_.row(made++) = points_.row(next);
      if (control_.stopped()) return false;
      const float length = lengths_[next];
      const Eigen::VectorXf product = points_ * points_.row(next).transpose();
      for (uint32_t i = 0; i < count(); ++i) {
        distances_[i] = std::min(distances_[i], Squared(lengths_[i] + length - 2 * product[i]));
      }
      if (!Draw(next)) break;
    }
    means_.conservativeResize(made, Eigen::NoChange);
    return true;
  }

  // What is left of a difference of equal numbers is rounding.
  static float Squared(float value) { return value > kSamePoint ? value : 0; }

  bool Draw(uint32_t& next) {
    double sum = 0;
    for (const float d : distances_) sum += d;
    if (!(sum > 0)) return false;
    double left = random_.Unit() * sum;
    for (uint32_t i = 0; i < count(); ++i) {
      if (distances_[i] == 0) continue;
      next = i;
      left -= distances_[i];
      if (left < 0) break;
    }
    return true;
  }

  // Every point to its nearest mean, the first of equals. False: stopped on the way.
  bool Assign(bool& moved) {
    const Eigen::RowVectorXf means = means_.rowwise().squaredNorm().transpose();
    RowMatrix scores;
    for (uint32_t begin = 0; begin < count(); begin += kBlock) {
      if (control_.stopped()) return false;
      const uint32_t rows = std::min(kBlock, count() - begin);
      scores.noalias() = -2 * (points_.middleRows(begin, rows) * means_.transpose());
      scores.rowwise() += means;
      for (uint32_t i = 0; i < rows; ++i) {
        Eigen::Index best = 0;
        const float score = scores.row(i).minCoeff(&best);
        distances_[begin + i] = std::max(0.0F, score + lengths_[begin + i]);
        moved = moved || labels_[begin + i] != best || !assigned_;
        labels_[begin + i] = static_cast<uint32_t>(best);
      }
    }
    assigned_ = true;
    return true;
  }

  void UpdateMeans() {
    std::vector<uint32_t> sizes(means_.rows(), 0);
    means_.setZero();
    for (uint32_t i = 0; i < count(); ++i) {
      means_.row(labels_[i]) += points_.row(i);
      ++sizes[labels_[i]];
    }
    for (uint32_t c = 0; c < sizes.size(); ++c) {
      if (sizes[c] > 0) {
        means_.row(c) /= static_cast<float>(sizes[c]);
        continue;
      }
      const auto farthest = std::max_element(distances_.begin(), distances_.end());
      means_.row(c) = points_.row(farthest - distances_.begin());
      *farthest = 0;
    }
  }

  Clustering Result() {
    Clustering result;
    std::vector<uint32_t> number(means_.rows(), std::numeric_limits<uint32_t>::max());
    for (uint32_t& label : labels_) {
      if (number[label] > result.clusters) number[label] = result.clusters++;
      label = number[label];
    }
    result.spread = std::accumulate(distances_.begin(), distances_.end(), 0.0);
    result.labels = std::move(labels_);
    return result;
  }

  const PointRows points_;
  const KMeansOptions options_;
  const SearchControl& control_;
  Xoshiro random_;
  RowMatrix means_;
  std::vector<uint32_t> labels_;
  std::vector<float> distances_;  // [point] squared, from its mean
  const Eigen::VectorXf lengths_;
  bool assigned_ = false;
};

// [vertex] its component by edges above 0, numbered by the first vertex; how many there are.
std::vector<uint32_t> ComponentsOf(const WeightedGraph& graph, uint32_t& count) {
  constexpr uint32_t kUnseen = 0xffffffff;
  std::vector<uint32_t> component(graph.vertex_count(), kUnseen), reached;
  count = 0;
  for (uint32_t first = 0; first < graph.vertex_count(); ++first) {
    if (component[first] != kUnseen) continue;
    component[first] = count;
    reached.assign(1, first);
    while (!reached.empty()) {
      const uint32_t u = reached.back();
      reached.pop_back();
      for (size_t e = graph.begin[u]; e < graph.begin[u + 1]; ++e) {
        uint32_t& other = component[graph.neighbours[e]];
        if (other != kUnseen || !(graph.weights[e] > 0)) continue;
        other = count;
        reached.push_back(graph.neighbours[e]);
      }
    }
    ++count;
  }
  return component;
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

std::vector<double> SimilarityDegrees(const WeightedGraph& graph,
                                      const SimilarityOptions& similarity) {
  const double scale = Scale(graph, similarity);
  std::vector<double> degrees(graph.vertex_count(), similarity.self);
  for (uint32_t u = 0; u < degrees.size(); ++u) {
    for (size_t e = graph.begin[u]; e < graph.begin[u + 1]; ++e) {
      degrees[u] += scale * graph.weights[e];
    }
  }
  return degrees;
}

std::optional<Eigenvectors> FirstEigenvectors(const WeightedGraph& graph,
                                              const SimilarityOptions& similarity, uint32_t count,
                                              uint64_t seed, const SearchControl& control) {
  const uint32_t n = graph.vertex_count();
  count = std::min(count, n);
  if (count == 0 || control.stopped()) return std::nullopt;
  const SparseMatrix matrix = NormalisedSimilarity(graph, similarity);
  if (n <= kFewVertices || (n <= kDenseVertices && count > kFewVectors) ||
      (count > n / 2 && n <= kMaxDenseVertices)) {
    return Dense(matrix, count);
  }
  count = std::min(count, n - 1);
  std::optional<Eigenvectors> best;
  for (const uint32_t factor : {2u, 4u}) {
    const uint32_t basis = std::min(n, std::max(kMinBasis, factor * count + 1));
    std::optional<Eigenvectors> found = Lanczos(matrix, count, basis, seed, control);
    if (control.stopped()) return std::nullopt;
    if (found.has_value() && (!best.has_value() || found->count > best->count)) {
      best = std::move(found);
    }
    if (best.has_value() && best->count == count) return best;
  }
  if (n <= kMaxDenseVertices) return Dense(matrix, count);
  return best;
}

std::optional<Clustering> KMeans(const Points& points, const KMeansOptions& options,
                                 const SearchControl& control) {
  return Lloyd(points, options, control).Run();
}

RankEmbedding::RankEmbedding(const WeightedGraph& graph, const ClusteringOptions& options,
                             const SearchControl& control)
    : ranks_(graph.vertex_count()),
      most_vectors_(options.eigenvectors == 0 ? ranks_ : options.eigenvectors) {
  uint32_t count = 0;
  const std::vector<uint32_t> component_of = ComponentsOf(graph, count);
  std::vector<GraphPart> parts = SplitGraph(graph, component_of, count);
  for (GraphPart& part : parts) components_.push_back({std::move(part.vertices), {}});
  const std::vector<uint32_t> shares = ShareOut(options.clusters);
  size_t largest = 0;
  for (uint32_t c = 0; c < components_.size(); ++c) {
    Component& component = components_[c];
    // A cluster for all, or for each.
    if (shares[c] == 1 || shares[c] == component.ranks.size()) continue;
    std::optional<Eigenvectors> vectors =
        FirstEigenvectors(parts[c].graph, options.similarity, std::min(most_vectors_, shares[c]),
                          options.seed, control);
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
