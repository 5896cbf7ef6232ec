#include "daemon/manager/tree_record.h"

#include <algorithm>
#include <utility>

#include "daemon/manager/record_json.h"

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
  record.alternatives = AlternativesJson(plan.alternatives);
}

}  // namespace coppice
