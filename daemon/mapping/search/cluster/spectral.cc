#include "daemon/mapping/search/cluster/spectral.h"

#include <Spectra/SymEigsSolver.h>

#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <algorithm>
#include <cmath>
#include <exception>

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

}  // namespace coppice
