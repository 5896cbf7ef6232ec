// Packets go where forwarding tables or the dimension order send them, and trees that meet at a
// switch share its units if they are told to.
#include <algorithm>
#include <memory>
#include <vector>

#include "daemon/tree/type1.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::simulator_routes_test {
namespace {

constexpr double kExact = 1e-9;

SimulatedCollective ReduceOf(const AggregationTree& tree, uint64_t bytes) {
  return {.tree = tree, .payload = PayloadOf(Operation::kReduce, bytes), .skew_us = {}};
}

// Two hosts on the ring's neighbours S0 and S1; the tables send what is for S1's host the long way.
TEST(SimulatorRoutes, ADetourOfTheTablesTakesItsLinks) {
  const FabricPtr fabric = Ring(4, 1);
  const auto shortest = Routes::ShortestPaths(fabric);
  const VertexIndex to = fabric->Vertex(EndpointIndex(1));
  ForwardingTables tables = *TablesLike(*shortest, fabric)->tables();
  for (const uint32_t s : {0U, 3U, 2U}) {  // one switch on in this direction
    const VertexIndex next(s == 0 ? 3 : s - 1);
    std::vector<uint8_t> row(tables.row(SwitchIndex(s)).begin(), tables.row(SwitchIndex(s)).end());
    for (const Channel& channel : fabric->switch_channels(SwitchIndex(s))) {
      if (channel.to != next) continue;
      row[fabric->lid(to).value()] = fabric->channel_from_port(channel.index).value();
    }
    tables.SetRow(SwitchIndex(s), row);
  }
  Snapshot snapshot = SnapshotOf(fabric);
  const AggregationTree tree = TreeOf(*fabric, {1, 0}, {-1, 0});
  const auto aggregate = [&] {
    return Simulated(snapshot, RoundProfile(), {ReduceOf(tree, 1000)});
  };
  EXPECT_NEAR(aggregate().collectives[0].aggregate_us, 1 + 3 * 0.2 + 0.04 + 1.1, kExact);
  snapshot.routes =
      *Routes::FromTables(fabric, std::make_shared<const ForwardingTables>(std::move(tables)));
  const SimulationResult around = aggregate();
  EXPECT_NEAR(around.collectives[0].aggregate_us, 1 + 5 * 0.2 + 0.04 + 1.1, kExact);
  EXPECT_EQ(std::count_if(around.channels.begin(), around.channels.end(),
                          [](const ChannelTraffic& c) { return c.up_packets == 1; }),
            5);
}

TEST(SimulatorRoutes, DimensionOrderGoesAlongTheFirstDimensionFirst) {
  //   (0,1) (1,1)     both ranks of column 0 send to (1,1): the one at (0,0) by way of (1,0), and
  //   so (0,0) (1,0)     does that of (1,0): they share the link from (1,0) to (1,1)
  Snapshot snapshot = SnapshotOfModel("model:mesh(dims=2x2,hosts=1)");
  snapshot.routes = *Routes::DimensionOrder(snapshot.fabric);
  const Fabric& fabric = *snapshot.fabric;
  const AggregationTree tree = TreeOf(fabric, {3, 0}, {-1, 0});
  const SimulationResult result = Simulated(snapshot, RoundProfile(), {ReduceOf(tree, 1000)});
  std::vector<ChannelIndex> path;
  ASSERT_TRUE(snapshot.routes->Append(tree.vertices[1], tree.vertices[0], path).ok());
  ASSERT_EQ(path.size(), 4);
  for (const ChannelTraffic& c : result.channels) {
    const bool is_on_it = std::find(path.begin(), path.end(), c.channel) != path.end();
    EXPECT_EQ(c.up_packets, is_on_it ? 1 : 0);
  }
}

// Tables that say what shortest paths do, and tables of dimension order, change nothing.
TEST(SimulatorRoutes, TablesLikeTheRoutesGiveTheSameTimes) {
  Snapshot snapshot = SnapshotOfModel("model:torus(dims=3x3,hosts=2,lids=1)");
  const auto tree = BuildKary(*snapshot.fabric, AllEndpoints(*snapshot.fabric), 3, 64);
  ASSERT_TRUE(tree.ok());
  for (const bool dimension_order : {false, true}) {
    if (dimension_order) snapshot.routes = *Routes::DimensionOrder(snapshot.fabric);
    const SimulationResult before =
        Simulated(snapshot, RoundProfile(), {ReduceOf(*tree, 5000)}, {.noise = 0.5});
    Snapshot tables = snapshot;
    tables.routes = TablesLike(*snapshot.routes, snapshot.fabric);
    const SimulationResult after =
        Simulated(tables, RoundProfile(), {ReduceOf(*tree, 5000)}, {.noise = 0.5});
    EXPECT_EQ(before.collectives[0].finish_us, after.collectives[0].finish_us);
  }
}

// n0 and n1 on S0, n2 and n3 as well; S0 serves for both pairs.
TEST(SimulatorRoutes, TreesAtOneSwitchShareItsUnitsIfTold) {
  const FabricPtr fabric = Chain(1, 4);
  std::vector<SimulatedCollective> pairs;
  for (const uint32_t first : {0U, 2U}) {
    AggregationTree tree = TreeOf(*fabric, {first, first + 1}, {2, 2});
    tree.type = TreeType::kTypeII;
    tree.vertices.push_back(fabric->Vertex(SwitchIndex(0)));
    tree.parents.push_back(-1);
    pairs.push_back({.tree = tree, .payload = PayloadOf(Operation::kBarrier, 0), .skew_us = {}});
  }
  const auto times = [&](bool shared) {
    return Simulated(SnapshotOf(fabric), RoundProfile(), pairs, {.shared_units = shared})
        .collectives;
  };
  // 1 + 0.2 until a packet is there, 0.1 to match each; then 0.05 a copy.
  for (const CollectiveTimes& alone : times(false)) {
    EXPECT_NEAR(alone.aggregate_us, 1.2 + 2 * 0.1, kExact);
    EXPECT_NEAR(alone.distribute_us, 2 * 0.05 + 1.2, kExact);
  }
  const std::vector<CollectiveTimes> shared = times(true);
  EXPECT_NEAR(shared[0].aggregate_us, 1.2 + 2 * 0.1, kExact);
  EXPECT_NEAR(shared[1].aggregate_us, 1.2 + 4 * 0.1, kExact);
}

}  // namespace
}  // namespace coppice::simulator_routes_test
