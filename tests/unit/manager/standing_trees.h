// Whether granted trees stand on the published fabric, by the verifiers and by counting anew; and a
// watcher's picture of them.
#ifndef COPPICE_TESTS_UNIT_MANAGER_STANDING_TREES_H_
#define COPPICE_TESTS_UNIT_MANAGER_STANDING_TREES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/manager/change_feed.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/tree_record.h"
#include "daemon/tree/tree_metrics.h"
#include "tests/support/tree_check.h"

namespace coppice {

// A tree of a published fabric: verified, on live links only, its lengths those of the routes.
inline void ExpectStands(const FabricView& view, const CostProfile& profile, const TreeView& tree) {
  const Fabric& fabric = *view.snapshot->fabric;
  const TreeRecord& record = *tree.record;
  SCOPED_TRACE("tree " + std::to_string(record.id.value()) + " revision " +
               std::to_string(record.revision));
  std::vector<int64_t> live = *view.link_ids;
  std::sort(live.begin(), live.end());
  EXPECT_TRUE(std::includes(live.begin(), live.end(), record.links.begin(), record.links.end()));
  const AggregationTree placed = PlaceTree(fabric, *tree.job, record);
  std::vector<EndpointIndex> members;
  for (uint32_t node = 0; node < placed.rank_count; ++node) {
    ASSERT_NE(kGoneVertex, placed.vertices[node]);
    members.push_back(fabric.AsEndpoint(placed.vertices[node]));
  }
  EXPECT_EQ(absl::OkStatus(), CheckTree(fabric, placed, members));
  // Until the forwarding tables lead over what is left, lengths are those of shortest paths.
  Snapshot routed = *view.snapshot;
  if (tree.route_kind != routed.routes->kind()) {
    EXPECT_EQ(RouteKind::kShortestPath, tree.route_kind);
    EXPECT_FALSE(EdgeCosts(routed, profile, placed).ok());
    routed.routes = Routes::ShortestPaths(routed.fabric);
  }
  const absl::StatusOr<std::vector<EdgeCost>> edges = EdgeCosts(routed, profile, placed);
  ASSERT_TRUE(edges.ok()) << edges.status();
  for (size_t node = 0; node < edges->size(); ++node) {
    EXPECT_EQ((*edges)[node].links_up, record.edge_links_up[node]) << node;
    EXPECT_EQ((*edges)[node].links_down, record.edge_links_down[node]) << node;
  }
  if (record.physical.empty()) return;
  const PhysicalTree physical = PlacePhysical(fabric, *view.link_ids, record);
  EXPECT_EQ(absl::OkStatus(), CheckPhysicalTree(fabric, physical, members));
  EXPECT_EQ(absl::OkStatus(), CheckAncestry(fabric, placed, physical));
}

inline void ExpectAllStand(const Manager& manager) {
  for (const TreeView& tree : manager.ListTrees(JobId(), TreeId(), 1u << 20)) {
    ExpectStands(*manager.fabric(), *manager.profile(), tree);
  }
}

// What a watcher believes to be granted: tree -> revision. Checks that each change follows from
// what it was told before.
class Picture {
 public:
  explicit Picture(Manager& manager) {
    auto watch = manager.WatchTrees(JobId(), "", [] {});
    EXPECT_TRUE(watch.ok()) << watch.status();
    watch_ = *std::move(watch);
  }
  // Reads all there is; the changes after the listing.
  std::vector<TreeChange> Read() {
    std::vector<TreeChange> all;
    for (;;) {
      absl::StatusOr<std::vector<TreeChange>> changes = watch_->Next(7);
      EXPECT_TRUE(changes.ok()) << changes.status();
      if (!changes.ok() || changes->empty()) return all;
      for (TreeChange& change : *changes) {
        Follow(change);
        all.push_back(std::move(change));
      }
    }
  }
  void ExpectEquals(const Manager& manager) {
    std::map<TreeId, uint32_t> granted;
    for (const TreeView& tree : manager.ListTrees(JobId(), TreeId(), 1u << 20)) {
      granted[tree.record->id] = tree.record->revision;
    }
    EXPECT_EQ(granted, trees_);
  }

 private:
  void Follow(const TreeChange& change) {
    if (change.kind == TreeChangeKind::kSynced) return;
    const TreeId id = change.tree.record->id;
    const uint32_t revision = change.tree.record->revision;
    switch (change.kind) {
      case TreeChangeKind::kPresent:
      case TreeChangeKind::kGranted:
        EXPECT_TRUE(trees_.emplace(id, revision).second) << "told twice: " << id.value();
        break;
      case TreeChangeKind::kRevised:
        EXPECT_EQ(trees_[id] + 1, revision);
        trees_[id] = revision;
        break;
      default:
        EXPECT_EQ(1u, trees_.erase(id)) << "unknown tree " << id.value();
    }
  }

  std::unique_ptr<TreeWatch> watch_;
  std::map<TreeId, uint32_t> trees_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MANAGER_STANDING_TREES_H_
