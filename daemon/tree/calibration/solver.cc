#include "daemon/tree/calibration/solver.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace coppice {
namespace {

// Rounding leaves a dependent column about 1e-15 of its length, while widths, sizes and members
// that differ at all differ by more than 1e-7: 2^24 members, 2^24 and one.
constexpr double kRelativeTolerance = 1e-8;

Eigen::JacobiSVD<Eigen::MatrixXd> Decompose(const Triangle& triangle) {
  return Eigen::JacobiSVD<Eigen::MatrixXd>(triangle.r, Eigen::ComputeFullU | Eigen::ComputeFullV);
}

double SmallestKept(const Eigen::VectorXd& singular) { return kRelativeTolerance * singular[0]; }

}  // namespace

double WeightOf(const LatencySample& sample, ResidualScale scale) {
  return scale == ResidualScale::kAbsolute ? 1 : 1 / sample.us;
}

Sides SidesAt(const CostProfile& profile, absl::Span<const LatencySample> samples) {
  Sides sides;
  sides.reserve(samples.size());
  for (const LatencySample& sample : samples) sides.push_back(PortBoundsOf(profile, sample));
  return sides;
}

Eigen::MatrixXd WeightedRows(const CostProfile& profile, absl::Span<const LatencySample> samples,
                             const Sides& sides, const Unknowns& unknowns, ResidualScale scale) {
  Eigen::MatrixXd rows(samples.size(), unknowns.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const LinearForm form = LinearFormOf(profile, samples[i], sides[i]);
    const double weight = WeightOf(samples[i], scale);
    for (size_t j = 0; j < unknowns.size(); ++j) rows(i, j) = weight * form.slope[unknowns[j]];
  }
  return rows;
}

Eigen::VectorXd WeightedResiduals(const CostProfile& profile,
                                  absl::Span<const LatencySample> samples, const Sides& sides,
                                  ResidualScale scale) {
  Eigen::VectorXd residuals(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const double us = LinearFormOf(profile, samples[i], sides[i]).Us(profile);
    residuals[i] = WeightOf(samples[i], scale) * (samples[i].us - us);
  }
  return residuals;
}

double SumOfSquares(const CostProfile& profile, absl::Span<const LatencySample> samples,
                    ResidualScale scale) {
  double sum = 0;
  for (const LatencySample& sample : samples) {
    const double residual = WeightOf(sample, scale) * (sample.us - PredictUs(profile, sample));
    sum += residual * residual;
  }
  return sum;
}

Triangle Reduce(Eigen::MatrixXd rows, const Eigen::VectorXd& target) {
  const Eigen::Index columns = rows.cols();
  const Eigen::Index height = std::max(rows.rows(), columns);
  Eigen::VectorXd padded = Eigen::VectorXd::Zero(height);
  padded.head(target.size()) = target;
  rows.conservativeResizeLike(Eigen::MatrixXd::Zero(height, columns));

  Triangle triangle;
  triangle.length = rows.colwise().stableNorm();
  for (double& length : triangle.length) length = length > 0 ? length : 1;
  rows.array().rowwise() /= triangle.length.transpose().array();
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(rows);
  triangle.r = qr.matrixQR().topRows(columns).triangularView<Eigen::Upper>();
  padded.applyOnTheLeft(qr.householderQ().adjoint());
  triangle.target = padded.head(columns);
  return triangle;
}

Eigen::MatrixXd Rows(const Triangle& triangle) { return triangle.r * triangle.length.asDiagonal(); }

Eigen::MatrixXd UndeterminedDirections(const Triangle& triangle, double tolerance) {
  const auto svd = Decompose(triangle);
  const double least = std::max(SmallestKept(svd.singularValues()), tolerance);
  const Eigen::Index lost = (svd.singularValues().array() <= least).count();
  return svd.matrixV().rightCols(lost);
}

Eigen::VectorXd Solve(const Triangle& triangle) {
  const auto svd = Decompose(triangle);
  const double least = SmallestKept(svd.singularValues());
  Eigen::VectorXd parts = svd.matrixU().adjoint() * triangle.target;
  for (Eigen::Index i = 0; i < parts.size(); ++i) {
    const double singular = svd.singularValues()[i];
    parts[i] = singular > least ? parts[i] / singular : 0;
  }
  const Eigen::VectorXd scaled = svd.matrixV() * parts;
  return scaled.cwiseQuotient(triangle.length);
}

Eigen::VectorXd InverseDiagonal(const Triangle& triangle) {
  const Eigen::Index columns = triangle.r.cols();
  const Eigen::MatrixXd inverse =
      triangle.r.triangularView<Eigen::Upper>().solve(Eigen::MatrixXd::Identity(columns, columns));
  return inverse.rowwise().squaredNorm().array() / triangle.length.array().square();
}

