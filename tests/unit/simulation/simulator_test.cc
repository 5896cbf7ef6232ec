// Cases small enough to be summed by hand (the numbers are those of RoundProfile), and what must
// hold of every run.
#include "daemon/simulation/simulator.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "daemon/tree/type1.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::simulator_test {
namespace {

constexpr double kExact = 1e-9;

// Members n0..n<count-1>, one collective.
SimulationResult One(const FabricPtr& fabric, const std::vector<uint32_t>& members,
                     const std::vector<int32_t>& parents, const Payload& payload,
                     const CostProfile& profile = RoundProfile()) {
  return Simulated(
      SnapshotOf(fabric), profile,
      {{.tree = TreeOf(*fabric, members, parents), .payload = payload, .skew_us = {}}});
}

TEST(Simulator, ALoneRankOnlyInitialises) {
  CostProfile profile = RoundProfile();
  profile.init_us = 0.7;
  const SimulationResult result =
      One(Chain(1, 1), {0}, {-1}, PayloadOf(Operation::kAllreduce, 5000), profile);
  EXPECT_NEAR(result.collectives[0].total_us, 0.7, kExact);
  EXPECT_TRUE(result.channels.empty());
}

TEST(Simulator, OneEdge) {
  //     n0 --- S0 --- n1     up: 1 + 2 * 0.2 + 0.04, then 0.1 + 1; down: 0.05 + 1 + 0.4 + 0.04
  const CollectiveTimes times =
      One(Chain(1, 2), {0, 1}, {-1, 0}, PayloadOf(Operation::kAllreduce, 1000)).collectives[0];
  EXPECT_NEAR(times.aggregate_us, 2.54, kExact);
  EXPECT_NEAR(times.distribute_us, 1.49, kExact);
  EXPECT_NEAR(times.total_us, 4.03, kExact);
  EXPECT_NEAR(times.finish_us[0], 2.54, kExact);
  EXPECT_NEAR(times.finish_us[1], 4.03, kExact);
}

TEST(Simulator, EveryOperationMovesItsOwnBytes) {
  const FabricPtr fabric = Chain(1, 2);
  const auto total = [&](Operation operation, bool at_root) {
    return One(fabric, {0, 1}, {-1, 0}, PayloadOf(operation, 1000, at_root))
        .collectives[0]
        .total_us;
  };
  EXPECT_NEAR(total(Operation::kBarrier, true), 1.4 + 0.1 + 1.45, kExact);
  EXPECT_NEAR(total(Operation::kBcast, true), 1.4 + 0.1 + 1.49, kExact);
  EXPECT_NEAR(total(Operation::kReduce, true), 1.44 + 1.1 + 1.45, kExact);
  EXPECT_NEAR(total(Operation::kBcast, false), 1.44 + 0.1 + 1.49, kExact);  // moved, not reduced
  EXPECT_NEAR(total(Operation::kReduce, false), 1.44 + 1.1 + 1.49, kExact);
}

TEST(Simulator, ForwardingMayContainTheTimeOnTheWire) {
  CostProfile profile = RoundProfile();
  profile.forward_includes_serialisation = true;
  const CollectiveTimes times =
      One(Chain(1, 2), {0, 1}, {-1, 0}, PayloadOf(Operation::kAllreduce, 1000), profile)
          .collectives[0];
  EXPECT_NEAR(times.total_us, 4.03 - 2 * 0.04, kExact);
}

TEST(Simulator, TwoPortsOfOneHostCrossNoLink) {
  const FabricPtr host = TwoLevelFatTree(1, 0, 1, 2);
  const SimulationResult result =
      One(host, {0, 1}, {-1, 0}, PayloadOf(Operation::kAllreduce, 1000));
  EXPECT_NEAR(result.collectives[0].total_us, 0.3 + 1.1 + 0.05 + 0.3, kExact);
  EXPECT_TRUE(result.channels.empty());
  const SimulationResult train = One(host, {0, 1}, {-1, 0}, PayloadOf(Operation::kAllreduce, 5000));
  EXPECT_NEAR(train.collectives[0].total_us, 0.3 + 5 * 1.1 + 0.05 + 0.3, kExact);
}

TEST(Simulator, TwoPortsOfOneHostOnTwoSwitchesCrossTheLinksBetweenThem) {
  //     S2         n0's packet goes to its other port over S0, S2 and S1, and so does the result
  //     back
  //    /  \.
  //  S0    S1
  const SimulationResult result =
      One(HostsOnTwoLeaves(2, 1, 1), {0, 1}, {-1, 0}, PayloadOf(Operation::kReduce, 1000));
  EXPECT_NEAR(result.collectives[0].aggregate_us, 1 + 4 * 0.2 + 0.04 + 1.1, kExact);
  uint64_t crossed = 0;
  for (const ChannelTraffic& channel : result.channels) crossed += channel.packets;
  EXPECT_EQ(crossed, 8U);  // four links each way
}

TEST(Simulator, ChildrenShareTheirParentsPort) {
  //     n0 <- n1, n2, n3: tails 0.04 apart at n0's port; each is matched in 0.1
  const CollectiveTimes times =
      One(Chain(1, 4), {0, 1, 2, 3}, {-1, 0, 0, 0}, PayloadOf(Operation::kReduce, 0))
          .collectives[0];
  EXPECT_NEAR(times.aggregate_us, 1.4 + 3 * 0.1, kExact);
  EXPECT_NEAR(times.distribute_us, 3 * 0.05 + 1.4, kExact);
  CostProfile quick = RoundProfile();
  quick.nic.match_us = 0.01;
  quick.nic.reduce_us_per_byte = 0;
  const SimulationResult wire =
      One(Chain(1, 4), {0, 1, 2, 3}, {-1, 0, 0, 0}, PayloadOf(Operation::kReduce, 1000), quick);
  EXPECT_NEAR(wire.collectives[0].aggregate_us, 1.4 + 3 * 0.04 + 0.01, kExact);
}

TEST(Simulator, TwoPacketsMeetOnOneLink) {
  //     n0 \             / n2      n0 -> n2 and n1 -> n3 at once: the second head waits 0.04 before
  //         S0 ------- S1          S0 -> S1
  //     n1 /             \ n3
  const FabricPtr fabric = Chain(2, 2);
  const SimulatedCollective first = {.tree = TreeOf(*fabric, {2, 0}, {-1, 0}),
                                     .payload = PayloadOf(Operation::kReduce, 1000),
                                     .skew_us = {}};
  SimulatedCollective second = first;
  second.tree = TreeOf(*fabric, {3, 1}, {-1, 0});
  SimulationResult result = Simulated(SnapshotOf(fabric), RoundProfile(), {first, second});
  EXPECT_NEAR(result.collectives[0].aggregate_us, 1 + 3 * 0.2 + 0.04 + 1.1, kExact);
  EXPECT_NEAR(result.collectives[1].aggregate_us, 1 + 3 * 0.2 + 0.08 + 1.1, kExact);
  const auto shared = std::max_element(
      result.channels.begin(), result.channels.end(),
      [](const ChannelTraffic& a, const ChannelTraffic& b) { return a.packets < b.packets; });
  EXPECT_EQ(shared->packets, 2);
  EXPECT_EQ(shared->bytes, 2000);
  EXPECT_EQ(shared->longest_queue, 1);
  EXPECT_NEAR(shared->busy_us, 0.08, kExact);

  second.start_us = 0.03;  // 0.01 too early
  result = Simulated(SnapshotOf(fabric), RoundProfile(), {first, second});
  EXPECT_NEAR(result.collectives[1].aggregate_us, 1 + 3 * 0.2 + 0.05 + 1.1, kExact);
  second.start_us = 0.05;
  result = Simulated(SnapshotOf(fabric), RoundProfile(), {first, second});
  EXPECT_NEAR(result.collectives[1].aggregate_us, 1 + 3 * 0.2 + 0.04 + 1.1, kExact);
}

TEST(Simulator, TheSlowestLinkCountsOnce) {
  // Hosts at 100 Gb/s, spines at 50: 1,000 bytes take 0.08 and 0.16.
  const Snapshot snapshot =
      SnapshotOfModel("model:fat-tree(leaves=2,spines=1,hosts-per-leaf=1,speeds=edr/2xedr)");
  const CollectiveTimes times = Simulated(snapshot, RoundProfile(),
                                          {{.tree = TreeOf(*snapshot.fabric, {0, 1}, {-1, 0}),
                                            .payload = PayloadOf(Operation::kReduce, 1000),
                                            .skew_us = {}}})
                                    .collectives[0];
  EXPECT_NEAR(times.aggregate_us, 1 + 4 * 0.2 + 0.16 + 1.1, kExact);
}

TEST(Simulator, HeadersTakeBandwidthAndNothingElse) {
  const FabricPtr fabric = Chain(1, 2);
  const CollectiveTimes times = Simulated(SnapshotOf(fabric), RoundProfile(),
                                          {{.tree = TreeOf(*fabric, {0, 1}, {-1, 0}),
                                            .payload = PayloadOf(Operation::kReduce, 1000),
                                            .skew_us = {}}},
                                          {.header_bytes = 250})
                                    .collectives[0];
  EXPECT_NEAR(times.aggregate_us, 1.4 + 0.04 + 1.1, kExact);
  const auto train = [&](uint32_t header_bytes) {
    CostProfile quick = RoundProfile();
    quick.nic.reduce_us_per_byte = quick.nic.match_us = 0;
    quick.header_bytes = header_bytes;  // what counts if the options say nothing
    return One(fabric, {0, 1}, {-1, 0}, PayloadOf(Operation::kReduce, 5000), quick)
        .collectives[0]
        .aggregate_us;
  };
  EXPECT_NEAR(train(0), 1.4 + 5 * 0.04, kExact);
  EXPECT_NEAR(train(250), 1.4 + 4 * 0.05 + 0.04, kExact);
}

TEST(Simulator, LateRanksDelayTheirAncestorsOnly) {
  const FabricPtr fabric = Chain(1, 3);
  SimulatedCollective collective = {.tree = TreeOf(*fabric, {0, 1, 2}, {-1, 0, 1}),
                                    .payload = PayloadOf(Operation::kBarrier, 0),
                                    .skew_us = {0, 10, 0}};
  const auto aggregate = [&] {
    return Simulated(SnapshotOf(fabric), RoundProfile(), {collective}).collectives[0].aggregate_us;
  };
  EXPECT_NEAR(aggregate(), 10 + 1.4 + 0.1, kExact);
  collective.start_us = 100;  // times count from the start
  EXPECT_NEAR(aggregate(), 10 + 1.4 + 0.1, kExact);
  collective.skew_us = {0, 1, 0};
  EXPECT_NEAR(aggregate(), 1.5 + 1.5, kExact);
  collective.skew_us = {5, 0, 0};
  EXPECT_NEAR(aggregate(), 5, kExact);
}

TEST(Simulator, PacketsFollowEachOtherAlongAChain) {
  // n0 <- n1 <- ... each packet on its own: T(first) + (packets - 1) * slowest stage, here the
  // matching of 0.1 + 1 us upwards, as one rank has one child.
  const FabricPtr fabric = Chain(4, 1);
  const auto up = [&](uint64_t bytes) {
    return One(fabric, {0, 1, 2, 3}, {-1, 0, 1, 2}, PayloadOf(Operation::kReduce, bytes))
        .collectives[0]
        .aggregate_us;
  };
  EXPECT_NEAR(up(8000), up(1000) + 7 * 1.1, kExact);
  CostProfile quick = RoundProfile();  // now the wire is the slowest stage
  quick.nic.reduce_us_per_byte = 0;
  quick.nic.match_us = 0.001;
  const auto both = [&](uint64_t bytes) {
    return One(fabric, {0, 1, 2, 3}, {-1, 0, 1, 2}, PayloadOf(Operation::kBcast, bytes), quick)
        .collectives[0]
        .total_us;
  };
  EXPECT_NEAR(both(8000), both(1000) + 7 * 0.05, kExact);  // c_send
  quick.nic.send_us = 0.001;
  EXPECT_NEAR(both(8000), both(1000) + 7 * 0.04, kExact);  // S / B
  EXPECT_NEAR(both(7001), both(7000) + 4e-5, kExact);      // one byte more on the last link
}

TEST(Simulator, AResultStreamsDownWhileTheRestIsReduced) {
  const FabricPtr fabric = Chain(1, 2);
  const CollectiveTimes times =
      One(fabric, {0, 1}, {-1, 0}, PayloadOf(Operation::kAllreduce, 10000)).collectives[0];
  EXPECT_NEAR(times.aggregate_us, 1.44 + 10 * 1.1, kExact);
  EXPECT_NEAR(times.distribute_us, 1.49, kExact);  // of the last packet alone
}

TEST(Simulator, EqualSeedsGiveEqualRuns) {
  const Snapshot snapshot = SnapshotOfModel("model:fat-tree(leaves=8,spines=4,hosts-per-leaf=8)");
  std::vector<EndpointIndex> members = AllEndpoints(*snapshot.fabric);
  const auto tree = BuildKary(*snapshot.fabric, members, 4, 64);
  ASSERT_TRUE(tree.ok());
  const SimulatedCollective collective = {
      .tree = *tree, .payload = PayloadOf(Operation::kAllreduce, 3000), .skew_us = {}};
  const auto simulator =
      Simulator::Prepare(snapshot, RoundProfile(), {collective, collective}, {.noise = 0.7});
  ASSERT_TRUE(simulator.ok());
  const SimulationResult a = simulator->Run(7), b = simulator->Run(7), c = simulator->Run(8);
  EXPECT_EQ(a.collectives[0].finish_us, b.collectives[0].finish_us);
  EXPECT_EQ(a.collectives[1].finish_us, b.collectives[1].finish_us);
  EXPECT_NE(a.collectives[0].finish_us, c.collectives[0].finish_us);
}

// Trees of every shape at once: each channel carries what the routes of the edges say, and no more.
TEST(Simulator, NoPacketIsLostOrMadeUp) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 200 : 20); ++round) {
    const Snapshot snapshot = SnapshotOf(TwoLevelFatTree(4, 2, 3, 2));
    const Fabric& fabric = *snapshot.fabric;
    std::vector<SimulatedCollective> collectives;
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> expected;  // channel: packets, bytes
    for (int i = 0; i < 5; ++i) {
      std::vector<uint32_t> members;
      std::vector<int32_t> parents = {-1};
      const uint32_t ranks = 1 + random() % 12;
      for (uint32_t r = 0; r < ranks; ++r) {
        members.push_back(random() % fabric.endpoint_count());
        if (r > 0) parents.push_back(static_cast<int32_t>(random() % r));
      }
      const uint64_t bytes = random() % 5000;
      const uint64_t packets = std::max<uint64_t>(1, (bytes + 999) / 1000);
      collectives.push_back({.tree = TreeOf(fabric, members, parents),
                             .payload = PayloadOf(Operation::kAllreduce, bytes),
                             .start_us = static_cast<double>(random() % 10),
                             .skew_us = {}});
      for (uint32_t r = 1; r < ranks; ++r) {
        const VertexIndex child = collectives.back().tree.vertices[r];
        const VertexIndex parent = collectives.back().tree.vertices[parents[r]];
        std::vector<ChannelIndex> path;
        ASSERT_TRUE(snapshot.routes->Append(child, parent, path).ok());
        ASSERT_TRUE(snapshot.routes->Append(parent, child, path).ok());
        for (const ChannelIndex c : path) {
          expected[c.value()].first += packets;
          expected[c.value()].second += bytes;
        }
      }
    }
    const SimulationResult result =
        Simulated(snapshot, RoundProfile(), collectives, {.noise = 0.5}, round);
    ASSERT_EQ(result.channels.size(), expected.size());
    for (const ChannelTraffic& use : result.channels) {
      EXPECT_EQ(use.packets, expected[use.channel.value()].first);
      EXPECT_EQ(use.bytes, expected[use.channel.value()].second);
      EXPECT_LE(use.up_packets, use.packets);
      EXPECT_NEAR(use.busy_us, static_cast<double>(use.bytes) * 4e-5, 1e-6);
    }
  }
}

}  // namespace
}  // namespace coppice::simulator_test
