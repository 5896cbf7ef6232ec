#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/ib/swept_subnet.h"
#include "tests/support/tier.h"
#include "tests/unit/ib/scripted_subnet.h"

namespace coppice::discovery_test {
namespace {

constexpr uint8_t kHost = 1, kSwitch = 2, kRouter = 3;

absl::StatusOr<SweepResult> Sweep(ScriptedSubnet& subnet, SweepOptions options = {},
                                  const SweepResult* last = nullptr) {
  MadEngine engine(subnet, subnet);
  absl::StatusOr<SubnetRecord> record =
      ReadSubnet(engine, options, last != nullptr ? last->partitions.get() : nullptr);
  if (!record.ok()) return record.status();
  if (last != nullptr)
    FillFromLast(*last->fabric, last->tables.get(), last->partitions.get(),
                 !options.keep_forwarding_tables, *record);
  return AssembleFabric(*std::move(record), options);
}

std::string WhatOf(const SweepResult& result) {
  return absl::StrJoin(result.unanswered, "\n", [](std::string* out, const UnansweredNode& node) {
    absl::StrAppend(out, node.path, ": ", node.what);
  });
}

std::vector<std::string> Descriptions(const Fabric& fabric) {
  std::vector<std::string> all;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    all.push_back(fabric.switch_info(SwitchIndex(s)).description);
  }
  for (uint32_t a = 0; a < fabric.adapter_count(); ++a) {
    all.push_back(fabric.adapter(AdapterIndex(a)).description);
  }
  return all;
}

//   n0 (0) ---1 switch 1 5===5 switch 2 2--- n1 (3)        === two parallel cables
//                 2                   1--- router (4)
//                 +------- n0's second port
class DiscoveryTest : public testing::Test {
 protected:
  DiscoveryTest() {
    subnet_.Add(kHost, 2, "n0 mlx5_0", 1);
    subnet_.Add(kSwitch, 8, "S0", 10);
    subnet_.Add(kSwitch, 8, "S1", 11);
    subnet_.Add(kHost, 1, "n1 mlx5_0", 2);
    subnet_.Add(kRouter, 1, "R", 3);
    subnet_.node(0).ports[2].lid = 4;
    subnet_.Cable(0, 1, 1, 1);
    subnet_.Cable(0, 2, 1, 2);
    subnet_.Cable(1, 5, 2, 5);
    subnet_.Cable(1, 6, 2, 6);
    subnet_.Cable(2, 2, 3, 1);
    subnet_.Cable(2, 1, 4, 1);
    for (const int s : {1, 2}) {
      subnet_.node(s).table.assign(12, 255);
      for (size_t lid = 1; lid < 12; ++lid) {
        subnet_.node(s).table[lid] = static_cast<uint8_t>((lid + s) % 8);
      }
    }
  }
  ScriptedSubnet subnet_;
};

TEST_F(DiscoveryTest, ReadsNodesCablesAddressesAndTables) {
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  const Fabric& fabric = *result->fabric;
  EXPECT_EQ(WhatOf(*result), "");
  EXPECT_EQ(fabric.switch_count(), 2u);
  EXPECT_EQ(fabric.adapter_count(), 3u);
  EXPECT_EQ(fabric.endpoint_count(), 4u);
  EXPECT_EQ(fabric.link_count(), 6u);
  EXPECT_EQ(fabric.component_count(), 1u);
  EXPECT_TRUE(result->has_subnet_manager);
  EXPECT_EQ(result->subnet_manager_lid, Lid(1));
  EXPECT_TRUE(fabric.FindHost("n0").has_value());
  const std::optional<EndpointIndex> second = fabric.FindEndpoint(Guid(0x1000), PortNum(2));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(fabric.endpoint(*second).lid, Lid(4));
  EXPECT_EQ(fabric.endpoint(*second).port_guid, Guid(0x1002));
  EXPECT_EQ(fabric.adapter(AdapterIndex(2)).kind, AdapterKind::kRouter);
  EXPECT_EQ(ToString(fabric.link(LinkIndex(0)).rate), "4xQDR");
  ASSERT_NE(result->tables, nullptr);
  for (const int s : {1, 2}) {
    const SwitchIndex index = *fabric.FindSwitch(Guid(subnet_.node(s).guid));
    EXPECT_EQ(result->tables->row(index), absl::MakeConstSpan(subnet_.node(s).table));
  }
}

TEST_F(DiscoveryTest, WithoutLidsThereIsNoManagerAndNoTable) {
  for (int n = 0; n < 5; ++n) {
    for (ScriptedSubnet::Port& port : subnet_.node(n).ports) port.lid = 0;
  }
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->has_subnet_manager);
  EXPECT_EQ(result->subnet_manager_lid, Lid(0));
  EXPECT_EQ(result->tables, nullptr);
  EXPECT_EQ(result->fabric->link_count(), 6u);
}

