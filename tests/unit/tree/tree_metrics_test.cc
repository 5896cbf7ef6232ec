// The exact evaluation against the event simulation on random trees, and what an edge crosses.
#include "daemon/tree/tree_metrics.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "daemon/fabric/fabric_builder.h"
#include "daemon/tree/type1.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/tree/event_simulation.h"

namespace coppice::tree_metrics_test {
namespace {

using ::testing::HasSubstr;

double Uniform(std::mt19937_64& random, double most) {
  return std::uniform_real_distribution<double>(0, most)(random);
}

CostProfile RandomProfile(std::mt19937_64& random) {
  CostProfile profile;
  for (NodeCost* cost : {&profile.nic, &profile.switch_}) {
    *cost = {.forward_us = 0.1 + Uniform(random, 1),
             .forward_us_per_byte = Uniform(random, 1e-4),
             .match_us = Uniform(random, 0.1),
             .reduce_us_per_byte = Uniform(random, 1e-3),
             .send_us = Uniform(random, 0.1)};
  }
  profile.init_us = Uniform(random, 1);
  profile.forward_includes_serialisation = random() % 2 == 0;
  profile.mtu_bytes = 256U << random() % 5;
  profile.header_bytes = random() % 2 == 0 ? 0 : 26;
  return profile;
}

// Any tree: parents in no order, some nodes switches.
AggregationTree RandomTree(std::mt19937_64& random, uint32_t most_nodes) {
  AggregationTree tree;
  const auto nodes = static_cast<uint32_t>(1 + random() % most_nodes);
  std::vector<uint32_t> order(nodes);
  for (uint32_t n = 0; n < nodes; ++n) order[n] = n;
  std::shuffle(order.begin(), order.end(), random);
  const uint64_t reach = 1 + random() % nodes;  // small: deep trees
  tree.parents.assign(nodes, AggregationTree::kNoParent);
  for (uint32_t i = 1; i < nodes; ++i) {
    tree.parents[order[i]] =
        static_cast<int32_t>(order[i - 1 - random() % std::min<uint64_t>(i, reach)]);
  }
  tree.rank_count = static_cast<uint32_t>(random() % (nodes + 1));
  tree.vertices.resize(nodes);
  return tree;
}

std::vector<EdgeCost> RandomEdges(std::mt19937_64& random, uint32_t nodes) {
  const bool alike = random() % 4 == 0;  // then many packets arrive together
  std::vector<EdgeCost> edges(nodes);
  for (EdgeCost& edge : edges) {
    const auto time = [&] { return static_cast<float>(0.1 + Uniform(random, 2)); };
    const auto rate = [&] {
      return random() % 4 == 0 ? 0.0F : static_cast<float>(10 + Uniform(random, 400));
    };
    edge = {.links_up = 1,
            .links_down = 1,
            .time_up_us = time(),
            .time_down_us = time(),
            .min_gbps_up = rate(),
            .min_gbps_down = rate(),
            .port_gbps_up = rate(),
            .port_gbps_down = rate()};
    if (random() % 8 == 0) {  // within a host
      edge = {.time_up_us = time(), .time_down_us = time()};
    }
    if (alike) edge = edges.front();
  }
  return edges;
}

TEST(TreeMetrics, AgreesWithTheEventSimulation) {
  std::mt19937_64 random(TestSeed());
  const uint32_t rounds = FullTier() ? 100'000 : 5'000;
  constexpr uint64_t kSizes[] = {0, 8, 2048, 1 << 20};
  for (uint32_t round = 0; round < rounds; ++round) {
    const CostProfile profile = RandomProfile(random);
    const AggregationTree tree = RandomTree(random, 60);
    const std::vector<EdgeCost> edges = RandomEdges(random, tree.node_count());
    const Payload payload = PayloadOf(static_cast<Operation>(random() % 4), kSizes[random() % 4],
                                      /*mpi_root_is_tree_root=*/random() % 2 == 0);
    const Prediction exact = Evaluate(profile, tree, edges, payload);
    const Prediction simulated = Simulate(profile, tree, edges, payload);
    const double slack = 1e-9 * (1 + simulated.total_us);
    ASSERT_NEAR(exact.total_us, simulated.total_us, slack) << "round " << round;
    ASSERT_NEAR(profile.init_us + exact.aggregate_us + exact.distribute_us, exact.total_us, slack);
    if (std::max(payload.up_bytes, payload.down_bytes) > profile.mtu_bytes) continue;
    ASSERT_NEAR(exact.aggregate_us, simulated.aggregate_us, slack) << "round " << round;
    ASSERT_NEAR(exact.distribute_us, simulated.distribute_us, slack) << "round " << round;
  }
}

// A star of two other ports of the root's own host: no phi, no wire, but each packet is matched.
TEST(TreeMetrics, WithinAHostOnlyTheTurnAndTheParentCost) {
  CostProfile profile;
  profile.nic = {.forward_us = 7,
                 .forward_us_per_byte = 1,
                 .match_us = 0.25,
                 .reduce_us_per_byte = 0.125,
                 .send_us = 0.5};
  AggregationTree tree;
  tree.rank_count = 3;
  tree.parents = {-1, 0, 0};
  const std::vector<EdgeCost> edges(3, {.time_up_us = 0.0625, .time_down_us = 0.0625});
  const Prediction prediction = Evaluate(profile, tree, edges, PayloadOf(Operation::kAllreduce, 8));
  EXPECT_EQ(prediction.aggregate_us, 0.0625 + 2 * (0.25 + 8 * 0.125));
  EXPECT_EQ(prediction.distribute_us, 2 * 0.5 + 0.0625);
}

TEST(TreeMetrics, OneNodeTakesTheSetUpOnly) {
  CostProfile profile;
  profile.init_us = 0.5;
  AggregationTree tree;
  tree.rank_count = 1;
  tree.parents = {-1};
  const Prediction prediction = Evaluate(profile, tree, std::vector<EdgeCost>(1), {});
  EXPECT_EQ(prediction.aggregate_us, 0);
  EXPECT_EQ(prediction.distribute_us, 0);
  EXPECT_EQ(prediction.total_us, 0.5);
}

TEST(TreeMetrics, LongerMessagesTakeLonger) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 500; ++round) {
    const CostProfile profile = RandomProfile(random);
    CostProfile endless = profile;
    endless.mtu_bytes = UINT32_MAX;
    const AggregationTree tree = RandomTree(random, 40);
    const std::vector<EdgeCost> edges = RandomEdges(random, tree.node_count());
    const auto operation = static_cast<Operation>(random() % 4);
    double last = 0;
    for (uint64_t bytes = 1; bytes < 100'000; bytes += 1 + bytes / 3) {
      const Payload payload = PayloadOf(operation, bytes);
      const double us = Evaluate(profile, tree, edges, payload).total_us;
      ASSERT_GE(us, last * (1 - 1e-12)) << "round " << round << " " << bytes;
      last = us;
      if (bytes <= profile.mtu_bytes) {
        ASSERT_EQ(us, Evaluate(endless, tree, edges, payload).total_us);
      }
    }
  }
}

