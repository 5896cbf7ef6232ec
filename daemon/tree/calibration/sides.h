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
#ifndef COPPICE_DAEMON_TREE_CALIBRATION_SIDES_H_
#define COPPICE_DAEMON_TREE_CALIBRATION_SIDES_H_

#include "absl/types/span.h"
#include "daemon/tree/calibration/solver.h"

namespace coppice {

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

#endif  // COPPICE_DAEMON_TREE_CALIBRATION_SIDES_H_
