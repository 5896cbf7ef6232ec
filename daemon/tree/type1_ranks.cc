#include "daemon/tree/type1_ranks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace coppice {

absl::StatusOr<AggregationTree> BareTypeITree(const Fabric& fabric, Members members,
                                              TreeBuilder builder, uint32_t width) {
  if (members.empty()) {
    return absl::InvalidArgumentError("a tree needs at least one member; name its endpoints");
  }
  if (width < 2 && members.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("width ", width, " of a ", ToString(builder),
                                                   " tree is too small; ask for 2 or more"));
  }
  AggregationTree tree;
  tree.type = TreeType::kTypeI;
  tree.builder = builder;
  tree.width = width;
  tree.rank_count = static_cast<uint32_t>(members.size());
  tree.parents.assign(members.size(), AggregationTree::kNoParent);
  tree.vertices.reserve(members.size());
  for (const EndpointIndex member : members) {
    if (member.value() >= fabric.endpoint_count()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", tree.vertices.size(), " is endpoint ", member.value(), ", but the fabric has ",
          fabric.endpoint_count(), "; name endpoints of this fabric"));
    }
    tree.vertices.push_back(fabric.Vertex(member));
  }
  return tree;
}

absl::Status CheckNicDegree(const AggregationTree& tree, uint32_t nic_degree) {
  std::vector<uint32_t> children(tree.node_count(), 0);
  for (const int32_t parent : tree.parents) {
    if (parent >= 0) ++children[parent];
  }
  const auto most = std::max_element(children.begin(), children.end());
  if (most == children.end() || *most <= nic_degree) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "rank ", most - children.begin(), " would have ", *most, " children, its NIC serves at most ",
      nic_degree, "; ask for a smaller width than ", tree.width));
}

uint32_t DigitsFor(uint64_t count, uint32_t width) {
  uint32_t digits = 0;
  for (uint64_t left = count; left > 1; left = (left - 1) / width + 1) ++digits;
  return digits;
}

uint64_t KnomialParent(uint64_t slot, uint32_t width) {
  uint64_t unit = 1;
  while (slot / unit % width == 0) unit *= width;
  return slot - slot / unit % width * unit;
}

}  // namespace coppice