// A chain of three: while the middle one takes packet 2, the root takes packet 1.
//   3 packets, theta + S*gamma = 1.5 at each: T(first) = 2 * (1 + 0.25 + 1.5), then 2 stages of 1.5
TEST(TreeMetrics, PacketsFollowEachOtherByTheSlowestStage) {
  CostProfile profile;
  profile.nic = {.forward_us = 1, .match_us = 0.5, .reduce_us_per_byte = 0.01, .send_us = 0.25};
  profile.mtu_bytes = 100;
  AggregationTree tree;
  tree.rank_count = 3;
  tree.parents = {-1, 0, 1};
  const std::vector<EdgeCost> edges(
      3, {.links_up = 1, .links_down = 1, .time_up_us = 0.25, .time_down_us = 0.25});
  const Prediction reduce = Evaluate(profile, tree, edges, PayloadOf(Operation::kReduce, 300));
  EXPECT_DOUBLE_EQ(reduce.aggregate_us, 2 * (1 + 0.25 + 1.5) + 2 * 1.5);
  EXPECT_DOUBLE_EQ(reduce.distribute_us, 2 * (0.25 + 1 + 0.25));
  // Allreduce: the result's packets leave as they are reduced, and keep that distance.
  const Prediction all = Evaluate(profile, tree, edges, PayloadOf(Operation::kAllreduce, 300));
  EXPECT_DOUBLE_EQ(all.total_us, reduce.total_us);
  // Bcast: two more copies.
  const Prediction bcast = Evaluate(profile, tree, edges, PayloadOf(Operation::kBcast, 300));
  EXPECT_DOUBLE_EQ(bcast.aggregate_us, 2 * (1 + 0.25 + 0.5));
  EXPECT_DOUBLE_EQ(bcast.distribute_us, 2 * (0.25 + 1 + 0.25) + 2 * 0.25);
}

