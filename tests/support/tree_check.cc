#include "tests/support/tree_check.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

template <class... Parts>
absl::Status NoTree(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

// Every node reaches a node without parent; follows each path once.
absl::Status CheckReachesRoot(absl::Span<const int32_t> parents) {
  enum : uint8_t { kNew, kOnPath, kRooted };
  std::vector<uint8_t> state(parents.size(), kNew);
  std::vector<size_t> path;
  for (size_t start = 0; start < parents.size(); ++start) {
    size_t node = start;
    path.clear();
    while (state[node] == kNew) {
      state[node] = kOnPath;
      path.push_back(node);
      if (parents[node] < 0) state[node] = kRooted;
      if (parents[node] >= 0) node = static_cast<size_t>(parents[node]);
    }
    if (state[node] == kOnPath) return NoTree("node ", node, " is its own ancestor");
    for (const size_t walked : path) state[walked] = kRooted;
  }
  return absl::OkStatus();
}

absl::Status CheckParents(absl::Span<const int32_t> parents) {
  size_t roots = 0;
  for (size_t node = 0; node < parents.size(); ++node) {
    const int32_t parent = parents[node];
    if (parent == AggregationTree::kNoParent) {
      ++roots;
    } else if (parent < 0 || static_cast<size_t>(parent) >= parents.size()) {
      return NoTree("node ", node, " has parent ", parent, " of ", parents.size(), " nodes");
    }
  }
  if (roots != 1) return NoTree("the tree has ", roots, " roots");
  return CheckReachesRoot(parents);
}

std::vector<uint32_t> CountChildren(absl::Span<const int32_t> parents) {
  std::vector<uint32_t> counts(parents.size(), 0);
  for (const int32_t parent : parents) {
    if (parent >= 0) ++counts[parent];
  }
  return counts;
}

// The channel that `physical` names for `position` joins it to its parent.
absl::Status CheckUpChannel(const Fabric& fabric, const PhysicalTree& physical, size_t position) {
  const int32_t parent = physical.parents[position];
  const ChannelIndex up = physical.up[position];
  if (position == 0) {
    if (parent != -1 || up != kNoChannel) return NoTree("the physical root has a parent");
    return absl::OkStatus();
  }
  if (parent < 0 || static_cast<size_t>(parent) >= position) {
    return NoTree("physical vertex ", position, " does not come after its parent");
  }
  if (up == kNoChannel || up.value() >= fabric.channel_count() ||
      fabric.channel_from(up) != physical.vertices[position] ||
      fabric.channel_to(up) != physical.vertices[parent]) {
    return NoTree("physical vertex ", position, " is not joined to its parent by its channel");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTree(const Fabric& fabric, const AggregationTree& tree, Members members) {
  if (tree.rank_count != members.size()) {
    return NoTree("the tree has ", tree.rank_count, " ranks, not ", members.size());
  }
  if (tree.vertices.size() != tree.parents.size() || tree.parents.size() < tree.rank_count) {
    return NoTree("the tree's arrays have different lengths");
  }
  RETURN_IF_ERROR(CheckParents(tree.parents));
  for (uint32_t rank = 0; rank < tree.rank_count; ++rank) {
    if (tree.vertices[rank] != fabric.Vertex(members[rank])) {
      return NoTree("rank ", rank, " is not on its member's endpoint");
    }
  }
  if (tree.type == TreeType::kTypeI && tree.serving_switch_count() > 0) {
    return NoTree("a type I tree has switches");
  }
  const std::vector<uint32_t> children = CountChildren(tree.parents);
  for (uint32_t node = tree.rank_count; node < tree.node_count(); ++node) {
    if (!fabric.IsSwitch(tree.vertices[node])) return NoTree("node ", node, " is no switch");
    if (node > tree.rank_count && tree.vertices[node] <= tree.vertices[node - 1]) {
      return NoTree("switches are not in order at node ", node);
    }
    if (children[node] == 0) return NoTree("switch node ", node, " serves nobody");
  }
  return absl::OkStatus();
}

absl::Status CheckDegrees(const AggregationTree& tree, uint32_t nic_degree,
                          absl::Span<const uint32_t> switch_degrees) {
  const std::vector<uint32_t> children = CountChildren(tree.parents);
  const uint32_t rank_limit = tree.type == TreeType::kTypeI ? nic_degree : 0;
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    if (!tree.IsRank(node) && switch_degrees.empty()) continue;
    const uint32_t limit =
        tree.IsRank(node) ? rank_limit : switch_degrees[tree.vertices[node].value()];
    if (children[node] > limit) {
      return NoTree("node ", node, " has ", children[node], " children, limit ", limit);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKary(const AggregationTree& tree) {
  for (int64_t rank = 0; rank < tree.rank_count; ++rank) {
    const int64_t parent = rank == 0 ? -1 : (rank - 1) / tree.width;
    if (tree.parents[rank] != parent) return NoTree("k-ary parent of rank ", rank);
  }
  return absl::OkStatus();
}

absl::Status CheckKnomial(const AggregationTree& tree) {
  for (uint64_t rank = 0; rank < tree.rank_count; ++rank) {
    int64_t parent = -1;
    for (uint64_t above = tree.width; rank > 0; above *= tree.width) {
      parent = static_cast<int64_t>(rank - rank % above);
      if (parent != static_cast<int64_t>(rank)) break;
    }
    if (tree.parents[rank] != parent) return NoTree("k-nomial parent of rank ", rank);
  }
  return absl::OkStatus();
}

absl::Status CheckGroups(const Hierarchy& hierarchy, Members members, const AggregationTree& tree) {
  for (const Hierarchy::Level& level : hierarchy.levels) {
    const auto group = [&](int64_t rank) { return level.group[members[rank].value()]; };
    std::map<uint32_t, uint32_t> firsts;
    for (uint32_t rank = 0; rank < tree.rank_count; ++rank) {
      const int32_t parent = tree.parents[rank];
      firsts[group(rank)] += parent < 0 || group(parent) != group(rank) ? 1 : 0;
    }
    for (const auto& [number, count] : firsts) {
      if (count != 1) {
        return NoTree("level ", level.name, ", group ", number, ": ", count,
                      " ranks have their parents outside");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPhysicalTree(const Fabric& fabric, const PhysicalTree& physical,
                               Members members) {
  const size_t size = physical.vertices.size();
  if (size == 0 || physical.parents.size() != size || physical.up.size() != size ||
      physical.vertices[0] != physical.root) {
    return NoTree("the physical tree's arrays do not fit together");
  }
  std::vector<bool> is_leaf(size, true), seen(fabric.vertex_count(), false);
  for (size_t position = 0; position < size; ++position) {
    const VertexIndex vertex = physical.vertices[position];
    if (vertex.value() >= fabric.vertex_count() || seen[vertex.value()]) {
      return NoTree("physical vertex ", position, " is repeated or not in the fabric");
    }
    seen[vertex.value()] = true;
    RETURN_IF_ERROR(CheckUpChannel(fabric, physical, position));
    if (position > 0) is_leaf[physical.parents[position]] = false;
  }
  std::vector<bool> is_member(fabric.vertex_count(), false);
  for (const EndpointIndex member : members) {
    is_member[fabric.Vertex(member).value()] = true;
    if (!seen[fabric.Vertex(member).value()]) {
      return NoTree("endpoint ", member.value(), " is not in the physical tree");
    }
  }
  for (size_t position = 0; position < size; ++position) {
    if (is_leaf[position] != is_member[physical.vertices[position].value()]) {
      return NoTree("physical vertex ", position, " is a leaf but no member, or the reverse");
    }
  }
  return absl::OkStatus();
}

}  // namespace coppice
