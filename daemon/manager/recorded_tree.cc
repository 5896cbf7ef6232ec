#include "daemon/manager/recorded_tree.h"

#include <algorithm>
#include <optional>

namespace coppice {
namespace {

VertexIndex FindVertex(const Fabric& fabric, Guid guid, bool is_switch) {
  if (is_switch) {
    const std::optional<SwitchIndex> found = fabric.FindSwitch(guid);
    return found ? fabric.Vertex(*found) : kGoneVertex;
  }
  const std::optional<EndpointIndex> found = fabric.FindEndpoint(guid);
  return found ? fabric.Vertex(*found) : kGoneVertex;
}

ChannelIndex ChannelBetween(const Fabric& fabric, VertexIndex from, VertexIndex to,
                            absl::Span<const int64_t> link_ids, const TreeRecord& record) {
  ChannelIndex found = kNoChannel;
  if (from == kGoneVertex || to == kGoneVertex) return found;
  for (const Channel& channel : fabric.channels(from)) {
    if (channel.to != to) continue;
    const int64_t id = link_ids[Fabric::link_of(channel.index).value()];
    if (std::binary_search(record.links.begin(), record.links.end(), id)) return channel.index;
    if (found == kNoChannel) found = channel.index;
  }
  return found;
}

}  // namespace

AggregationTree PlaceTree(const Fabric& fabric, const JobRecord& job, const TreeRecord& record) {
  AggregationTree tree;
  tree.type = static_cast<TreeType>(record.type);
  tree.width = record.width;
  tree.rank_count = static_cast<uint32_t>(record.ranks.size());
  tree.parents = record.parents;
  tree.vertices.reserve(tree.parents.size());
  for (const uint32_t rank : record.ranks) {
    tree.vertices.push_back(FindVertex(fabric, job.endpoints[rank], false));
  }
  for (const TreeSwitchRecord& serving : record.switches) {
    tree.vertices.push_back(FindVertex(fabric, serving.guid, true));
  }
  return tree;
}

PhysicalTree PlacePhysical(const Fabric& fabric, absl::Span<const int64_t> link_ids,
                           const TreeRecord& record) {
  PhysicalTree tree;
  const size_t count = record.physical.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    // No GUID is both a switch's and a port's in one tree.
    const Guid guid(record.physical[2 * i]);
    const int32_t parent = static_cast<int32_t>(record.physical[2 * i + 1]) - 1;
    VertexIndex vertex = FindVertex(fabric, guid, true);
    if (vertex == kGoneVertex) vertex = FindVertex(fabric, guid, false);
    tree.vertices.push_back(vertex);
    tree.parents.push_back(parent);
    tree.up.push_back(
        parent < 0 ? kNoChannel
                   : ChannelBetween(fabric, vertex, tree.vertices[parent], link_ids, record));
  }
  if (count > 0) tree.root = tree.vertices[0];
  return tree;
}

}  // namespace coppice
