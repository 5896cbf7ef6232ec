// The aggregation tree itself, once it is known which switches of a physical tree serve: who is
// whose parent, rank by rank. Chooses nothing but who is lifted (minimum_cost.h).
#ifndef COPPICE_DAEMON_TREE_TYPE2_RANKS_H_
#define COPPICE_DAEMON_TREE_TYPE2_RANKS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/tree/member_places.h"
#include "daemon/tree/tree.h"

namespace coppice {

// A type II tree of these ranks without nodes for switches and without parents.
AggregationTree RanksOnly(const Fabric& fabric, Members members);

// `physical` ends in the endpoints of `places`, in their order. `degrees` and `members` are
// [physical vertex]: K(v), and the ranks at an endpoint, 0 for switches. `serving` are physical
// vertices, ascending, that suffice. O(vertices + ranks * serving vertices on a path).
AggregationTree HangRanks(const Fabric& fabric, Members ranks, const MemberPlaces& places,
                          const PhysicalTree& physical, absl::Span<const uint32_t> members,
                          absl::Span<const uint32_t> degrees, absl::Span<const uint32_t> serving);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE2_RANKS_H_
