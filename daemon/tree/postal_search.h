// Local search on a postal tree, every step judged by the exact evaluation: it repairs what the
// postal model's constants do not know (order of node numbers, load, unequal routes).
//
//   move       a rank with all below it to another parent
//   exchange   two ranks take each other's place
//   re-root    a child of the root changes places with it
//
// Of at most eight ranks, all of these are tried until none helps. Of more, those are tried that
// the postal model expects to help: the rank that is reached last and the ranks above it, to where
// they would be reached soonest. The number of evaluations is bounded.
#ifndef COPPICE_DAEMON_TREE_POSTAL_SEARCH_H_
#define COPPICE_DAEMON_TREE_POSTAL_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "daemon/tree/postal_groups.h"

namespace coppice {

// Microseconds that the tree with these parents ([rank], -1 for the root) takes; infinite if an
// edge has no route. A result that exceeds `cutoff_us` may be less than it could be.
using TimeOfParents =
    absl::FunctionRef<double(absl::Span<const int32_t> parents, double cutoff_us)>;

// Ranks times evaluations of one search, at most: 8 evaluations of 64 ranks, 256 of 8.
inline constexpr uint32_t kMaxPostalSteps = 512;
inline constexpr uint32_t kMaxPostalStepsOfFew = 2048;
inline constexpr uint32_t kMaxRanksSearched = 64;
inline constexpr uint32_t kMaxRanksSearchedFully = 8;

// Changes `parents`, a tree that takes `us`, for the better or not at all; answers the new time. No
// rank gets more than `degree` children. Nothing is tried above kMaxRanksSearched.
double ImprovePostal(const PostalGroups& groups, uint32_t degree, TimeOfParents time_of, double us,
                     std::vector<int32_t>& parents);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_POSTAL_SEARCH_H_
