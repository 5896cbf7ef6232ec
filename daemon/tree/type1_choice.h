// The best type I tree for one communicator on the live fabric: every builder, every width that
// the closed form allows, each judged by the exact evaluation.
#ifndef COPPICE_DAEMON_TREE_TYPE1_CHOICE_H_
#define COPPICE_DAEMON_TREE_TYPE1_CHOICE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

struct Type1Result {
  Alternative quickest;  // its builder, width and total_us
  std::optional<TimedTree>
      best;  // nullopt: it is not built, as it takes longer than who asks wants
  std::vector<Alternative> alternatives;  // the other candidates, best first
};

// Communicators above this have hierarchical trees compared at the closed form's k* only: those
// have to be arranged before they can be judged, which for 19 widths of 40,960 members was nine
// tenths of a plan. k-ary and k-nomial trees are compared at every width, whatever the members.
inline constexpr size_t kMaxRanksForAllHierarchical = 16384;

// The least predicted time over every builder and every width of WidthsToTry(), with links' queues
// (contended_metrics.h) for as many candidates as type1_choice.cc can afford, without for others;
// times within 1e-9 of each other count as equal: then k-ary, k-nomial, hierarchical, postal, the
// lower width. So never worse than any builder at any of these widths, but for hierarchical and
// postal trees above their limits (kMaxRanksForPostal). A builder that no width of the interval
// suits takes the first that does, halving. Postal trees have no width to choose: they are left out
// where a width is asked for without a builder. Alternatives: the best other tree of each builder,
// with its total_us, or, where only a bound was needed to exclude it, "takes at least X us".
//
// Who asks has no use for a tree that takes longer than `limit_us`: among more than
// kMaxRanksContended members one that is known to is not built.
//
// RESOURCE_EXHAUSTED: no candidate respects the NICs' degree limit; says which limit would do.
// FAILED_PRECONDITION: an edge of the tree has no route (names both ends). Others as the builders.
absl::StatusOr<Type1Result> ChooseType1(const Snapshot& snapshot, const CostProfile& profile,
                                        const TreeRequest& request, const MemberPlaces& places,
                                        double limit_us = kNoCutoff);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_CHOICE_H_
