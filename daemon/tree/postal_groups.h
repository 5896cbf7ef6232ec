// What a postal tree is built from: the communicator's units, how they nest, and what a packet
// costs at each level, as constants of the postal model (Bar-Noy and Kipnis 1992; Karp, Sahay,
// Santos and Schauser 1993).
//
//   a node serves     #  #  #            one child each `gap`
//   child 1 is there     |-- lag --|     `lag` after its slot begins, and serves from then on
//
// The tree works in both directions. Read backwards in time the way up is a broadcast, too: a child
// must have its packet there before its parent's slot for it. So both directions and all sizes of
// the mix add up to one lag and one gap. Routes enter as hops; load only orders the units of a
// group. What a finished tree costs is not decided here but by the exact evaluation.
#ifndef COPPICE_DAEMON_TREE_POSTAL_GROUPS_H_
#define COPPICE_DAEMON_TREE_POSTAL_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree_plan.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

// A unit is the ranks of one bundle (a host's ports on one switch), the first of which serves the
// others, or a single rank.
struct PostalGroups {
  struct Level {
    std::vector<uint32_t> begin;  // [group + 1] positions of units; groups nest
    double lag_us = 0;            // between two units that are together here but no lower
    uint32_t groups() const { return static_cast<uint32_t>(begin.size()) - 1; }
  };
  std::vector<uint32_t> unit_begin;  // [unit + 1] into `ranks`
  std::vector<uint32_t> ranks;       // of units, ascending in each
  std::vector<double> wait_us;       // [unit] on its port's link; empty without load
  std::vector<Level> levels;         // inner before outer; the last is one group of all
  double host_lag_us = 0;            // between two ranks of a bundle
  double gap_us = 0;
  uint32_t most_in_unit = 1;

  uint32_t unit_count() const { return static_cast<uint32_t>(unit_begin.size()) - 1; }
  uint32_t first_rank(uint32_t unit) const { return ranks[unit_begin[unit]]; }
};

// A unit is a bundle if none has more than four ranks or so many that their NICs' `degree` leaves
// less than two children to serve besides; else a rank is. Members are endpoints of the snapshot's
// fabric in one component. O(P log P * levels).
PostalGroups FindPostalGroups(const Snapshot& snapshot, const CostProfile& profile,
                              const TreeRequest& request, uint32_t degree);

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

#endif  // COPPICE_DAEMON_TREE_POSTAL_GROUPS_H_
