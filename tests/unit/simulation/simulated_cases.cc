#include "tests/unit/simulation/simulated_cases.h"

#include <memory>

#include "daemon/fabric/fabric_source.h"
#include "gtest/gtest.h"

namespace coppice {

Snapshot SnapshotOf(const FabricPtr& fabric) {
  return {fabric, Routes::ShortestPaths(fabric), DeriveHierarchy(*fabric),
          std::make_shared<const LinkLoad>()};
}

Snapshot SnapshotOfModel(const std::string& spec) {
  const auto fabric = LoadFabric(spec);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return SnapshotOf(*fabric);
}

AggregationTree TreeOf(const Fabric& fabric, const std::vector<uint32_t>& members,
                       const std::vector<int32_t>& parents) {
  AggregationTree tree;
  tree.rank_count = static_cast<uint32_t>(members.size());
  for (const uint32_t member : members) {
    tree.vertices.push_back(fabric.Vertex(EndpointIndex(member)));
  }
  tree.parents = parents;
  return tree;
}

CostProfile RoundProfile() {
  CostProfile profile;
  profile.name = "round";
  profile.nic = {.forward_us = 1,
                 .forward_us_per_byte = 0,
                 .match_us = 0.1,
                 .reduce_us_per_byte = 0.001,
                 .send_us = 0.05};
  profile.switch_ = profile.nic;
  profile.link_us = 0.2;
  profile.same_host_us = 0.3;
  profile.mtu_bytes = 1000;
  return profile;
}

SimulationResult Simulated(const Snapshot& snapshot, const CostProfile& profile,
                           const std::vector<SimulatedCollective>& collectives,
                           const SimulationOptions& options, uint64_t seed) {
  const auto simulator = Simulator::Prepare(snapshot, profile, collectives, options);
  EXPECT_TRUE(simulator.ok()) << simulator.status();
  if (!simulator.ok()) return {};
  SimulationResult result = simulator->Run(seed);
  EXPECT_EQ(result.events, simulator->event_count());
  return result;
}

}  // namespace coppice
