// Candidates for a tree of type II: the physical tree from a root, and what the choice of servers
// needs of it.
//
// A physical tree with all that the choice of serving switches needs to know of it.
//
// An endpoint can never serve, so who serves is decided on the switches alone, with the ranks
// counted at their leaf switches: a tenth of the vertices and the same answer. Who hangs below whom
// is decided on all of them.
#ifndef COPPICE_DAEMON_TREE_TYPE2_CANDIDATE_H_
#define COPPICE_DAEMON_TREE_TYPE2_CANDIDATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/member_places.h"
#include "daemon/tree/minimum_cost.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

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

// [switch vertex] lower serves rather: by depth first, either way, then over the less loaded link
// to the parent.
std::vector<uint32_t> ServingPreference(const Snapshot& snapshot, const Type2Candidate& candidate,
                                        bool deepest_first);

// The aggregation tree itself, once it is known which switches of a physical tree serve: who is
// whose parent, rank by rank. Chooses nothing but who is lifted (minimum_cost.h).

// A type II tree of these ranks without nodes for switches and without parents.
AggregationTree RanksOnly(const Fabric& fabric, Members members);

// `physical` ends in the endpoints of `places`, in their order. `degrees` and `members` are
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE2_CANDIDATE_H_
