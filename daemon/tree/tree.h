// An aggregation tree as a value (Chen 2024, definitions 2-6), whoever built it.
#ifndef COPPICE_DAEMON_TREE_TREE_H_
#define COPPICE_DAEMON_TREE_TREE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

// Members are endpoints in rank order; an endpoint may be the place of several ranks.
using Members = absl::Span<const EndpointIndex>;

// Nodes 0..P-1 are ranks 0..P-1; then, for type II, the serving switches in order of their index.
struct AggregationTree {
  static constexpr int32_t kNoParent = -1;

  TreeType type = TreeType::kTypeI;
  TreeBuilder builder = TreeBuilder::kKary;
  uint32_t width = 0;                 // k; 0 for type II
  uint32_t rank_count = 0;            // P
  std::vector<VertexIndex> vertices;  // [node] where it is
  std::vector<int32_t> parents;       // [node] node number of the parent; kNoParent for the root

  uint32_t node_count() const { return static_cast<uint32_t>(parents.size()); }
  bool IsRank(uint32_t node) const { return node < rank_count; }
  uint32_t serving_switch_count() const { return node_count() - rank_count; }
  uint32_t root() const;  // node number
};

// Children of every node in compressed rows, by node number.
struct ChildLists {
  std::vector<uint32_t> begin;     // [node_count + 1]
  std::vector<uint32_t> children;  // [node_count - 1]
  absl::Span<const uint32_t> of(uint32_t node) const {
    return absl::MakeConstSpan(children).subspan(begin[node], begin[node + 1] - begin[node]);
  }
};
ChildLists ChildrenOf(absl::Span<const int32_t> parents);
std::vector<uint32_t> ChildCounts(absl::Span<const int32_t> parents);  // [node]

// The largest sum of length(node), a node's edge to its parent, on the way from a node to the root.
template <class Length>
uint32_t LongestWay(const AggregationTree& tree, const Length& length) {
  constexpr uint32_t kUnknown = UINT32_MAX;
  std::vector<uint32_t> way(tree.parents.size(), kUnknown);  // [node]
  const auto is_open = [&](uint32_t node) {
    return way[node] == kUnknown && tree.parents[node] != AggregationTree::kNoParent;
  };
  uint32_t longest = 0;
  for (uint32_t node = 0; node < way.size(); ++node) {
    uint32_t sum = 0, at = node;
    for (; is_open(at); at = static_cast<uint32_t>(tree.parents[at])) sum += length(at);
    if (way[at] != kUnknown) sum += way[at];
    longest = std::max(longest, sum);
    for (at = node; is_open(at); at = static_cast<uint32_t>(tree.parents[at])) {
      way[at] = sum;
      sum -= length(at);
    }
  }
  return longest;
}

// Most edges from a leaf to the root (definition 3).
inline uint32_t Height(const AggregationTree& tree) {
  return LongestWay(tree, [](uint32_t) { return 1U; });
}

// Directed tree over fabric vertices that a type II tree derives from (definition 9): a subtree of
// the fabric whose leaves are the members' endpoints.
struct PhysicalTree {
  VertexIndex root;
  std::vector<VertexIndex> vertices;  // root first, parents before children
  std::vector<int32_t> parents;       // [vertex position] position of the parent; -1 for the root
  std::vector<ChannelIndex> up;  // [vertex position] channel to the parent; kNoChannel for root
};

// Whether the tree derives from `physical` (definition 10): every node's parent is a proper
// ancestor of it there, a switch. INTERNAL names a node of which that is not so. O(edges of both).
absl::Status CheckAncestry(const Fabric& fabric, const AggregationTree& tree,
                           const PhysicalTree& physical);

// Where a communicator's ranks are, each place once: distinct endpoints and distinct leaf switches.
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

#endif  // COPPICE_DAEMON_TREE_TREE_H_
