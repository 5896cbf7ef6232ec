// Type I trees: every inner node is a member's NIC. Three ways to arrange the ranks (Chen 2024,
// section 3) behind one signature each, and which widths they may have.
#ifndef COPPICE_DAEMON_TREE_TYPE1_H_
#define COPPICE_DAEMON_TREE_TYPE1_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/tree/closed_form.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/group_slots.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

// A type I tree over `members` in which every rank is still without parent. INVALID_ARGUMENT: no
// members, a member that is no endpoint of `fabric`, or a width below 2 for more than one member.
absl::StatusOr<AggregationTree> BareTypeITree(const Fabric& fabric, Members members,
                                              TreeBuilder builder, uint32_t width);

// RESOURCE_EXHAUSTED if a rank has more than `nic_degree` children: names the one with the most
// (the lowest of them), its children and the limit. O(ranks).
absl::Status CheckNicDegree(const AggregationTree& tree, uint32_t nic_degree);

// Least n with k^n >= count; k >= 2, count >= 1.
uint32_t DigitsFor(uint64_t count, uint32_t width);

// The k-nomial parent of a slot: its lowest non-zero base-k digit set to 0. slot > 0.
//   k = 4: 0 <- 1, 2, 3, 4, 8, 12, 16    4 <- 5, 6, 7    16 <- 17, 18, 19, 20, 24, 28
uint64_t KnomialParent(uint64_t slot, uint32_t width);

// All three: width k >= 2 unless P <= 1 (INVALID_ARGUMENT); RESOURCE_EXHAUSTED if some rank would
// have more than `nic_degree` children, naming the rank, its children and the limit. P = 0 is
// INVALID_ARGUMENT, P = 1 the single node.

// Definition 7: parent of r is (r-1)/k.
absl::StatusOr<AggregationTree> BuildKary(const Fabric& fabric, Members members, uint32_t width,
                                          uint32_t nic_degree);

// Definition 8: parent of r is r with its lowest non-zero base-k digit set to 0.
absl::StatusOr<AggregationTree> BuildKnomial(const Fabric& fabric, Members members, uint32_t width,
                                             uint32_t nic_degree);

// The members' nested groups (host, leaf switch, pod, ...), those of one part left out: a group
// that holds one rank is that rank, and a level that does not divide its group further is none. The
// ranks of one host are ordered; what is above stands in order of its lowest rank. Members are
// endpoints of the hierarchy's fabric. O(ranks * levels), and a logarithm unless they stand in
// order.
NestedGroups GroupMembers(const Hierarchy& hierarchy, Members members);

// Algorithms 2-4 with the least occupied height (group_slots.h). `groups` are the members'.
absl::StatusOr<AggregationTree> BuildHierarchical(const Fabric& fabric, const NestedGroups& groups,
                                                  Members members, uint32_t width,
                                                  uint32_t nic_degree);

// The widths k that the closed form allows (Chen 2024, 3.1, formulas (5) and (6)): the requested
// width alone, if there is one. Else k* and the whole widths whose F(k) over both directions is
// within twice the profile's tolerance (which is per direction) of F(k*), none above `nic_degree`
// or above the members less one; but never below 2.
WidthInterval WidthCandidates(const CostProfile& profile, const TreeRequest& request,
                              uint32_t nic_degree);

// Every width of that interval, and of a ladder from 2 to 64 those whose closed form is at most
// half as much again as the best: what few ranks, contention and a long message's stages make of a
// width the closed form only guesses. Ascending; the interval alone where none of these matters,
// and for more than `kMaxRanksForLadder` members, which are judged one by one.
inline constexpr size_t kFewRanks = 32;
inline constexpr size_t kMaxRanksForLadder = 16384;
std::vector<uint32_t> WidthsToTry(const CostProfile& profile, const TreeRequest& request,
                                  uint32_t nic_degree);

// The best type I tree for one communicator on the live fabric.
struct Type1Result {
  Alternative quickest;           // its builder, width and total_us
  std::optional<TimedTree> best;  // nullopt: not built, as it takes longer than who asks wants
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
// A request with leaf ranks is ChooseAroundLeaves'.
//
// RESOURCE_EXHAUSTED: no candidate respects the NICs' degree limit; says which limit would do.
// FAILED_PRECONDITION: an edge of the tree has no route (names both ends). Others as the builders.
absl::StatusOr<Type1Result> ChooseType1(const Snapshot& snapshot, const CostProfile& profile,
                                        const TreeRequest& request, const MemberPlaces& places,
                                        double limit_us = kNoCutoff);

// The same for a request with leaf ranks: each builder's best tree over the other ranks, with the
// leaves hung where they cost least, so that `width` is that of these ranks alone. At least one
// rank is no leaf (INVALID_ARGUMENT). RESOURCE_EXHAUSTED also if the others' NICs cannot serve all
// leaves.
absl::StatusOr<Type1Result> ChooseAroundLeaves(const Snapshot& snapshot, const CostProfile& profile,
                                               const TreeRequest& request,
                                               const MemberPlaces& places);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_H_