// Wherever it is: at the local port, at a switch, at the second port of an adapter.
TEST_F(DiscoveryTest, ASubnetManagerIsAskedAtItsOwnPort) {
  for (const auto& [node, port] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 0}, {2, 0}, {0, 2}, {4, 1}}) {
    subnet_.manager_lid = subnet_.node(node).ports[port].lid;
    subnet_.manages = true;
    absl::StatusOr<SweepResult> result = Sweep(subnet_);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->is_subnet_manager_silent) << node << " " << port;
    subnet_.manages = false;
    result = Sweep(subnet_);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->has_subnet_manager && result->is_subnet_manager_silent)
        << node << " " << port;
    EXPECT_EQ(WhatOf(*result), "");  // the sweep is complete all the same
    EXPECT_NE(result->tables, nullptr);
  }
}

TEST_F(DiscoveryTest, ASubnetManagerThatIsNowhereIsSilent) {
  subnet_.manager_lid = 4711;
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->is_subnet_manager_silent);
}

TEST_F(DiscoveryTest, ALinkThatIsDownIsUnavailable) {
  subnet_.node(0).ports[1].peer = -1;
  const absl::Status status = Sweep(subnet_).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "port 1")) << status;
}

TEST_F(DiscoveryTest, ALocalNodeThatLiesIsUnavailable) {
  subnet_.node(0).type = 9;
  const absl::Status status = Sweep(subnet_).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "unknown node type 9")) << status;
}

TEST_F(DiscoveryTest, ASwitchThatClaimsMorePortsIsReadAllTheSame) {
  subnet_.node(2).told_ports = 254;
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->fabric->link_count(), 6u);
  EXPECT_EQ(result->unanswered.size(), 254u - 8u);
  EXPECT_TRUE(absl::StrContains(WhatOf(*result), "PortInfo of port 9: refused")) << WhatOf(*result);
  for (const UnansweredNode& node : result->unanswered) EXPECT_FALSE(node.is_silent) << node.what;
}

TEST_F(DiscoveryTest, ASwitchThatClaimsFewerPortsLosesTheRest) {
  subnet_.node(2).told_ports = 4;  // its cables to S0 are at 5 and 6
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->fabric->switch_count(), 1u);
  EXPECT_TRUE(absl::StrContains(WhatOf(*result), "local port 5 of 4")) << WhatOf(*result);
}

TEST_F(DiscoveryTest, TwoNodesOfOneGuidAreNoted) {
  subnet_.node(3).guid = subnet_.node(1).guid;
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(absl::StrContains(WhatOf(*result), "two nodes with one GUID?")) << WhatOf(*result);
}

TEST_F(DiscoveryTest, LidsGivenTwiceOrOutOfRangeAreCleared) {
  subnet_.node(3).ports[1].lid = 10;
  subnet_.node(4).ports[1].lid = 0xC001;
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->unanswered.size(), 2u) << WhatOf(*result);
  EXPECT_TRUE(absl::StrContains(WhatOf(*result), "LID 10 is also that of")) << WhatOf(*result);
  EXPECT_TRUE(absl::StrContains(WhatOf(*result), "not a unicast LID")) << WhatOf(*result);
  for (const UnansweredNode& node : result->unanswered) EXPECT_FALSE(node.is_silent) << node.what;
  EXPECT_EQ(result->fabric->endpoint_count(), 4u);
}

