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

// Communicators above this have each builder's tree compared at the closed form's k* only. Judging
// a tree takes time in proportion to its members; all widths of 40,960 members took 100 times as
// long as one search of their fabric, against 31 times with k* alone.
inline constexpr size_t kMostRanksForAllWidths = 16384;

// The least predicted time over every builder and every admissible width of WidthCandidates() (up
// to the limit above); ties: k-ary, k-nomial, hierarchical, then the lower width. So never worse
// than any builder at any width of the interval, and above the limit never worse than any builder
// at k*. A builder that no width of the interval suits takes the first that does, halving.
// Alternatives: the best other candidate of each builder, with its total_us, or, where only a bound
// was needed to exclude it, "takes at least X us".
//
// RESOURCE_EXHAUSTED: no candidate respects the NICs' degree limit (the last builder's words).
// FAILED_PRECONDITION: an edge of the tree has no route (names both ends). Others as the builders.
absl::StatusOr<Type1Result> ChooseType1(const Snapshot& snapshot, const CostProfile& profile,
                                        const TreeRequest& request, const MemberPlaces& places);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_CHOICE_H_
