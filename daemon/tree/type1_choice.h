// The best type I tree for one communicator on the live fabric: every builder, every width that
// the closed form allows, each judged by the exact evaluation.
#ifndef COPPICE_DAEMON_TREE_TYPE1_CHOICE_H_
#define COPPICE_DAEMON_TREE_TYPE1_CHOICE_H_

#include <cstddef>
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

// Communicators above this have their hierarchical trees compared at the closed form's k* only:
// building one is then what most of a plan's time goes into, and nothing cheaper than building it
// tells its height within the NICs' degree limit.
inline constexpr size_t kMostRanksForAllHierarchical = 16384;

// The least predicted time over every builder and every admissible width of WidthCandidates() (up
// to the limit above); ties: k-ary, k-nomial, hierarchical, then the lower width. So never worse
// than any builder at any width of the interval, and above the limit never worse than k-ary and
// k-nomial at any of them, and hierarchical at k*. A builder that no width of the interval suits
// takes the first that does, halving. Alternatives: the best other candidate of each builder, with
// its total_us, or, where only a bound was needed to exclude it, "takes at least X us".
//
// RESOURCE_EXHAUSTED: no candidate respects the NICs' degree limit (the last builder's words).
// FAILED_PRECONDITION: an edge of the tree has no route (names both ends). Others as the builders.
absl::StatusOr<Type1Result> ChooseType1(const Snapshot& snapshot, const CostProfile& profile,
                                        const TreeRequest& request, const MemberPlaces& places);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_CHOICE_H_
