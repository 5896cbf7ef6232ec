#include "daemon/mapping/search/cluster/k_means.h"

#include <Eigen/Dense>
#include <algorithm>
#include <limits>
#include <numeric>

#include "daemon/mapping/search/random.h"

namespace coppice {
namespace {

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

}  // namespace

std::optional<Clustering> KMeans(const Points& points, const KMeansOptions& options,
                                 const SearchControl& control) {
  return Lloyd(points, options, control).Run();
}

}  // namespace coppice
