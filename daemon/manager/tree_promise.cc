#include "daemon/manager/tree_promise.h"

#include <optional>

#include "daemon/manager/record_json.h"
#include "daemon/manager/recorded_tree.h"

namespace coppice {
namespace {

// Takes out the edges that have lost an end: the node becomes a root.
void DropLostEdges(AggregationTree& tree) {
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    int32_t& parent = tree.parents[node];
    if (parent == AggregationTree::kNoParent) continue;
    if (tree.vertices[node] == kGoneVertex || tree.vertices[parent] == kGoneVertex) {
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
  AggregationTree tree = PlaceTree(fabric, job, record);
  DropLostEdges(tree);
  const bool has_physical = tree.type == TreeType::kTypeII && !record.physical.empty() &&
                            snapshot.routes->kind() == RouteKind::kShortestPath;
  const PhysicalTree physical =
      has_physical ? PlacePhysical(fabric, link_ids, record) : PhysicalTree();
  std::vector<ChannelUse> uses;
  counter.Begin(snapshot);
  counter.AddWhatIsRouted(tree, has_physical ? &physical : nullptr);
  counter.Take(uses);
  return PromiseOfPlan(snapshot, profile, duty, record, uses);
}

}  // namespace coppice
