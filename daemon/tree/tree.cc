#include "daemon/tree/tree.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace coppice {

uint32_t AggregationTree::root() const {
  const auto it = std::find(parents.begin(), parents.end(), kNoParent);
  return static_cast<uint32_t>(it - parents.begin());
}

ChildLists ChildrenOf(absl::Span<const int32_t> parents) {
  ChildLists lists;
  lists.begin.assign(parents.size() + 1, 0);
  for (const int32_t parent : parents) {
    if (parent >= 0) ++lists.begin[parent + 1];
  }
  for (size_t i = 0; i < parents.size(); ++i) lists.begin[i + 1] += lists.begin[i];
  lists.children.resize(lists.begin.back());
  std::vector<uint32_t> next(lists.begin.begin(), lists.begin.end() - 1);
  for (uint32_t node = 0; node < parents.size(); ++node) {
    if (parents[node] >= 0) lists.children[next[parents[node]]++] = node;
  }
  return lists;
}

namespace {

absl::Status NotOver(uint32_t node, absl::string_view why) {
  return absl::InternalError(absl::StrCat("node ", node, " ", why));
}

}  // namespace

absl::Status CheckAncestry(const Fabric& fabric, const AggregationTree& tree,
                           const PhysicalTree& physical) {
  std::vector<int64_t> position_of(fabric.vertex_count(), -1);
  for (size_t p = 0; p < physical.vertices.size(); ++p) {
    position_of[physical.vertices[p].value()] = static_cast<int64_t>(p);
  }
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    int64_t position = position_of[tree.vertices[node].value()];
    if (position < 0) return NotOver(node, "is not in the physical tree");
    if (tree.parents[node] == AggregationTree::kNoParent) continue;
    const VertexIndex parent = tree.vertices[tree.parents[node]];
    if (!fabric.IsSwitch(parent)) return NotOver(node, "has a parent that is no switch");
    do {
      position = physical.parents[position];
    } while (position >= 0 && physical.vertices[position] != parent);
    if (position < 0) return NotOver(node, "has a parent that is not its ancestor");
  }
  return absl::OkStatus();
}

}  // namespace coppice
