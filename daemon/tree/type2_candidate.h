// A candidate for a tree of type II: the physical tree from a root, with all that the choice of
// serving switches needs to know of it, and the tree over ranks that comes of that choice.
//
// An endpoint can never serve, so who serves is decided on the switches alone, with the ranks
// counted at their leaf switches: a tenth of the vertices and the same answer. Who hangs below whom
// is decided on all of them.
#ifndef COPPICE_DAEMON_TREE_TYPE2_CANDIDATE_H_
#define COPPICE_DAEMON_TREE_TYPE2_CANDIDATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

// The fewest switches of a physical tree that must serve so that one aggregation tree connects all
// its members (Chen 2024, algorithm 5, made exact for any degree limits; spec: trees, 4.4).
//
// Works on plain arrays; load comes in as a preference among switches that save equally much.

// A rooted tree in which members hang. All spans are [vertex]; vertex 0 is the root and every
// parent comes before its children.
struct ReductionProblem {
  static constexpr int32_t kNoParent = -1;

  absl::Span<const int32_t> parents;
  absl::Span<const uint32_t> members;     // members at this very vertex (several ranks of one port)
  absl::Span<const uint32_t> degrees;     // K(v): most children; 0 and 1 = can only forward
  absl::Span<const uint32_t> preference;  // lower serves rather; empty = all alike
};

struct ReductionChoice {
  bool feasible = false;
  std::vector<uint32_t> serving;  // vertices, ascending; the first is the aggregation tree's root
  // Infeasible: the vertices that see two members or more and can only forward. Empty if degree
  // limits of 2 and more are too small all the same.
  std::vector<uint32_t> in_the_way;
};

// The least set of serving vertices, such that each member and each serving vertex but the topmost
// can have a serving ancestor as its parent and no serving vertex v has more than K(v) children. Of
// equal sets one whose topmost vertex is lowest; then vertices with a lower preference, then lower
// numbers, wherever they save equally much. No member or one: feasible, nobody serves.
// O(n + s log s) for n vertices of which s can serve.
ReductionChoice ChooseServing(const ReductionProblem& problem);

// Who is whose child, given a feasible `serving`.
struct ReductionTree {
  // [vertex] serving parent of a serving vertex; kNoParent for the topmost and for those that do
  // not serve.
  std::vector<int32_t> serving_parents;
  // Parents of the members, by vertex and then in the order in which a vertex's members are
  // counted: member i of vertex v is at index first_member[v] + i.
  std::vector<int32_t> member_parents;
  std::vector<uint32_t> first_member;  // [vertex + 1]
};

// Hangs every item below its lowest serving ancestor that has room; where one has too many, those
// that arrive last (most serving vertices below them) are lifted, because a lifted one saves a
// stage. `serving` must come from ChooseServing for the same problem. O(n + members * serving
// vertices on a path).
ReductionTree HangItems(const ReductionProblem& problem, absl::Span<const uint32_t> serving);

struct Type2Candidate {
  std::shared_ptr<const PhysicalTree> physical;  // switches first, then the endpoints of the places
  std::vector<uint32_t> members, degrees;        // [vertex]; degrees 0 without a free entry
  std::vector<uint32_t> members_on;              // [switch vertex] ranks on its endpoints
  bool has_weaker = false;  // some switch that could help has no entry or a lower limit than others

  size_t switch_count() const { return members_on.size(); }
  ReductionProblem switches(absl::Span<const uint32_t> switch_degrees,
                            absl::Span<const uint32_t> preference) const {
    return {absl::MakeConstSpan(physical->parents).first(switch_count()), members_on,
            switch_degrees.first(switch_count()), preference};
  }
};

// `highest` is the highest degree limit of any switch. O(vertices).
Type2Candidate MakeType2Candidate(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
                                  const MemberPlaces& places, uint32_t highest,
                                  PhysicalTree physical);

// Switches that could serve and see two ranks or more, ascending.
std::vector<uint32_t> Helpers(const Type2Candidate& candidate);

// [switch vertex] lower serves rather: by depth first, either way, then over the less loaded link
// to the parent.
std::vector<uint32_t> ServingPreference(const Snapshot& snapshot, const Type2Candidate& candidate,
                                        bool deepest_first);

// A type II tree of these ranks without nodes for switches and without parents.
AggregationTree RanksOnly(const Fabric& fabric, Members members);

// The aggregation tree itself, once it is known which switches of a physical tree serve. Chooses
// nothing but who is lifted (HangItems). `physical` ends in the endpoints of `places`, in their
// order. `degrees` and `members` are
// [physical vertex]: K(v), and the ranks at an endpoint, 0 for switches. `serving` are physical
// vertices, ascending, that suffice. O(vertices + ranks * serving vertices on a path).
AggregationTree HangRanks(const Fabric& fabric, Members ranks, const MemberPlaces& places,
                          const PhysicalTree& physical, absl::Span<const uint32_t> members,
                          absl::Span<const uint32_t> degrees, absl::Span<const uint32_t> serving);

// The physical tree that a type II tree derives from: how the members' packets reach one switch.
// Over forwarding tables and dimension-order routes: the union of the endpoints' routes to the
// root, a tree because such routes depend on the destination only. Over shortest paths: every
// switch goes one hop nearer over its least loaded channel; of equally loaded ones the one that the
// route to the root takes.
//
// `endpoints` are distinct and become the last vertices, in their order; the switches before them
// appear parents first. FAILED_PRECONDITION: an endpoint without a switch, a hole or a loop in the
// routes (names the endpoint and the switch): this root is out. O(endpoints + switches of the tree)
// routing steps and an array over all switches.
absl::StatusOr<PhysicalTree> BuildPhysicalTree(const Snapshot& snapshot,
                                               absl::Span<const EndpointIndex> endpoints,
                                               SwitchIndex root);

// From a communicator and what switches have left to the tree that takes the fewest entries (Chen
// 2024, section 4), with the reason if there is none.
struct Type2Result {
  std::optional<TimedTree> best;
  bool may_serve_more = false;  // more switches of its physical tree could serve than do
  // Switches without a free entry that kept every candidate away, or without which the tree takes
  // more entries than it would; by index.
  std::vector<FullSwitch> full_switches;
  bool routes_are_wrong = false;  // no tree, because routes break off or no switch reaches all
  std::string why_not;            // if there is no tree: for a person
};

// Candidates are the requested root or else all switches. Those nearest to the members, or the
// nearest that work, say how many switches serve: the fewest. Of all roots whose trees need no more
// the soonest is taken, within 2 % and by the exact prediction: nearer ones first, a farther one
// for a gain of 1 % at least. Roots that cannot be sooner (root_choice.h), or are like one that was
// tried, are passed over. Large searches end early, with the best so far (bounds: .cc); "none" is
// the answer after every candidate, or says how many were tried. Nobody serves for one member.
Type2Result BuildType2(const PlanInput& input);

// Whether the request has type II tried. A builder of type I says which type is wanted as clearly
// as the type itself, and of itself one that wants to be carried is of type II only where that was
// measured.
bool TriesType2(const TreeRequest& request, const CostProfile& profile);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE2_CANDIDATE_H_
