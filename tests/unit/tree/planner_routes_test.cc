// The planner where the fabric or its forwarding tables are not what one would wish: tables that
// are longer or busier than need be, with holes and loops; members that no cable joins; random
// fabrics. Every plan is checked by code apart from the builders.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/planner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/tree/plan_check.h"

namespace coppice::planner_routes_test {
namespace {

using ::testing::HasSubstr;
using Rows = std::vector<std::vector<uint8_t>>;  // [switch][LID]

// What shortest paths would write into the switches' tables.
Rows ShortestRows(const Fabric& fabric, const Routes& shortest) {
  Rows rows(fabric.switch_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    rows[s].assign(fabric.vertex_count() + 1, ForwardingTables::kNoRoute);
    for (uint32_t v = 0; v < fabric.vertex_count(); ++v) {
      const ChannelIndex next = shortest.NextChannel(SwitchIndex(s), VertexIndex(v));
      const uint16_t lid = fabric.lid(VertexIndex(v)).value();
      if (v == s) rows[s][lid] = 0;
      if (next != kNoChannel) rows[s][lid] = fabric.channel_from_port(next).value();
    }
  }
  return rows;
}

Snapshot WithTables(const FabricPtr& fabric, const Rows& rows) {
  auto tables = std::make_shared<ForwardingTables>(fabric->switch_count());
  for (uint32_t s = 0; s < rows.size(); ++s) tables->SetRow(SwitchIndex(s), rows[s]);
  return **MakeSnapshot(fabric, tables);
}

TreeRequest AllOf(const Fabric& fabric, std::optional<TreeType> type) {
  TreeRequest request;
  request.members = AllEndpoints(fabric);
  request.type = type;
  return request;
}

std::vector<SwitchCapacity> Uniform(const Fabric& fabric, uint32_t degree) {
  return std::vector<SwitchCapacity>(fabric.switch_count(), {16, 16, degree});
}

//   S2 root     two cables from each leaf switch to the root; those that the tables take are busy
//   || ||       and the others are idle
//   S0  S1
TEST(PlannerRoutes, ThePhysicalTreeFollowsTheTablesThoughOtherCablesAreIdle) {
  const FabricPtr fabric =
      MakeFabric({3, {{0, 2}, {0, 2}, {1, 2}, {1, 2}}, {{0}, {0}, {0}, {1}, {1}, {1}}, {}});
  Snapshot shortest = **MakeSnapshot(fabric, nullptr);
  Snapshot tables = WithTables(fabric, ShortestRows(*fabric, *shortest.routes));
  std::vector<float> load(fabric->channel_count(), 0.0F);
  const VertexIndex root(2);
  for (uint32_t s = 0; s < 2; ++s) {
    load[tables.routes->NextChannel(SwitchIndex(s), root).value()] = 0.9F;
  }
  shortest.load = tables.load = std::make_shared<const LinkLoad>(load);
  TreeRequest request = AllOf(*fabric, TreeType::kTypeII);
  request.root_switch = fabric->switch_info(SwitchIndex(2)).guid;
  const CostProfile profile = *BuiltInProfile("paper");
  const std::vector<SwitchCapacity> capacity = Uniform(*fabric, 4);
  double totals[2];
  for (const bool with_tables : {false, true}) {
    const Snapshot& snapshot = with_tables ? tables : shortest;
    const absl::StatusOr<TreePlan> plan = PlanTree(snapshot, profile, capacity, request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(CheckPlan(snapshot, profile, *plan, request, capacity).ok())
        << CheckPlan(snapshot, profile, *plan, request, capacity);
    for (size_t v = 1; v < plan->physical->vertices.size(); ++v) {
      if (!fabric->IsSwitch(plan->physical->vertices[v])) continue;
      EXPECT_EQ(load[plan->physical->up[v].value()] > 0, with_tables);
    }
    totals[with_tables] = plan->predicted.total_us;
  }
  EXPECT_GE(totals[true], totals[false]);
}

//      S2           the only two members are n0's ports, one on each leaf switch: trees of both
//      types
//     /  \.         cross the spine, and say what they put on its cables
//   S0    S1
TEST(PlannerRoutes, PortsOfOneHostOnTwoSwitchesAreJoinedByLinks) {
  const FabricPtr fabric = HostsOnTwoLeaves(2, 1, 2);
  const Snapshot shortest = **MakeSnapshot(fabric, nullptr);
  const Snapshot tables = WithTables(fabric, ShortestRows(*fabric, *shortest.routes));
  const CostProfile profile = *BuiltInProfile("paper");
  const std::vector<SwitchCapacity> capacity = Uniform(*fabric, 4);
  for (const Snapshot* const snapshot : {&shortest, &tables}) {
    for (const TreeType type : {TreeType::kTypeI, TreeType::kTypeII}) {
      TreeRequest request;
      request.members = {EndpointIndex(0), EndpointIndex(1)};
      request.type = type;
      request.operation = Operation::kAllreduce;
      absl::StatusOr<TreePlan> plan = PlanTree(*snapshot, profile, capacity, request);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const absl::Status check = CheckPlan(*snapshot, profile, *plan, request, capacity);
      EXPECT_TRUE(check.ok()) << check;
      LinkUseCounter counter;
      ASSERT_TRUE(MeasureLinks(*snapshot, profile, request, counter, *plan).ok());
      EXPECT_EQ(plan->uses.size(), 8U);  // four links, both ways
      for (const ChannelUse& use : plan->uses) EXPECT_EQ(use.up + use.down, 1U);
      if (type == TreeType::kTypeI) {
        EXPECT_EQ(plan->radius, 4U);
        EXPECT_EQ(plan->edges[1].links_up + plan->edges[0].links_up, 4U);
      } else {
        EXPECT_EQ(plan->physical->vertices.size(), 5U);
      }
    }
  }
}

// A load that no predicted time shows decides between spines that are alike, and changes no time.
TEST(PlannerRoutes, TheRootKeepsOffASpineThatOthersUse) {
  const FabricPtr fabric = TwoLevelFatTree(3, 2, 2);
  const Snapshot shortest = **MakeSnapshot(fabric, nullptr);
  Snapshot tables = WithTables(fabric, ShortestRows(*fabric, *shortest.routes));
  const CostProfile profile = *BuiltInProfile("hdr");
  const std::vector<SwitchCapacity> capacity = Uniform(*fabric, 8);
  TreeRequest request = AllOf(*fabric, TreeType::kTypeII);
  double idle_us = 0;
  for (const uint32_t used : {3U, 4U}) {
    std::vector<float> load(fabric->channel_count(), 0.0F);
    for (const Channel& c : fabric->switch_channels(SwitchIndex(used))) {
      load[c.index.value()] = 1e-6F;
    }
    tables.load = std::make_shared<const LinkLoad>(load);
    const absl::StatusOr<TreePlan> plan = PlanTree(tables, profile, capacity, request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->physical->root.value(), 7 - used);
    if (used == 3) idle_us = plan->predicted.total_us;
    EXPECT_EQ(plan->predicted.total_us, idle_us);
  }
}

// A ring whose tables go the long way round: S1 reaches S0 through S2 and S3, and so must the tree.
TEST(PlannerRoutes, ThePhysicalTreeFollowsTablesThatTakeTheLongWay) {
  const FabricPtr fabric = Ring(4, 2);
  const Snapshot shortest = **MakeSnapshot(fabric, nullptr);
  Rows rows = ShortestRows(*fabric, *shortest.routes);
  const uint16_t lid = fabric->switch_info(SwitchIndex(0)).lid.value();
  for (uint32_t s = 1; s < 4; ++s) {
    for (const Channel& c : fabric->switch_channels(SwitchIndex(s))) {
      if (c.to.value() == (s + 1) % 4) rows[s][lid] = c.port.value();
    }
  }
  const Snapshot snapshot = WithTables(fabric, rows);
  TreeRequest request = AllOf(*fabric, TreeType::kTypeII);
  request.root_switch = fabric->switch_info(SwitchIndex(0)).guid;
  const CostProfile profile = *BuiltInProfile("paper");
  const std::vector<SwitchCapacity> capacity = Uniform(*fabric, 8);
  const absl::StatusOr<TreePlan> plan = PlanTree(snapshot, profile, capacity, request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(CheckPlan(snapshot, profile, *plan, request, capacity).ok());
  EXPECT_EQ(plan->radius, 4U);  // S1's members: one link to S1 and three switches on
}

TEST(PlannerRoutes, ALoopAndAHoleAreNamedWithSwitchAndLid) {
  const FabricPtr fabric = Chain(4, 2);
  const Snapshot shortest = **MakeSnapshot(fabric, nullptr);
  const uint16_t lid = fabric->switch_info(SwitchIndex(0)).lid.value();
  for (const bool loop : {true, false}) {
    Rows rows = ShortestRows(*fabric, *shortest.routes);
    rows[2][lid] = ForwardingTables::kNoRoute;
    for (const Channel& c : fabric->switch_channels(SwitchIndex(2))) {
      if (loop && c.to.value() == 3) rows[2][lid] = c.port.value();
    }
    const Snapshot snapshot = WithTables(fabric, rows);
    TreeRequest request = AllOf(*fabric, TreeType::kTypeII);
    request.root_switch = fabric->switch_info(SwitchIndex(0)).guid;
    const absl::Status status =
        PlanTree(snapshot, *BuiltInProfile("paper"), Uniform(*fabric, 8), request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(loop ? "loops through switch" : "breaks off at switch"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"S2\""));
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("LID ", lid)));
  }
}

// Every route between the two switches is gone: neither type has a tree.
TEST(PlannerRoutes, TypeINamesTheSwitchWhereARouteBreaksOff) {
  const FabricPtr fabric = Chain(2, 1);
  const Rows rows(2, std::vector<uint8_t>(8, ForwardingTables::kNoRoute));
  const Snapshot snapshot = WithTables(fabric, rows);
  for (const std::optional<TreeType> type : {std::optional<TreeType>(), {TreeType::kTypeI}}) {
    const absl::Status status =
        PlanTree(snapshot, *BuiltInProfile("paper"), Uniform(*fabric, 8), AllOf(*fabric, type))
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("breaks off at switch"));
  }
}

TEST(PlannerRoutes, MembersInTwoSubnetworksAreNamed) {
  const FabricPtr fabric = MakeFabric({2, {}, {{0}, {0}, {1}}, {}});
  const Snapshot snapshot = **MakeSnapshot(fabric, nullptr);
  for (const std::optional<TreeType> type :
       {std::optional<TreeType>(), {TreeType::kTypeI}, {TreeType::kTypeII}}) {
    const absl::Status status =
        PlanTree(snapshot, *BuiltInProfile("paper"), Uniform(*fabric, 8), AllOf(*fabric, type))
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 0 on endpoint n0/1"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 on endpoint n2/1"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("different subnetworks"));
  }
}

