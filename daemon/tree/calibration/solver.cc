#include "daemon/tree/calibration/solver.h"

#include <Eigen/Dense>
#include <algorithm>

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

}  // namespace coppice
