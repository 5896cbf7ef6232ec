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

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/member_places.h"
#include "daemon/tree/minimum_cost.h"
#include "daemon/tree/planner.h"

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE2_CANDIDATE_H_
