#include "daemon/manager/tree_record.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/manager/record_json.h"

namespace coppice {
namespace {

void MarkLinks(RecordScratch& scratch) {
  for (const ChannelIndex c : scratch.path) {
    const LinkIndex link = Fabric::link_of(c);
    uint64_t& word = scratch.link_marks[link.value() / 64];
    const uint64_t bit = uint64_t{1} << (link.value() % 64);
    if ((word & bit) != 0) continue;
    if (word == 0) scratch.marked_words.push_back(link.value() / 64);
    word |= bit;
  }
  scratch.path.clear();
}

absl::Status MarkEdges(const Snapshot& snapshot, const AggregationTree& tree,
                       RecordScratch& scratch) {
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    const int32_t parent = tree.parents[node];
    if (parent == AggregationTree::kNoParent) continue;
    const VertexIndex here = tree.vertices[node], there = tree.vertices[parent];
    RETURN_IF_ERROR(snapshot.routes->Append(here, there, scratch.path));
    RETURN_IF_ERROR(snapshot.routes->Append(there, here, scratch.path));
    MarkLinks(scratch);
  }
  return absl::OkStatus();
}

// Ids of the links that any edge crosses, either way.
absl::Status FillLinks(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                       const AggregationTree& tree, RecordScratch& scratch,
                       std::vector<int64_t>& ids) {
  scratch.link_marks.resize((snapshot.fabric->link_count() + 63) / 64);
  scratch.marked_words.clear();
  scratch.path.clear();
  const absl::Status status = MarkEdges(snapshot, tree, scratch);
  ids.clear();
  std::sort(scratch.marked_words.begin(), scratch.marked_words.end());
  for (const uint32_t word : scratch.marked_words) {
    for (uint64_t bits = std::exchange(scratch.link_marks[word], 0); bits != 0; bits &= bits - 1) {
      ids.push_back(link_ids[size_t{64} * word + static_cast<size_t>(std::countr_zero(bits))]);
    }
  }
  // The store numbers the links of a first sweep in the fabric's order.
  if (!std::is_sorted(ids.begin(), ids.end())) std::sort(ids.begin(), ids.end());
  return status;
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

}  // namespace

absl::Status FillFromPlan(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                          TreePlan plan, RecordScratch& scratch, TreeRecord& record) {
  AggregationTree& tree = plan.tree;
  RETURN_IF_ERROR(FillLinks(snapshot, link_ids, tree, scratch, record.links));
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
  return absl::OkStatus();
}

}  // namespace coppice