TEST(TreeMetrics, MixIsTheWeightedMean) {
  std::mt19937_64 random(TestSeed());
  const CostProfile profile = RandomProfile(random);
  const AggregationTree tree = RandomTree(random, 40);
  const std::vector<EdgeCost> edges = RandomEdges(random, tree.node_count());
  const auto one = [&](uint64_t bytes) {
    return Evaluate(profile, tree, edges, PayloadOf(Operation::kAllreduce, bytes)).total_us;
  };
  const auto mix = [&](std::vector<SizeShare> sizes) {
    return EvaluateMix(profile, tree, edges, {Operation::kAllreduce, sizes}).total_us;
  };
  EXPECT_DOUBLE_EQ(mix({{8, 5}}), one(8));
  EXPECT_NEAR(mix({{8, 3}, {4096, 1}}), 0.75 * one(8) + 0.25 * one(4096), 1e-9);
  EXPECT_NEAR(mix({{8, 0}, {4096, 0}}), 0.5 * one(8) + 0.5 * one(4096), 1e-9);
}

class EdgesOnFabric : public ::testing::Test {
 protected:
  // n0 n1 on S0, n2 n3 on S1, two ports each, one spine.
  const FabricPtr fabric_ = TwoLevelFatTree(2, 1, 2, /*ports_per_host=*/2);
  const CostProfile profile_ = *BuiltInProfile("paper");

  AggregationTree Star() const { return *BuildKary(*fabric_, AllEndpoints(*fabric_), 7, 64); }
  std::shared_ptr<const Snapshot> Plain() const { return *MakeSnapshot(fabric_, nullptr); }
};

TEST_F(EdgesOnFabric, CountsLinksAndKeepsHostsApart) {
  const auto edges = EdgeCosts(*Plain(), profile_, Star());
  ASSERT_TRUE(edges.ok()) << edges.status();
  EXPECT_EQ((*edges)[0].links_up, 0U);
  EXPECT_EQ((*edges)[1].links_up, 0U);  // the other port of n0
  EXPECT_FLOAT_EQ((*edges)[1].time_up_us, static_cast<float>(profile_.same_host_us));
  EXPECT_EQ((*edges)[1].min_gbps_up, 0);
  EXPECT_EQ((*edges)[2].links_up, 2U);
  EXPECT_EQ((*edges)[4].links_up, 4U);
  EXPECT_EQ((*edges)[4].links_down, 4U);
  EXPECT_NEAR((*edges)[4].time_up_us, 4 * profile_.link_us, 1e-6);
  EXPECT_EQ((*edges)[4].min_gbps_up, (*edges)[4].port_gbps_up);
  EXPECT_GT((*edges)[4].port_gbps_up, 0);
  EXPECT_EQ(Radius(Star(), *edges), 4U);
}

// With a port on each of two leaf switches a host's other port is as far as that switch.
TEST_F(EdgesOnFabric, CountsLinksBetweenPortsOfOneHostOnTwoSwitches) {
  const FabricPtr fabric = HostsOnTwoLeaves(2, 1, 2);
  const AggregationTree star = *BuildKary(*fabric, AllEndpoints(*fabric), 7, 64);
  const Snapshot snapshot = **MakeSnapshot(fabric, nullptr);
  const auto edges = EdgeCosts(snapshot, profile_, star);
  ASSERT_TRUE(edges.ok()) << edges.status();
  std::vector<ChannelIndex> path;
  for (uint32_t node = 1; node < star.node_count(); ++node) {
    const bool is_near = fabric->attached_switch(EndpointIndex(node)) == SwitchIndex(0);
    EXPECT_EQ((*edges)[node].links_up, is_near ? 2U : 4U) << node;
    EdgeCost walked;
    ASSERT_TRUE(
        WalkEdge(snapshot, profile_, star.vertices[node], star.vertices[0], path, walked).ok());
    EXPECT_EQ((*edges)[node].links_down, walked.links_down) << node;
    EXPECT_EQ((*edges)[node].time_up_us, walked.time_up_us) << node;
    EXPECT_EQ((*edges)[node].min_gbps_up, walked.min_gbps_up) << node;
  }
  EXPECT_EQ(Radius(star, *edges), 4U);
}

TEST_F(EdgesOnFabric, WaitsOnLoadedLinks) {
  const AggregationTree star = Star();
  Snapshot snapshot = *Plain();
  std::vector<float> load(fabric_->channel_count(), 0);
  const ChannelIndex uplink = fabric_->uplink(EndpointIndex(4));
  load[uplink.value()] = 0.5;
  snapshot.load = std::make_shared<const LinkLoad>(load);
  const auto half = EdgeCosts(snapshot, profile_, star);
  const auto none = EdgeCosts(*Plain(), profile_, star);
  const double packet_us = profile_.mtu_bytes * 8e-3 / fabric_->capacity_gbps(uplink);
  EXPECT_NEAR((*half)[4].time_up_us - (*none)[4].time_up_us, packet_us * 0.5, 1e-5);
  EXPECT_EQ((*half)[4].time_down_us, (*none)[4].time_down_us);  // the other direction is free
  load[uplink.value()] = 7;                                     // beyond full: capped at 0.99
  snapshot.load = std::make_shared<const LinkLoad>(load);
  const auto full = EdgeCosts(snapshot, profile_, star);
  EXPECT_NEAR((*full)[4].time_up_us - (*none)[4].time_up_us, packet_us * 0.99 / 0.02, 1e-3);
}