// Random members of one component, several ranks on a port included.
std::vector<EndpointIndex> SomeMembers(const Fabric& fabric, std::mt19937_64& random) {
  const EndpointIndex first(static_cast<uint32_t>(random() % fabric.endpoint_count()));
  std::vector<EndpointIndex> near, members = {first};
  for (const EndpointIndex e : AllEndpoints(fabric)) {
    const bool joined =
        fabric.component(fabric.Vertex(e)) == fabric.component(fabric.Vertex(first));
    if (joined) near.push_back(e);
  }
  for (size_t i = random() % 40; i > 0; --i) members.push_back(near[random() % near.size()]);
  return members;
}

TEST(PlannerRoutes, PlansOnRandomFabricsHoldTheirConstraints) {
  std::mt19937_64 random(TestSeed() + 9);
  const int rounds = FullTier() ? 20000 : 1000;
  int planned[3] = {0, 0, 0};
  for (int round = 0; round < rounds; ++round) {
    const uint32_t switches = 1 + static_cast<uint32_t>(random() % 12);
    const FabricPtr fabric = RandomFabric(random, switches, static_cast<uint32_t>(random() % 30),
                                          1 + static_cast<uint32_t>(random() % 20));
    Snapshot snapshot = **MakeSnapshot(fabric, nullptr);
    if (random() % 2 == 0) {
      snapshot = WithTables(fabric, ShortestRows(*fabric, *snapshot.routes));
    }
    if (random() % 2 == 0) {
      std::vector<float> load(fabric->channel_count());
      for (float& u : load) u = static_cast<float>(random() % 100) / 100.0F;
      snapshot.load = std::make_shared<const LinkLoad>(load);
    }
    std::vector<SwitchCapacity> capacity(switches);
    for (SwitchCapacity& c : capacity) {
      c = {8, static_cast<uint32_t>(random() % 4), static_cast<uint32_t>(random() % 12)};
    }
    const CostProfile profile = *BuiltInProfile(round % 2 == 0 ? "hdr" : "paper");
    TreeRequest request;
    request.members = SomeMembers(*fabric, random);
    for (const int type : {0, 1, 2}) {
      request.type.reset();
      if (type > 0) request.type = static_cast<TreeType>(type);
      const absl::StatusOr<TreePlan> plan = PlanTree(snapshot, profile, capacity, request);
      if (!plan.ok()) {
        ASSERT_EQ(type, 2) << plan.status();
        ASSERT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted) << plan.status();
        continue;
      }
      ++planned[type];
      const absl::Status valid = CheckPlan(snapshot, profile, *plan, request, capacity);
      ASSERT_TRUE(valid.ok()) << "round " << round << ", type " << type << ": " << valid;
    }
  }
  EXPECT_EQ(planned[1], rounds);
  EXPECT_GT(planned[2], rounds / 10);
}

}  // namespace
}  // namespace coppice::planner_routes_test
