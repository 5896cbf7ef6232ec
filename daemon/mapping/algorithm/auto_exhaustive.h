// The best of all mappings of a few ranks, by branch and bound.
//
//          rank a        the heaviest rank first, on every place
//        /   |   (b3)
//      b1    b2   x      then the next: what is placed so far never costs less with more ranks,
//     /  |               so that a branch that costs as much as the best mapping ends (x)
//
// By the approximation of congestion more ranks may cost less, as all of them find other ways: it
// counts for whole mappings only.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_EXHAUSTIVE_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_EXHAUSTIVE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "daemon/mapping/algorithm/auto_incumbent.h"

namespace coppice {

inline constexpr uint32_t kFewRanks = 8;

// True: incumbent's mapping is an optimum, which it now is or was. False: stopped, or beyond the
// number of branches that are tried. Problems of at most kFewRanks ranks. Memory: O(ranks * pairs).
absl::StatusOr<bool> TryAllMappings(const MappingProblem& problem, const SparseProblem& sparse,
                                    const SearchControl& control, Incumbent& incumbent);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_EXHAUSTIVE_H_
