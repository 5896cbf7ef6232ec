// Type I trees beyond k-nomial shapes: optimal trees of the postal model, unequal in depth and in
// width, improved under the exact evaluation. Where the three other builders fill levels, these
// give everybody a child whenever it could serve one in time:
//
//   lag = 3 gaps, T = 6 gaps     0 --+-- 1 --- 4        9 ranks at T = 7; a binomial tree of 8
//                                    +-- 2              takes 9 gaps
//                                    +-- 3 ...
//
// Built from postal_groups.h by postal_schedule.h.
#ifndef COPPICE_DAEMON_TREE_TYPE1_POSTAL_H_
#define COPPICE_DAEMON_TREE_TYPE1_POSTAL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/postal_groups.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/tree_plan.h"
#include "daemon/tree/type1_bound.h"

namespace coppice {

// Auto leaves communicators above this to the other builders: a dozen schedules of 16,384 ranks
// take as long as all of theirs.
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