TEST_F(DiscoveryTest, APortGuidGivenTwiceIsDropped) {
  subnet_.on_reply = [&](int node, int, Mad& reply) {
    if (node == 3 && reply[17] == 0x11) std::fill_n(reply.begin() + 64 + 20, 6, 0);
    if (node == 3 && reply[17] == 0x11) reply[64 + 26] = 0x10, reply[64 + 27] = 0x01;
    return 1;
  };
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(absl::StrContains(WhatOf(*result), "is also another port's")) << WhatOf(*result);
  EXPECT_EQ(result->fabric->endpoint_count(), 3u);
  EXPECT_EQ(result->fabric->link_count(), 5u);
}

TEST_F(DiscoveryTest, ASilentSwitchHidesWhatIsBehindIt) {
  subnet_.on_reply = [](int node, int, Mad&) { return node == 2 ? 0 : 1; };
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->fabric->switch_count(), 1u);
  ASSERT_EQ(result->unanswered.size(), 2u);
  EXPECT_EQ(result->unanswered[0].what, "NodeInfo");
  EXPECT_EQ(result->unanswered[0].neighbour, Guid(subnet_.node(1).guid));
  EXPECT_EQ(result->unanswered[0].path, "0,1,5");
  EXPECT_EQ(result->unanswered[0].neighbour_port, PortNum(5));
}

TEST_F(DiscoveryTest, ASilentNeighbourIsUnavailableRatherThanAnEmptyFabric) {
  subnet_.on_reply = [](int node, int, Mad&) { return node == 1 ? 0 : 1; };
  const absl::Status status = Sweep(subnet_).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "other end of the local port 1")) << status;
}

TEST_F(DiscoveryTest, ATableBlockThatIsMissingLeavesItsLidsWithoutRoute) {
  subnet_.node(2).table.assign(200, 5);
  subnet_.on_reply = [](int node, int, Mad& reply) {
    return node == 2 && reply[17] == 0x19 && reply[23] == 2 ? 0 : 1;
  };
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(WhatOf(*result), "0,1,5: LinearForwardingTable block 2");
  const SwitchIndex s = *result->fabric->FindSwitch(Guid(subnet_.node(2).guid));
  EXPECT_EQ(result->tables->port(s, Lid(127)), 5);
  EXPECT_EQ(result->tables->port(s, Lid(128)), ForwardingTables::kNoRoute);
  EXPECT_EQ(result->tables->port(s, Lid(191)), ForwardingTables::kNoRoute);
  EXPECT_EQ(result->tables->port(s, Lid(192)), 5);
}

TEST_F(DiscoveryTest, WhatANodeIsSilentAboutIsAsTheLastSweepSawIt) {
  subnet_.node(2).table.assign(200, 5);
  const absl::StatusOr<SweepResult> last = Sweep(subnet_);
  ASSERT_TRUE(last.ok()) << last.status();
  int attribute = 0x10;
  subnet_.on_reply = [&](int node, int, Mad& reply) {
    return node >= 2 && reply[17] == attribute && (attribute != 0x19 || reply[23] == 2) ? 0 : 1;
  };
  for (const int silent : {0x10, 0x12, 0x19}) {  // NodeDescription, SwitchInfo, a block
    attribute = silent;
    const absl::StatusOr<SweepResult> result = Sweep(subnet_, {}, &*last);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->unanswered.empty()) << silent;
    EXPECT_EQ(Descriptions(*last->fabric), Descriptions(*result->fabric)) << silent;
    EXPECT_EQ(*last->tables, *result->tables) << silent;
  }
  subnet_.node(2).table.assign(201, 6);  // another one altogether
  const absl::StatusOr<SweepResult> longer = Sweep(subnet_, {}, &*last);
  ASSERT_TRUE(longer.ok()) << longer.status();
  const SwitchIndex s = *longer->fabric->FindSwitch(Guid(subnet_.node(2).guid));
  EXPECT_EQ(longer->tables->port(s, Lid(127)), 6);
  EXPECT_EQ(longer->tables->port(s, Lid(128)), ForwardingTables::kNoRoute);
}

