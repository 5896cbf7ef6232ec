// Where a communicator's ranks are, each place once: distinct endpoints and distinct leaf switches.
#ifndef COPPICE_DAEMON_TREE_MEMBER_PLACES_H_
#define COPPICE_DAEMON_TREE_MEMBER_PLACES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/tree.h"

namespace coppice {

struct MemberPlaces {
  std::vector<EndpointIndex> endpoints;    // distinct, by first rank
  std::vector<uint32_t> endpoint_of_rank;  // [rank] position in `endpoints`
  std::vector<uint32_t> ranks_at;          // [position] ranks there
  std::vector<SwitchIndex> leaf_switches;  // distinct, ascending; empty if no endpoint has one
  std::vector<uint32_t> leaf_of_endpoint;  // [position] in `leaf_switches`; its size = on none
  bool all_on_switches = true;             // every endpoint is cabled to a switch
};

// INVALID_ARGUMENT: no members, or an endpoint that the fabric does not have (names rank and
// number). FAILED_PRECONDITION: members in different components (names one of each). O(P log P).
absl::StatusOr<MemberPlaces> FindMemberPlaces(const Snapshot& snapshot, Members members);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_MEMBER_PLACES_H_
