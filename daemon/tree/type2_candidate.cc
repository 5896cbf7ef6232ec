#include "daemon/tree/type2_candidate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/tree/minimum_cost.h"

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

AggregationTree RanksOnly(const Fabric& fabric, Members members) {
  AggregationTree tree;
  tree.type = TreeType::kTypeII;
  tree.builder = TreeBuilder::kMinimumCost;
  tree.rank_count = static_cast<uint32_t>(members.size());
  tree.vertices.reserve(members.size() + 16);
  for (const EndpointIndex e : members) tree.vertices.push_back(fabric.Vertex(e));
  return tree;
}

// Numbers the nodes: ranks, then serving switches by index.
AggregationTree HangRanks(const Fabric& fabric, Members ranks, const MemberPlaces& places,
                          const PhysicalTree& physical, absl::Span<const uint32_t> members,
                          absl::Span<const uint32_t> degrees, absl::Span<const uint32_t> serving) {
  const ReductionTree hung = HangItems({physical.parents, members, degrees, {}}, serving);
  AggregationTree tree = RanksOnly(fabric, ranks);
  std::vector<uint32_t> order(serving.begin(), serving.end());
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return physical.vertices[a] < physical.vertices[b]; });
  std::vector<int32_t> node(degrees.size(), AggregationTree::kNoParent);
  for (const uint32_t v : order) {
    node[v] = static_cast<int32_t>(tree.vertices.size());
    tree.vertices.push_back(physical.vertices[v]);
  }
  const auto node_of = [&](int32_t vertex) {
    return vertex < 0 ? AggregationTree::kNoParent : node[static_cast<size_t>(vertex)];
  };
  const size_t first = degrees.size() - places.endpoints.size();
  std::vector<uint32_t> next(hung.first_member.begin() + static_cast<int64_t>(first),
                             hung.first_member.end());
  tree.parents.reserve(tree.vertices.size());
  for (uint32_t rank = 0; rank < tree.rank_count; ++rank) {
    tree.parents.push_back(node_of(hung.member_parents[next[places.endpoint_of_rank[rank]]++]));
  }
  for (const uint32_t v : order) tree.parents.push_back(node_of(hung.serving_parents[v]));
  return tree;
}

}  // namespace coppice
