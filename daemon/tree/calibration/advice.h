// Why samples do not determine the constants, and what would: an error that a person with a cluster
// can act on.
//
// What to measure is found by trying: imagined samples (another width, another size, ...) are added
// to the rows of the real ones, and the fewest kinds of them that leave the fewest directions open
// are named. What stays open then, no latency of a whole tree can tell. What to fix instead is a
// basis of the real rows' columns (a matroid, so the greedy choice in order of preference is best).
#ifndef COPPICE_DAEMON_TREE_CALIBRATION_ADVICE_H_
#define COPPICE_DAEMON_TREE_CALIBRATION_ADVICE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/tree/calibration/solver.h"

namespace coppice {

// INVALID_ARGUMENT, if `samples` leave directions of `unknowns` open at `profile` (see
// UndeterminedDirections); else OK. `samples` must not be empty.
absl::Status CheckDetermined(const CostProfile& profile, absl::Span<const LatencySample> samples,
                             const Unknowns& unknowns, ResidualScale scale, double tolerance);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_CALIBRATION_ADVICE_H_
