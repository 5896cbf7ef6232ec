// Type I trees beyond k-nomial shapes: optimal trees of the postal model, unequal in depth and in
// width, improved under the exact evaluation. Where the three other builders fill levels, these
// give everybody a child whenever it could serve one in time:
//
//   lag = 3 gaps, T = 6 gaps     0 --+-- 1 --- 4        9 ranks at T = 7; a binomial tree of 8
//                                    +-- 2              takes 9 gaps
//                                    +-- 3 ...
//
// The communicator's groups (postal_groups.cc), schedules over them (postal_schedule.cc), and the
// trees that come of both (type1_postal.cc).
#ifndef COPPICE_DAEMON_TREE_TYPE1_POSTAL_H_
#define COPPICE_DAEMON_TREE_TYPE1_POSTAL_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/tree_plan.h"
#include "daemon/tree/tree_spec.h"
#include "daemon/tree/type1_bound.h"

namespace coppice {

// What a postal tree is built from: the communicator's units, how they nest, and what a packet
// costs at each level, as constants of the postal model (Bar-Noy and Kipnis 1992; Karp, Sahay,
// Santos and Schauser 1993).
//
//   a node serves     #  #  #            one child each `gap`
//   child 1 is there     |-- lag --|     `lag` after its slot begins, and serves from then on
//
// Read backwards in time the way up is a broadcast, too: a child must have its packet there before
// its parent's slot for it. So both directions and all sizes of the mix add up to one lag and one
// gap. Routes enter as hops; load only orders the units of a group.

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

// The two schedules that a postal tree is put together from. Both look for the least time T within
// which all can be reached, halving an interval, and for a given T serve greedily in order of time.
//
// Flat (Bar-Noy and Kipnis 1992, Karp et al. 1993): whoever can serve first does. Where all are
// equally far this is optimal, and N(t), how many a node reaches in time t including itself,
// follows from it; with lag 3 gap 1 the counts are 1, 1, 1, 2, 3, 4, 6, 9, ...
//
// Near and far: parts of units that are near each other (a leaf switch's), all others far.
//
//   root        far far far far | near near near        a slot goes far while some part lacks
//   part B          far | near near near near           units that its own members will not reach
//   part C              near near near                  by T, and the sender's part can spare it
//
// A part can spare a slot if its members' later slots still reach all that are missing: the sum of
// N(T - next slot) - 1 over its members, which is exact within a part. Parts that are entered late
// get several packets from outside, each for as many units as there is time for.
//
// Leaders: each part's first unit is reached once, then serves its own part, which takes `own_us`.
// It may serve others' leaders before, for as long as T leaves that time. The part that needs most
// is served first.

struct PostalCosts {
  double near_us = 0, far_us = 0;  // lag within a part and between parts; near <= far
  double gap_us = 0;
  uint32_t degree = 2;  // most children of a unit, 1 or more
};

struct PostalSchedule {
  double time_us = 0;            // when the last is reached
  std::vector<int32_t> parents;  // [unit or part] the one that serves it; -1 for the first
};

// Units are numbered part after part, in each in the order in which they are reached; part 0 holds
// the root, unit 0. `sizes` are 1 or more, largest first. `root_degree`: most children of the root.
// Should the greedy way find none, all count as far. O(units log parts) for each T tried, mostly
// less than a dozen.
PostalSchedule ScheduleNearFar(absl::Span<const uint32_t> sizes, const PostalCosts& costs,
                               uint32_t root_degree);

// `own_us` largest first; part 0 holds the root. Every leader serves at most `degree` others of
// `far_us` each.
PostalSchedule ScheduleLeaders(absl::Span<const double> own_us, const PostalCosts& costs);

// Auto leaves communicators above this to the other builders: a dozen schedules of so many ranks
// take longer than all of theirs.
inline constexpr size_t kMaxRanksForPostal = 16384;

struct PostalTree {
  AggregationTree tree;
  double us = 0;  // by `time_of`, which may have cut it off, but not of the first
};

// One tree for each level that may count as near and, for long messages, for each of some limits to
// a rank's children; the fastest one first and improved by local search, of a few ranks all. No
// rank has more than `nic_degree` children, nor more than the request's width. A tree's width is
// the most children of a rank, at least 2. Equal input, equal output. `time_of` judges, without
// contention: which of them is the fastest where packets get into each other's way is for the
// caller to find.
//
// INVALID_ARGUMENT: no members, a member that is no endpoint, a width below 2 for more than one.
// RESOURCE_EXHAUSTED: more than two ranks and a NIC degree below 2. O(P log P) times a few dozen,
// and kMaxPostalSteps.
absl::StatusOr<std::vector<PostalTree>> PostalTrees(const Snapshot& snapshot,
                                                    const CostProfile& profile,
                                                    const TreeRequest& request, uint32_t nic_degree,
                                                    TimeOfParents time_of);

// How the postal builder judges its trees: the exact evaluation, made cheap for one communicator
// whose trees are tried by the dozen. Edges of the same two ranks cost the same in every tree. Not
// thread-safe. The arguments outlive it.
class PostalJudge {
 public:
  // `tree` is a bare tree of the communicator (type1.h). `bound` is used where it is exact,
  // and may be null.
  PostalJudge(const Snapshot& snapshot, const CostProfile& profile, const TreeRequest& request,
              AggregationTree tree, Type1Bound* bound);

  // Microseconds that the tree with these parents ([rank], -1 for the root) takes without
  // contention; infinite if an edge has no route. A result that exceeds `cutoff_us` may be less
  // than it could be, but never less than another such result allows: it is a lower bound.
  double Of(absl::Span<const int32_t> parents, double cutoff_us);

 private:
  absl::Status FindEdges();  // of tree_; NOT_FOUND as WalkEdge

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  Type1Bound* const bound_;  // null unless exact
  AggregationTree tree_;
  std::vector<ChannelIndex> path_;
  std::vector<EdgeCost> edges_;                 // of tree_
  std::vector<std::optional<EdgeCost>> pairs_;  // of few ranks: [child * P + parent], once known
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_POSTAL_H_
