#include "daemon/tree/type2_ranks.h"

#include <algorithm>
#include <vector>

#include "daemon/tree/minimum_cost.h"

namespace coppice {

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
