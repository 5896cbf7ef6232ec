// How the postal builder judges its trees: the exact evaluation, made cheap for one communicator
// whose trees are tried by the dozen. Edges of the same two ranks cost the same in every tree.
#ifndef COPPICE_DAEMON_TREE_POSTAL_JUDGE_H_
#define COPPICE_DAEMON_TREE_POSTAL_JUDGE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/type1_bound.h"

namespace coppice {

// Not thread-safe. The arguments outlive it.
class PostalJudge {
 public:
  // `tree` is a bare tree of the communicator (type1_ranks.h). `bound` is used where it is exact,
  // and may be null.
  PostalJudge(const Snapshot& snapshot, const CostProfile& profile, const TreeRequest& request,
              AggregationTree tree, Type1Bound* bound);

  // Microseconds that the tree with these parents ([rank], -1 for the root) takes without
  // contention; infinite if an edge has no route. A result that exceeds `cutoff_us` may be less
  // than it could be, but never less than another such result allows: it is a lower bound.
  double Of(absl::Span<const int32_t> parents, double cutoff_us);

 private:
  bool FindEdges();
  bool FindEdgesOfPairs();

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  Type1Bound* const bound_;  // null unless exact
  AggregationTree tree_;
  std::vector<ChannelIndex> path_;
  std::vector<EdgeCost> edges_;  // of tree_
  // Of few ranks: [child * P + parent], once known.
  std::vector<EdgeCost> pairs_;
  std::vector<bool> is_known_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_POSTAL_JUDGE_H_
