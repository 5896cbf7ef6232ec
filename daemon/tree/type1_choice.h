// The best type I tree for one communicator on the live fabric: every builder, every width worth
// trying, each judged by the exact evaluation.
#ifndef COPPICE_DAEMON_TREE_TYPE1_CHOICE_H_
#define COPPICE_DAEMON_TREE_TYPE1_CHOICE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "daemon/tree/member_places.h"
#include "daemon/tree/planner.h"

namespace coppice {

struct Type1Result {
  AggregationTree tree;
  std::vector<EdgeCost> edges;
  Prediction predicted;
  std::vector<Alternative> alternatives;  // the other candidates, best first
};

// The least predicted time over (builder, width); ties: k-ary, k-nomial, hierarchical, then the
// lower width. Candidates whose lower bound (every route as short as hops allow, no load, no
// serialisation) already exceeds the best are listed, but not evaluated.
//
// RESOURCE_EXHAUSTED: no candidate respects the NICs' degree limit (the last builder's words).
// FAILED_PRECONDITION: an edge of the tree has no route (names both ends). Others as the builders.
absl::StatusOr<Type1Result> ChooseType1(const Snapshot& snapshot, const CostProfile& profile,
                                        const TreeRequest& request, const MemberPlaces& places);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_CHOICE_H_