Eigen::VectorXd Leverages(const Eigen::MatrixXd& rows, const Triangle& triangle) {
  const Eigen::MatrixXd scaled = rows * triangle.length.cwiseInverse().asDiagonal();
  const Eigen::MatrixXd q =
      triangle.r.transpose().triangularView<Eigen::Lower>().solve(scaled.transpose());
  return q.colwise().squaredNorm();
}

namespace {

constexpr size_t kMaxThresholds = 8;  // thresholds tried for each max()
constexpr int kMaxSolverSteps = 30;
constexpr double kGainRounding = 1e-9;  // relative; less is no gain
constexpr uint64_t kNoThreshold = std::numeric_limits<uint64_t>::max();

// Sizes from which on the port's rate wins, for one type.
struct Thresholds {
  uint64_t up = kNoThreshold, down = kNoThreshold;
};
using BothThresholds = std::array<Thresholds, 2>;  // type I, type II

size_t IndexOf(TreeType type) { return type == TreeType::kTypeI ? 0 : 1; }

Sides SidesOf(const Problem& problem, const BothThresholds& thresholds) {
  Sides sides;
  sides.reserve(problem.samples.size());
  for (const LatencySample& sample : problem.samples) {
    const Thresholds& from = thresholds[IndexOf(sample.type)];
    const Payload payload = PayloadOf(sample.operation, sample.bytes);
    sides.push_back({.up = payload.up_bytes > 0 && payload.up_bytes >= from.up,
                     .down = payload.down_bytes > 0 && payload.down_bytes >= from.down});
  }
  return sides;
}

// The linear solution for given sides, judged without them.
Settled SolveFor(const Problem& problem, const CostProfile& start, const Sides& sides) {
  const Eigen::VectorXd change =
      Solve(Reduce(WeightedRows(start, problem.samples, sides, problem.unknowns, problem.scale),
                   WeightedResiduals(start, problem.samples, sides, problem.scale)));
  Settled solved = {.profile = start};
  for (size_t j = 0; j < problem.unknowns.size(); ++j) {
    ConstantIn(solved.profile, problem.unknowns[j]) += change[static_cast<Eigen::Index>(j)];
  }
  solved.squares = SumOfSquares(solved.profile, problem.samples, problem.scale);
  solved.at_rest = SidesAt(solved.profile, problem.samples) == sides;
  return solved;
}

bool IsBetter(const Settled& a, const Settled& b) {
  if (a.squares < b.squares * (1 - kGainRounding)) return true;
  return a.at_rest && !b.at_rest && a.squares <= b.squares * (1 + kGainRounding);
}

// Gauss-Newton from `best`; the best point passed.
Settled StepToRest(const Problem& problem, Settled best) {
  Settled point = best;
  for (int step = 0; step < kMaxSolverSteps && !point.at_rest; ++step) {
    point = SolveFor(problem, point.profile, SidesAt(point.profile, problem.samples));
    if (IsBetter(point, best)) best = point;
  }
  return best;
}

// Sizes of one type's samples, ascending, at most kMaxThresholds of them, and none.
std::vector<uint64_t> ThresholdsToTry(const Problem& problem, TreeType type) {
  std::vector<uint64_t> sizes;
  for (const LatencySample& sample : problem.samples) {
    if (sample.type == type && sample.bytes > 0) sizes.push_back(sample.bytes);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::vector<uint64_t> tried = {kNoThreshold};
  const size_t count = std::min(kMaxThresholds, sizes.size());
  for (size_t i = 0; i < count; ++i) tried.push_back(sizes[i * sizes.size() / count]);
  return tried;
}

Settled SearchThresholds(const Problem& problem, const CostProfile& start) {
  BothThresholds best;
  Settled found = SolveFor(problem, start, SidesOf(problem, best));
  for (int sweep = 0; sweep < 2; ++sweep) {
    for (const TreeType type : {TreeType::kTypeI, TreeType::kTypeII}) {
      const std::vector<uint64_t> tried = ThresholdsToTry(problem, type);
      BothThresholds thresholds = best;
      for (const uint64_t up : tried) {
        for (const uint64_t down : tried) {
          thresholds[IndexOf(type)] = {.up = up, .down = down};
          const Settled solved = SolveFor(problem, start, SidesOf(problem, thresholds));
          if (!IsBetter(solved, found)) continue;
          found = solved;
          best = thresholds;
        }
      }
    }
  }
  return found;
}

}  // namespace

Settled Settle(const Problem& problem, const CostProfile& start) {
  const Settled first = SolveFor(problem, start, SidesAt(start, problem.samples));
  const Settled near = StepToRest(problem, first);
  if (start.port_gbps <= 0) return near;
  const Settled far = StepToRest(problem, SearchThresholds(problem, start));
  return IsBetter(far, near) ? far : near;
}

}  // namespace coppice