// The same cables with random capacities, those between switches all alike if `even`.
FabricPtr WithCapacities(const Fabric& fabric, bool even, std::mt19937_64& random) {
  FabricBuilder builder;
  const auto must = [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; };
  const auto guid = [&](VertexIndex v) {
    return fabric.IsSwitch(v) ? fabric.switch_info(fabric.AsSwitch(v)).guid
                              : fabric.adapter(fabric.AsEndpoint(v)).guid;
  };
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    must(builder.AddSwitch(fabric.switch_info(SwitchIndex(s))));
  }
  for (uint32_t a = 0; a < fabric.adapter_count(); ++a) {
    must(builder.AddAdapter(fabric.adapter(AdapterIndex(a))));
  }
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    const EndpointInfo& info = fabric.endpoint(EndpointIndex(e));
    must(builder.SetAdapterPort(fabric.adapter(info.adapter).guid, info.port, info.port_guid,
                                info.lid));
  }
  constexpr float kGbps[] = {0, 100, 200, 400};
  const float between = kGbps[random() % 4];
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& link = fabric.link(LinkIndex(l));
    const bool fixed = even && fabric.IsSwitch(link.b);
    must(builder.AddLink(guid(link.a), link.a_port, guid(link.b), link.b_port, LinkRate{},
                         fixed ? between : kGbps[random() % 4]));
  }
  return *builder.Build();
}

// Any vertices in a random tree, so that most edges have a route.
AggregationTree TreeOnVertices(const Fabric& fabric, std::mt19937_64& random) {
  AggregationTree tree = RandomTree(random, 60);
  for (VertexIndex& v : tree.vertices) {
    const bool same = &v != tree.vertices.data() && random() % 8 == 0;
    v = same ? tree.vertices[0]
             : VertexIndex(static_cast<uint32_t>(random() % fabric.vertex_count()));
  }
  return tree;
}

// A load of 0 everywhere is no load, but the routes are then walked.
TEST_F(EdgesOnFabric, HopsSayTheSameAsTheWalkWithoutLoad) {
  std::mt19937_64 random(TestSeed());
  const uint32_t rounds = FullTier() ? 20'000 : 2'000;
  uint32_t routed = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    const auto switches = static_cast<uint32_t>(1 + random() % 8);
    const FabricPlan plan = random() % 2 == 0
                                ? ThreeLevelFatTreePlan(2, 2, 2, 2, 2)
                                : RandomFabricPlan(random, switches, 3 * switches, switches + 1);
    const FabricPtr fabric = WithCapacities(*MakeFabric(plan), random() % 4 != 0, random);
    CostProfile profile = RandomProfile(random);
    profile.link_us = Uniform(random, 1);
    profile.port_gbps = random() % 2 == 0 ? 0 : 200;
    const AggregationTree tree = TreeOnVertices(*fabric, random);
    Snapshot snapshot = **MakeSnapshot(fabric, nullptr);
    const auto hops = EdgeCosts(snapshot, profile, tree);
    snapshot.load = std::make_shared<const LinkLoad>(std::vector<float>(fabric->channel_count()));
    const auto walked = EdgeCosts(snapshot, profile, tree);
    ASSERT_EQ(hops.status(), walked.status());
    if (!walked.ok()) continue;
    ++routed;
    ASSERT_EQ(hops->size(), walked->size());
    static_assert(sizeof(EdgeCost) == 8 * sizeof(float), "no padding");
    ASSERT_EQ(std::memcmp(hops->data(), walked->data(), hops->size() * sizeof(EdgeCost)), 0)
        << "round " << round;
  }
  EXPECT_GT(routed, rounds / 4);
}

TEST_F(EdgesOnFabric, NamesAnEdgeWithoutRoute) {
  const FabricPtr apart =
      MakeFabric({.switches = 2, .cables = {}, .hosts = {{0}, {1}}, .descriptions = {}});
  const auto tree = BuildKary(*apart, AllEndpoints(*apart), 2, 64);
  ASSERT_TRUE(tree.ok());
  const auto snapshot = MakeSnapshot(apart, nullptr);
  ASSERT_TRUE(snapshot.ok());
  const absl::Status status = EdgeCosts(**snapshot, profile_, *tree).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("n0"));
  EXPECT_THAT(status.message(), HasSubstr("n1"));
}

}  // namespace
}  // namespace coppice::tree_metrics_test
