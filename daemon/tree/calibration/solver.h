// The linear algebra of calibration: weighted rows of derivatives, reduced to a triangle by
// Householder reflections, and what can be read off that triangle. Never forms J^T J, whose
// condition is the square of J's.
//
//   J (samples x unknowns)  =  Q * R * diag(length),   columns of Q R of unit length,
//
// so that "small" singular values of R do not depend on the units of the constants. Internal to
// calibration; knows no text.
#ifndef COPPICE_DAEMON_TREE_CALIBRATION_SOLVER_H_
#define COPPICE_DAEMON_TREE_CALIBRATION_SOLVER_H_

#include <Eigen/Core>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "daemon/tree/calibration/calibration.h"
#include "daemon/tree/calibration/model.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

// Numbers of the constants that a fit may change (model.h).
using Unknowns = std::vector<size_t>;

// 1, or 1 / latency: the weight of a sample's residual.
double WeightOf(const LatencySample& sample, ResidualScale scale);

// Sample i's form with its max() decided by `sides[i]`.
using Sides = std::vector<PortBounds>;
Sides SidesAt(const CostProfile& profile, absl::Span<const LatencySample> samples);

// [sample][unknown] weight * dT / d constant.
Eigen::MatrixXd WeightedRows(const CostProfile& profile, absl::Span<const LatencySample> samples,
                             const Sides& sides, const Unknowns& unknowns, ResidualScale scale);
// [sample] weight * (measured - the form's value at `profile`).
Eigen::VectorXd WeightedResiduals(const CostProfile& profile,
                                  absl::Span<const LatencySample> samples, const Sides& sides,
                                  ResidualScale scale);
// The sum of (weight * (measured - predicted))^2.
double SumOfSquares(const CostProfile& profile, absl::Span<const LatencySample> samples,
                    ResidualScale scale);

struct Triangle {
  Eigen::MatrixXd r;       // square, upper triangular
  Eigen::VectorXd length;  // of the columns before they were scaled; 1 for a column of zeros
  Eigen::VectorXd target;  // Q^T target, its first rows
};
// O(rows * columns^2).
Triangle Reduce(Eigen::MatrixXd rows, const Eigen::VectorXd& target);

// The rows that `triangle` stands for, as few as its columns.
Eigen::MatrixXd Rows(const Triangle& triangle);

// Orthonormal basis, a column each, of the directions (in units of `length`) whose singular value
// is at most 1e-8 of the largest or at most `tolerance`.
Eigen::MatrixXd UndeterminedDirections(const Triangle& triangle, double tolerance);

// The least-squares solution; among many, that of the least norm in units of `length`.
Eigen::VectorXd Solve(const Triangle& triangle);

// Diagonal of (J^T J)^-1, and of the projection J (J^T J)^-1 J^T. R must be regular.
Eigen::VectorXd InverseDiagonal(const Triangle& triangle);
Eigen::VectorXd Leverages(const Eigen::MatrixXd& rows, const Triangle& triangle);

// Least squares where the closed forms have corners: b = max(theta + S gamma, S / B) upwards and
// max(c_send, S / B) downwards (closed_form.h). On which side a sample lies depends on the very
// constants that are sought, and the sum of squares has a valley for every choice of sides.
//
// For one node the sides are thresholds: S / B wins above some size, upwards and downwards each, so
//
//     size     8   64  512  4096  ...
//     up       node  | port                 a choice of sides is 4 thresholds: type I and II,
//     down     node       | port            up and down
//
// The thresholds are searched (type by type, every pair up and down, the other type as it is), each
// judged by the true sum of squares at its own linear solution; from the best, Gauss-Newton steps
// run until the sides rest. Not an exact search: the types are taken in turn, and of more than
// eight sizes only some are thresholds; the steps then decide the sizes between.

struct Problem {
  absl::Span<const LatencySample> samples;
  Unknowns unknowns;
  ResidualScale scale;
};

struct Settled {
  CostProfile profile;
  double squares = 0;    // SumOfSquares there
  bool at_rest = false;  // the profile is the linear solution of its own sides
};

// The constants of least squares; those that are not unknown as in `start`. Where the samples do
// not determine them, the change from `start` of least norm. O(samples * constants^2) without a
// port's rate, some hundred times that with one.
Settled Settle(const Problem& problem, const CostProfile& start);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_CALIBRATION_SOLVER_H_
