#include "daemon/manager/tree_promise.h"

#include <algorithm>
#include <optional>

#include "daemon/manager/record_json.h"

namespace coppice {
namespace {

constexpr VertexIndex kGone{UINT32_MAX};

VertexIndex FindVertex(const Fabric& fabric, Guid guid, bool is_switch) {
  if (is_switch) {
    const std::optional<SwitchIndex> found = fabric.FindSwitch(guid);
    return found ? fabric.Vertex(*found) : kGone;
  }
  const std::optional<EndpointIndex> found = fabric.FindEndpoint(guid);
  return found ? fabric.Vertex(*found) : kGone;
}

// The channel between two vertices; of several that whose link the tree crosses.
ChannelIndex ChannelBetween(const Fabric& fabric, VertexIndex from, VertexIndex to,
                            absl::Span<const int64_t> link_ids, const TreeRecord& record) {
  ChannelIndex found = kNoChannel;
  if (from == kGone || to == kGone) return found;
  for (const Channel& channel : fabric.channels(from)) {
    if (channel.to != to) continue;
    const int64_t id = link_ids[Fabric::link_of(channel.index).value()];
    if (std::binary_search(record.links.begin(), record.links.end(), id)) return channel.index;
    if (found == kNoChannel) found = channel.index;
  }
  return found;
}

// The record's physical tree (form: manager.h); vertices that are gone stay, without a channel.
PhysicalTree PhysicalOf(const Fabric& fabric, absl::Span<const int64_t> link_ids,
                        const TreeRecord& record) {
  PhysicalTree tree;
  const size_t count = record.physical.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    // Ports come after all switches, and no GUID is both in one tree.
    const Guid guid(record.physical[2 * i]);
    const int32_t parent = static_cast<int32_t>(record.physical[2 * i + 1]) - 1;
    VertexIndex vertex = FindVertex(fabric, guid, true);
    if (vertex == kGone) vertex = FindVertex(fabric, guid, false);
    tree.vertices.push_back(vertex);
    tree.parents.push_back(parent);
    tree.up.push_back(
        parent < 0 ? kNoChannel
                   : ChannelBetween(fabric, vertex, tree.vertices[parent], link_ids, record));
  }
  if (count > 0) tree.root = tree.vertices[0];
  return tree;
}

// The nodes' places, kGone for those that the fabric has lost.
AggregationTree TreeOf(const Fabric& fabric, const JobRecord& job, const TreeRecord& record) {
  AggregationTree tree;
  tree.type = static_cast<TreeType>(record.type);
  tree.rank_count = static_cast<uint32_t>(record.ranks.size());
  tree.parents = record.parents;
  tree.vertices.reserve(tree.parents.size());
  for (const uint32_t rank : record.ranks) {
    tree.vertices.push_back(FindVertex(fabric, job.endpoints[rank], false));
  }
  for (const TreeSwitchRecord& s : record.switches) {
    tree.vertices.push_back(FindVertex(fabric, s.guid, true));
  }
  return tree;
}

// Takes out the edges that have lost an end: the node becomes a root.
void DropLostEdges(AggregationTree& tree) {
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    int32_t& parent = tree.parents[node];
    if (parent == AggregationTree::kNoParent) continue;
    if (tree.vertices[node] == kGone || tree.vertices[parent] == kGone) {
      parent = AggregationTree::kNoParent;
    }
  }
}

MessageBytes BytesOf(const CostProfile& profile, const TreeRecord& record) {
  const std::optional<Operation> operation = ParseOperation(record.operation);
  return operation ? BytesOfMessages(profile, *operation, ParseSizes(record.sizes))
                   : MessageBytes();
}

}  // namespace

TreePromise PromiseOfPlan(const Snapshot& snapshot, const CostProfile& profile, double duty,
                          const TreeRecord& record, absl::Span<const ChannelUse> uses) {
  const MessageBytes bytes = BytesOf(profile, record);
  return {snapshot.fabric->version(),
          PromiseOf(snapshot, profile, duty, bytes, record.total_us, uses),
          FindBusiestLink(snapshot, profile, bytes, uses)};
}

TreePromise PromiseOfRecord(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                            const CostProfile& profile, double duty, const JobRecord& job,
                            const TreeRecord& record, LinkUseCounter& counter) {
  const Fabric& fabric = *snapshot.fabric;
  AggregationTree tree = TreeOf(fabric, job, record);
  DropLostEdges(tree);
  const bool has_physical = tree.type == TreeType::kTypeII && !record.physical.empty() &&
                            snapshot.routes->kind() == RouteKind::kShortestPath;
  const PhysicalTree physical =
      has_physical ? PhysicalOf(fabric, link_ids, record) : PhysicalTree();
  std::vector<ChannelUse> uses;
  counter.Begin(snapshot);
  counter.AddWhatIsRouted(tree, has_physical ? &physical : nullptr);
  counter.Take(uses);
  return PromiseOfPlan(snapshot, profile, duty, record, uses);
}

}  // namespace coppice
