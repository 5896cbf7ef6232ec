#include "daemon/manager/tree_record.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace coppice {
namespace {

// Ids of the links that any edge crosses, either way.
void FillLinks(absl::Span<const int64_t> link_ids, absl::Span<const ChannelUse> uses,
               std::vector<int64_t>& ids) {
  ids.clear();
  LinkIndex last(UINT32_MAX);
  for (const ChannelUse& use : uses) {  // by channel, so that both of a link stand together
    const LinkIndex link = Fabric::link_of(use.channel);
    if (link == last) continue;
    last = link;
    ids.push_back(link_ids[link.value()]);
  }
  // The store numbers the links of a first sweep in the fabric's order.
  if (!std::is_sorted(ids.begin(), ids.end())) std::sort(ids.begin(), ids.end());
}

void FillSwitches(const Fabric& fabric, const AggregationTree& tree,
                  std::vector<TreeSwitchRecord>& switches) {
  switches.clear();
  switches.reserve(tree.serving_switch_count());
  for (uint32_t node = tree.rank_count; node < tree.node_count(); ++node) {
    switches.push_back({fabric.switch_info(fabric.AsSwitch(tree.vertices[node])).guid, 0});
  }
  for (const int32_t parent : tree.parents) {
    if (parent >= static_cast<int32_t>(tree.rank_count)) {
      ++switches[parent - tree.rank_count].children;
    }
  }
}

}  // namespace

void FillPhysical(const Fabric& fabric, const PhysicalTree& tree, std::vector<uint64_t>& pairs) {
  // Switches first. Endpoints are leaves, so parents stay before their children.
  const uint32_t count = static_cast<uint32_t>(tree.vertices.size());
  std::vector<uint32_t> position(count);
  uint32_t next = 0;
  for (const bool want_switch : {true, false}) {
    for (uint32_t i = 0; i < count; ++i) {
      if (fabric.IsSwitch(tree.vertices[i]) == want_switch) position[i] = next++;
    }
  }
  pairs.assign(size_t{2} * count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    const VertexIndex v = tree.vertices[i];
    const Guid guid = fabric.IsSwitch(v) ? fabric.switch_info(fabric.AsSwitch(v)).guid
                                         : fabric.endpoint(fabric.AsEndpoint(v)).port_guid;
    pairs[2 * position[i]] = guid.value();
    if (tree.parents[i] >= 0) pairs[2 * position[i] + 1] = position[tree.parents[i]] + uint64_t{1};
  }
}

void FillFromPlan(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                  absl::Span<const ChannelUse> uses, TreePlan plan, TreeRecord& record) {
  AggregationTree& tree = plan.tree;
  FillLinks(link_ids, uses, record.links);
  record.fabric_version = snapshot.fabric->version();
  record.type = static_cast<uint8_t>(tree.type);
  record.builder = std::string(ToString(tree.builder));
  record.width = tree.width;
  record.height = plan.height;
  record.radius = plan.radius;
  FillSwitches(*snapshot.fabric, tree, record.switches);
  record.edge_links_up.reserve(plan.edges.size());
  record.edge_links_down.reserve(plan.edges.size());
  for (const EdgeCost& edge : plan.edges) {
    record.edge_links_up.push_back(edge.links_up);
    record.edge_links_down.push_back(edge.links_down);
  }
  if (plan.physical) FillPhysical(*snapshot.fabric, *plan.physical, record.physical);
  record.parents = std::move(tree.parents);
  record.aggregate_us = plan.predicted.aggregate_us;
  record.distribute_us = plan.predicted.distribute_us;
  record.total_us = plan.predicted.total_us;
  record.reason = std::move(plan.reason);
  record.alternatives = std::move(plan.alternatives);
  for (Alternative& alternative : record.alternatives) {  // endless is as good as not built
    if (alternative.total_us && !std::isfinite(*alternative.total_us)) alternative.total_us.reset();
  }
  // The record stays as long as the tree: without what was reserved while these grew.
  record.links.shrink_to_fit();
  record.parents.shrink_to_fit();
  record.reason.shrink_to_fit();
  record.alternatives.shrink_to_fit();
}

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