// Of each adapter port, of a switch's port 0, and of the ports where a switch looks.
TEST_F(DiscoveryTest, ReadsTablesOfPartitions) {
  subnet_.node(0).ports[1].keys = {0xFFFF, 0x8001, 0, 0x0002};
  subnet_.node(0).ports[2].keys = {0x7FFF, 0x0001};
  subnet_.node(3).partition_capacity = 100;
  subnet_.node(3).ports[1].keys.assign(80, 0);  // with gaps, one of a whole block
  for (size_t i = 64; i < 80; i += 3) {
    subnet_.node(3).ports[1].keys[i] = static_cast<uint16_t>(0x8001 + i);
  }
  subnet_.node(1).ports[0].keys = {0xFFFF, 0x8002};
  subnet_.node(1).ports[1].enforces_inbound = true;
  subnet_.node(1).ports[1].keys = {0xFFFF, 0x8001};
  subnet_.node(2).ports[2].enforces_inbound = subnet_.node(2).ports[2].enforces_outbound = true;
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(WhatOf(*result), "");
  const Partitions& partitions = *result->partitions;
  EXPECT_EQ(partitions.port_count(), 6U);
  EXPECT_EQ(partitions.TableOf(Guid(0x1001)), subnet_.node(0).ports[1].keys);
  EXPECT_EQ(partitions.TableOf(Guid(0x1002)), subnet_.node(0).ports[2].keys);
  EXPECT_EQ(partitions.TableOf(Guid(0x4001)).size(), 80U);
  EXPECT_EQ(partitions.IndexOf(Guid(0x4001), PartitionNum(80)), 79);
  EXPECT_EQ(partitions.TableOf(Guid(0x2000)), subnet_.node(1).ports[0].keys);
  EXPECT_EQ(partitions.Of(Guid(0x1001), PartitionNum(1)), Membership::kFull);
  EXPECT_EQ(partitions.Of(Guid(0x1002), PartitionNum(1)), Membership::kLimited);
  EXPECT_TRUE(partitions.Passes(Guid(0x2000), PortNum(1), PartitionNum(1), /*outbound=*/false));
  EXPECT_FALSE(partitions.Passes(Guid(0x2000), PortNum(1), PartitionNum(2), /*outbound=*/false));
  EXPECT_TRUE(partitions.Passes(Guid(0x2000), PortNum(1), PartitionNum(2), /*outbound=*/true));
  EXPECT_FALSE(partitions.Passes(Guid(0x3000), PortNum(2), PartitionNum(2), /*outbound=*/true));
  EXPECT_EQ(partitions.EnforcedAt(Guid(0x3000), PortNum(1)), nullptr);
}

TEST_F(DiscoveryTest, APortThatIsSilentAboutItsPartitionsHasThoseOfTheLastSweep) {
  subnet_.node(3).ports[1].keys = {0xFFFF, 0x8001};
  subnet_.node(1).ports[1].enforces_inbound = true;
  const absl::StatusOr<SweepResult> first = Sweep(subnet_);
  ASSERT_TRUE(first.ok()) << first.status();
  subnet_.on_reply = [](int node, int, Mad& reply) {
    return (node == 3 || node == 1) && reply[17] == 0x16 ? 0 : 1;
  };
  const absl::StatusOr<SweepResult> second = Sweep(subnet_, {}, &*first);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second->partitions, *first->partitions);
  EXPECT_THAT(WhatOf(*second), testing::HasSubstr("P_KeyTable block 0"));
  // One that refuses keeps them, too; of one that never told them nothing is known.
  subnet_.on_reply = [](int node, int, Mad& reply) {
    if (node == 3 && reply[17] == 0x16) reply[5] = 0x1C;
    return 1;
  };
  const absl::StatusOr<SweepResult> third = Sweep(subnet_, {}, &*first);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(*third->partitions, *first->partitions);
  EXPECT_THAT(WhatOf(*third), testing::HasSubstr("P_KeyTable block 0: refused"));
  const absl::StatusOr<SweepResult> alone = Sweep(subnet_);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_FALSE(alone->partitions->IsKnown(Guid(0x4001)));
  EXPECT_EQ(alone->partitions->port_count(), first->partitions->port_count() - 1);
}

