#include "daemon/fabric/snapshot.h"

#include <gtest/gtest.h>

#include "tests/support/fabrics.h"

namespace coppice::snapshot_test {
namespace {

TEST(Snapshot, WithoutTablesTakesShortestPaths) {
  const FabricPtr fabric = TwoLevelFatTree(2, 2, 2);
  const auto snapshot = MakeSnapshot(fabric, nullptr);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ((*snapshot)->fabric, fabric);
  EXPECT_EQ((*snapshot)->routes->kind(), RouteKind::kShortestPath);
  EXPECT_EQ((*snapshot)->routes->tables(), nullptr);
  EXPECT_EQ((*snapshot)->hierarchy->shape, "fat tree");
  EXPECT_EQ((*snapshot)->utilisation(ChannelIndex(0)), 0);
}

TEST(Snapshot, TakesTheSubnetsTables) {
  const FabricPtr fabric = TwoLevelFatTree(2, 2, 2);
  const auto tables = std::make_shared<ForwardingTables>(4);
  const auto snapshot = MakeSnapshot(fabric, tables);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ((*snapshot)->routes->kind(), RouteKind::kForwardingTables);
  EXPECT_EQ((*snapshot)->routes->tables(), tables.get());
}

TEST(Snapshot, RefusesTheTablesOfAnotherFabric) {
  const auto snapshot =
      MakeSnapshot(TwoLevelFatTree(2, 2, 2), std::make_shared<ForwardingTables>(5));
  EXPECT_EQ(snapshot.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(snapshot.status().message()),
            "forwarding tables of 5 switches for a fabric of 4: take both from one sweep or from "
            "files of one moment");
}

TEST(Snapshot, LoadIsPerChannel) {
  Snapshot snapshot = **MakeSnapshot(Chain(2, 1), nullptr);
  std::vector<float> load(snapshot.fabric->channel_count(), 0.0F);
  load[3] = 0.5F;
  snapshot.load = std::make_shared<const LinkLoad>(load);
  EXPECT_EQ(snapshot.utilisation(ChannelIndex(3)), 0.5F);
  EXPECT_EQ(snapshot.utilisation(ChannelIndex(2)), 0.0F);
}

}  // namespace
}  // namespace coppice::snapshot_test
