#include "daemon/tree/type2_candidate.h"

#include <algorithm>
#include <utility>

namespace coppice {

Type2Candidate MakeType2Candidate(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
                                  const MemberPlaces& places, uint32_t highest,
                                  PhysicalTree physical) {
  Type2Candidate candidate;
  const size_t n = physical.vertices.size();
  const size_t switches = n - places.endpoints.size();
  candidate.members.resize(n, 0);
  candidate.degrees.resize(n, 0);
  std::copy(places.ranks_at.begin(), places.ranks_at.end(),
            candidate.members.begin() + static_cast<int64_t>(switches));
  candidate.members_on.resize(switches, 0);
  for (size_t v = switches; v < n; ++v) {
    candidate.members_on[static_cast<size_t>(physical.parents[v])] += candidate.members[v];
  }
  for (size_t v = 0; v < switches; ++v) {
    const SwitchCapacity& c = capacity[fabric.AsSwitch(physical.vertices[v]).value()];
    candidate.degrees[v] = c.entries_free > 0 ? c.degree_limit : 0;
    candidate.has_weaker |= candidate.degrees[v] < highest;
  }
  candidate.physical = std::make_shared<const PhysicalTree>(std::move(physical));
  return candidate;
}

std::vector<uint32_t> ServingPreference(const Snapshot& snapshot, const Type2Candidate& candidate,
                                        bool deepest_first) {
  constexpr uint32_t kLoadSteps = 1 << 20;
  const PhysicalTree& physical = *candidate.physical;
  const size_t n = candidate.switch_count();
  std::vector<uint32_t> depth(n, 0), preference(n, 0);
  for (size_t v = 1; v < n; ++v) depth[v] = depth[static_cast<size_t>(physical.parents[v])] + 1;
  for (size_t v = 0; v < n; ++v) {
    uint32_t load = 0;
    if (v > 0) {
      const float up = snapshot.utilisation(physical.up[v]);
      const float down = snapshot.utilisation(Fabric::Reverse(physical.up[v]));
      load = static_cast<uint32_t>(std::clamp(std::max(up, down), 0.0F, 1.0F) * kLoadSteps);
    }
    const uint32_t rank = deepest_first ? 255 - std::min(depth[v], 255U) : depth[v];
    preference[v] = rank * (kLoadSteps + 1) + load;
  }
  return preference;
}

}  // namespace coppice