// Port 0's capacity is not that of the ports that look.
TEST_F(DiscoveryTest, TablesOfSwitchPortsThatLookAreReadToTheirOwnCapacity) {
  subnet_.node(1).partition_capacity = 4;
  subnet_.node(1).enforced_capacity = 64;
  subnet_.node(1).ports[1].enforces_outbound = true;
  subnet_.node(1).ports[1].keys.assign(40, 0);
  subnet_.node(1).ports[1].keys[39] = 0x8001;
  const absl::StatusOr<SweepResult> first = Sweep(subnet_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(WhatOf(*first), "");
  ASSERT_NE(first->partitions->EnforcedAt(Guid(0x2000), PortNum(1)), nullptr);
  EXPECT_TRUE(first->partitions->Passes(Guid(0x2000), PortNum(1), PartitionNum(1), true));
  EXPECT_TRUE(first->partitions->IsKnown(Guid(0x2000)));
  // Unless it says how many they hold, nothing of them is taken for all.
  subnet_.on_reply = [](int node, int, Mad& reply) {
    return node == 1 && reply[17] == 0x12 ? 0 : 1;
  };
  const absl::StatusOr<SweepResult> alone = Sweep(subnet_);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->partitions->EnforcedAt(Guid(0x2000), PortNum(1)), nullptr);
  EXPECT_TRUE(alone->partitions->IsKnown(Guid(0x2000)));
}

// Who was silent at the last sweep is read, and nobody else.
TEST_F(DiscoveryTest, InHasteTablesOfPartitionsAreReadOfPortsThatComeBack) {
  subnet_.node(3).ports[1].keys = {0xFFFF, 0x8001};
  subnet_.on_reply = [](int node, int, Mad&) { return node == 3 ? 0 : 1; };
  const absl::StatusOr<SweepResult> without = Sweep(subnet_);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_FALSE(without->fabric->FindEndpoint(Guid(0x4001)));
  std::set<int> asked;
  subnet_.on_reply = [&](int node, int, Mad& reply) {
    if (reply[17] == 0x16) asked.insert(node);
    return 1;
  };
  SweepOptions haste;
  haste.read_forwarding_tables = false;
  haste.keep_forwarding_tables = true;
  const absl::StatusOr<SweepResult> back = Sweep(subnet_, haste, &*without);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(asked, std::set<int>{3});
  EXPECT_EQ(back->partitions->TableOf(Guid(0x4001)), subnet_.node(3).ports[1].keys);
  EXPECT_EQ(back->partitions->port_count(), without->partitions->port_count() + 1);
  // Silent once more, it has not none, but any.
  subnet_.on_reply = [](int node, int, Mad& reply) {
    return node == 3 && reply[17] == 0x16 ? 0 : 1;
  };
  const absl::StatusOr<SweepResult> unknown = Sweep(subnet_, haste, &*without);
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  EXPECT_TRUE(unknown->fabric->FindEndpoint(Guid(0x4001)));
  EXPECT_FALSE(unknown->partitions->IsKnown(Guid(0x4001)));
}

TEST_F(DiscoveryTest, InHasteTablesAreThoseOfTheLastSweep) {
  subnet_.node(2).table.assign(200, 5);
  const absl::StatusOr<SweepResult> last = Sweep(subnet_);
  ASSERT_TRUE(last.ok()) << last.status();
  subnet_.node(2).table.assign(200, 6);
  subnet_.on_reply = [](int, int, Mad& reply) {
    EXPECT_NE(0x12, reply[17]);
    EXPECT_NE(0x19, reply[17]);
    return 1;
  };
  SweepOptions haste;
  haste.read_forwarding_tables = false;
  haste.keep_forwarding_tables = true;
  const absl::StatusOr<SweepResult> result = Sweep(subnet_, haste, &*last);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*last->tables, *result->tables);
}

// Named by what it is, and by a switch that leads to it rather than a host.
TEST_F(DiscoveryTest, ASwitchThatAnswersInPartIsNamed) {
  subnet_.on_reply = [](int node, int, Mad& reply) {
    return node == 1 && reply[17] == 0x15 && reply[23] == 7 ? 0 : 1;
  };
  const absl::StatusOr<SweepResult> result = Sweep(subnet_);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->unanswered.size(), 1u) << WhatOf(*result);
  EXPECT_EQ(result->unanswered[0].what, "PortInfo of port 7");
  EXPECT_EQ(result->unanswered[0].node, Guid(subnet_.node(1).guid));
  EXPECT_EQ(result->unanswered[0].neighbour, Guid(subnet_.node(2).guid));
  EXPECT_TRUE(result->unanswered[0].is_silent);
}

TEST(Discovery, StopsWhereADirectedRouteEnds) {
  ScriptedSubnet subnet;
  subnet.Add(kHost, 1, "n0");
  for (int i = 1; i <= 80; ++i) {
    subnet.Add(kSwitch, 2, absl::StrCat("S", i));
    subnet.Cable(i - 1, i == 1 ? 1 : 2, i, 1);
  }
  const absl::StatusOr<SweepResult> result = Sweep(subnet);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->fabric->switch_count(), 63u);
  ASSERT_EQ(result->unanswered.size(), 1u);
  EXPECT_TRUE(absl::StrContains(WhatOf(*result), "further away")) << WhatOf(*result);
}

// Somebody who looks at the subnet in between reads all of it by the same engine.
TEST(Discovery, BetweenGroupsOfTablesAnybodyHasTheEngine) {
  constexpr int kLeaves = 130;
  ScriptedSubnet subnet;
  subnet.Add(kHost, 1, "n0", 1);
  subnet.Add(kSwitch, kLeaves + 1, "root", 2);
  subnet.Cable(0, 1, 1, kLeaves + 1);
  for (int i = 1; i <= kLeaves; ++i) {
    subnet.Add(kSwitch, 1, absl::StrCat("S", i), static_cast<uint16_t>(2 + i));
    subnet.Cable(1, i, 1 + i, 1);
  }
  for (int s = 1; s <= 1 + kLeaves; ++s) subnet.node(s).table.assign(200, 1);
  std::set<int> read;  // whose tables were
  subnet.on_reply = [&](int node, int, Mad& reply) {
    if (reply[17] == 0x19) read.insert(node);
    return 1;
  };
  MadEngine engine(subnet, subnet);
  std::vector<size_t> looks;  // at how many tables each came
  SweepOptions options;
  options.between = [&] {
    looks.push_back(read.size());
    SweepOptions look;
    look.read_forwarding_tables = false;
    const absl::StatusOr<SubnetRecord> seen = ReadSubnet(engine, look);
    ASSERT_TRUE(seen.ok()) << seen.status();
    EXPECT_EQ(seen->nodes.size(), 2u + kLeaves);
  };
  absl::StatusOr<SubnetRecord> record = ReadSubnet(engine, options);
  ASSERT_TRUE(record.ok()) << record.status();
  // After the tables of partitions, and more than once after some and before all of the others.
  ASSERT_GT(looks.size(), 2u);
  EXPECT_EQ(looks[0], 0u);
  for (size_t i = 1; i < looks.size(); ++i) {
    EXPECT_GT(looks[i], looks[i - 1]);
    EXPECT_LT(looks[i], 1u + kLeaves);
  }
  EXPECT_EQ(read.size(), 1u + kLeaves);
  EXPECT_TRUE(record->unanswered.empty());
  for (size_t n = 0; n < record->nodes.size(); ++n) {
    EXPECT_EQ(record->tables[n].ports.size(), record->nodes[n].info.is_switch() ? 200u : 0u);
  }
}

TEST(Discovery, TwoHostsBackToBackAndALocalSwitch) {
  ScriptedSubnet pair;
  pair.Add(kHost, 1, "a", 1);
  pair.Add(kHost, 1, "b", 2);
  pair.Cable(0, 1, 1, 1);
  const absl::StatusOr<SweepResult> two = Sweep(pair);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->fabric->endpoint_count(), 2u);
  EXPECT_EQ(two->fabric->link_count(), 1u);

  ScriptedSubnet local;
  local.Add(kSwitch, 4, "S", 9);
  local.Add(kHost, 1, "a", 1);
  local.Cable(0, 3, 1, 1);
  local.Cable(0, 1, 0, 2);  // a loopback cable
  const absl::StatusOr<SweepResult> from_switch = Sweep(local);
  ASSERT_TRUE(from_switch.ok()) << from_switch.status();
  EXPECT_EQ(WhatOf(*from_switch), "");
  EXPECT_EQ(from_switch->fabric->switch_count(), 1u);
  EXPECT_EQ(from_switch->fabric->link_count(), 2u);
}

// Random fabrics, against a walk over the same tables; then the same with answers that are lost,
// doubled and overtaken; then with random bytes changed: nothing may crash or hang.
class RandomSubnets : public testing::Test {
 protected:
  void Build(ScriptedSubnet& subnet) {
    const int switches = 1 + static_cast<int>(random_() % 12);
    subnet.Add(kHost, 2, "n0 mlx5_0", 1);
    for (int s = 1; s <= switches; ++s) {
      subnet.Add(kSwitch, 12, absl::StrCat("S", s), static_cast<uint16_t>(1 + 3 * s));
      subnet.Cable(s == 1 ? 0 : 1 + static_cast<int>(random_() % (s - 1)), s == 1 ? 1 : FreePort(s),
                   s, 1);
    }
    cables_ = switches;
    const int extra = static_cast<int>(random_() % 20);
    for (int i = 0; i < extra; ++i) {
      const int a = 1 + static_cast<int>(random_() % switches);
      const int b = 1 + static_cast<int>(random_() % switches);
      for (int p = 1; p <= 12; ++p) {
        const int q = 1 + static_cast<int>(random_() % 12);
        if (subnet.node(a).ports[p].peer >= 0 || subnet.node(b).ports[q].peer >= 0) continue;
        if (a == b && p == q) continue;
        subnet.Cable(a, p, b, q);
        ++cables_;
        break;
      }
    }
  }
  int FreePort(int s) { return s > 12 ? 12 : s; }  // of any earlier switch: used by switch s only

  std::mt19937_64 random_{TestSeed()};
  int cables_ = 0;
};

TEST_F(RandomSubnets, AreReadWholeOverALossyNetwork) {
  const int rounds = FullTier() ? 2000 : 200;
  for (int round = 0; round < rounds; ++round) {
    ScriptedSubnet subnet;
    Build(subnet);
    if (round % 2 == 1) {
      subnet.reorder = true;
      subnet.gives_back = round % 4 == 1;
      subnet.on_reply = [&](int, int, Mad&) {
        return random_() % 50 == 0 ? 0 : 1 + static_cast<int>(random_() % 20 == 0);
      };
    }
    const absl::StatusOr<SweepResult> result = Sweep(subnet);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(WhatOf(*result), "") << "round " << round;
    EXPECT_EQ(result->fabric->link_count(), static_cast<uint32_t>(cables_)) << "round " << round;
  }
}

TEST_F(RandomSubnets, SurviveNodesThatAnswerNonsense) {
  const int rounds = FullTier() ? 5000 : 500;
  for (int round = 0; round < rounds; ++round) {
    ScriptedSubnet subnet;
    Build(subnet);
    const uint64_t rate = 2 + random_() % 30;
    subnet.on_reply = [&](int, int, Mad& reply) {
      if (random_() % rate == 0) {
        for (int n = 0; n < 3; ++n) reply[64 + random_() % 64] = static_cast<uint8_t>(random_());
      }
      return 1;
    };
    const absl::Status status = Sweep(subnet).status();
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status << " round " << round;
  }
}

}  // namespace
}  // namespace coppice::discovery_test
