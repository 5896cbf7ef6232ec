#include "daemon/fabric/fabric_builder.h"

#include <gtest/gtest.h>

#include <vector>

#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/fabric/routes.h"
#include "tests/support/fabric_check.h"

namespace coppice::fabric_builder_test {
namespace {

using ::testing::Test;

SwitchInfo Switch(uint64_t guid, uint8_t ports, uint16_t lid = 0) {
  SwitchInfo info;
  info.guid = Guid(guid);
  info.port_count = ports;
  info.lid = Lid(lid);
  return info;
}

AdapterInfo Adapter(uint64_t guid, uint8_t ports, std::string description) {
  AdapterInfo info;
  info.guid = Guid(guid);
  info.port_count = ports;
  info.description = std::move(description);
  return info;
}

constexpr LinkRate kHdr{4, LaneSpeed::kHdr};

//   n1/1 -- s10 ==== s20 -- n1/2 (same adapter)
//            |         |
//   n2 ------+         +--- n3
class SmallFabric : public Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(builder_.AddSwitch(Switch(0x20, 8, 2)).ok());
    ASSERT_TRUE(builder_.AddSwitch(Switch(0x10, 8, 1)).ok());
    ASSERT_TRUE(builder_.AddAdapter(Adapter(0x300, 1, "n3 mlx5_0")).ok());
    ASSERT_TRUE(builder_.AddAdapter(Adapter(0x100, 2, "n1 mlx5_0")).ok());
    ASSERT_TRUE(builder_.AddAdapter(Adapter(0x200, 1, "n2 mlx5_0")).ok());
    Cable(0x20, 7, 0x100, 2);
    Cable(0x10, 3, 0x20, 3);
    Cable(0x20, 4, 0x10, 4);
    Cable(0x100, 1, 0x10, 1);
    Cable(0x200, 1, 0x10, 2);
    Cable(0x20, 8, 0x300, 1);
  }
  void Cable(uint64_t a, uint8_t a_port, uint64_t b, uint8_t b_port) {
    ASSERT_TRUE(builder_.AddLink(Guid(a), PortNum(a_port), Guid(b), PortNum(b_port), kHdr).ok());
  }
  FabricBuilder builder_;
};

TEST_F(SmallFabric, IndexesEverything) {
  const auto built = builder_.Build();
  ASSERT_TRUE(built.ok()) << built.status();
  const Fabric& fabric = **built;
  EXPECT_EQ(fabric.switch_count(), 2);
  EXPECT_EQ(fabric.endpoint_count(), 4);
  EXPECT_EQ(fabric.host_count(), 3);
  EXPECT_EQ(fabric.link_count(), 6);
  EXPECT_EQ(fabric.component_count(), 1);
  const SwitchIndex s10 = fabric.FindSwitch(Guid(0x10)).value();
  EXPECT_EQ(s10, SwitchIndex(0));
  EXPECT_EQ(fabric.switch_channels(s10).size(), 2);
  EXPECT_EQ(fabric.endpoint_channels(s10).size(), 2);
  EXPECT_EQ(FindLid(fabric, Lid(2)), fabric.Vertex(SwitchIndex(1)));
  EXPECT_EQ(FindLid(fabric, Lid(9)), std::nullopt);

  const EndpointIndex second = fabric.FindEndpoint(Guid(0x100), PortNum(2)).value();
  EXPECT_EQ(fabric.attached_switch(second), fabric.FindSwitch(Guid(0x20)));
  EXPECT_EQ(fabric.FindEndpoint(Guid(0x102)), second);  // node GUID + port where none is stated
  const HostIndex n1 = fabric.FindHost("n1").value();
  EXPECT_EQ(fabric.endpoints_of_host(n1).size(), 2);

  const ChannelIndex up = fabric.channel_at(s10, PortNum(4));
  ASSERT_NE(up, kNoChannel);
  EXPECT_EQ(fabric.channel_from(up), fabric.Vertex(s10));
  EXPECT_EQ(fabric.channel_to(up), VertexIndex(1));
  EXPECT_EQ(fabric.channel_from_port(up), PortNum(4));
  EXPECT_EQ(fabric.channel_at(s10, PortNum(8)), kNoChannel);
  EXPECT_EQ(fabric.channel_at(s10, PortNum(200)), kNoChannel);
  EXPECT_FLOAT_EQ(fabric.capacity_gbps(up), 200);
  EXPECT_EQ(fabric.WithVersion(7)->version(), 7);
}

TEST_F(SmallFabric, TakesTheSameCableFromBothEnds) {
  EXPECT_TRUE(builder_.AddLink(Guid(0x20), PortNum(3), Guid(0x10), PortNum(3)).ok());
  EXPECT_EQ((*builder_.Build())->link_count(), 6);
}

TEST_F(SmallFabric, RefusesContradictions) {
  const auto message = [](const absl::Status& status) { return std::string(status.message()); };
  EXPECT_EQ(message(builder_.AddSwitch(Switch(0x10, 4))),
            "node 0000000000000010 appears twice: node GUIDs must be unique");
  EXPECT_EQ(message(builder_.AddLink(Guid(0x10), PortNum(1), Guid(0x20), PortNum(1))),
            "port 1 of node 0000000000000010 is cabled twice: to port 1 of node 0000000000000100 "
            "and to port 1 of node 0000000000000020");
  EXPECT_EQ(message(builder_.AddLink(Guid(0x10), PortNum(9), Guid(0x20), PortNum(1))),
            "port 9 of node 0000000000000010 does not exist: the node has ports 1 to 8");
  EXPECT_EQ(message(builder_.AddLink(Guid(0x11), PortNum(1), Guid(0x20), PortNum(1))),
            "node 0000000000000011 is named by a cable but is not in the fabric");
  EXPECT_EQ(message(builder_.AddLink(Guid(0x10), PortNum(5), Guid(0x10), PortNum(5))),
            "port 5 of node 0000000000000010 is cabled to itself: remove the line");
}

TEST_F(SmallFabric, RefusesDuplicatePortGuidsAndLids) {
  ASSERT_TRUE(builder_.SetAdapterPort(Guid(0x200), PortNum(1), Guid(0x999), Lid(5)).ok());
  ASSERT_TRUE(builder_.SetAdapterPort(Guid(0x300), PortNum(1), Guid(0x999), Lid(6)).ok());
  const auto built = builder_.Build();
  EXPECT_EQ(built.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(built.status().message().find("port GUID 0000000000000999 appears twice"),
            std::string::npos);
}

TEST_F(SmallFabric, RefusesALidThatTwoNodesHave) {
  ASSERT_TRUE(builder_.SetAdapterPort(Guid(0x200), PortNum(1), Guid(0x201), Lid(2)).ok());
  EXPECT_EQ(std::string(builder_.Build().status().message()),
            "LID 2 appears twice in one subnet: on switch 0000000000000020 \"\" and on endpoint "
            "n2/1");
}

TEST(FabricBuilder, TakesEndpointsBackToBack) {
  FabricBuilder builder;
  ASSERT_TRUE(builder.AddAdapter(Adapter(0x100, 1, "a mlx5_0")).ok());
  ASSERT_TRUE(builder.AddAdapter(Adapter(0x200, 1, "b mlx5_0")).ok());
  ASSERT_TRUE(builder.AddLink(Guid(0x100), PortNum(1), Guid(0x200), PortNum(1), kHdr).ok());
  const auto fabric = builder.Build();
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  const VertexIndex a(0), b(1);
  EXPECT_EQ((*fabric)->attached_switch(EndpointIndex(0)), std::nullopt);
  EXPECT_EQ((*fabric)->uplink(EndpointIndex(0)), kNoChannel);
  EXPECT_EQ((*fabric)->channels(a).front().to, b);
  EXPECT_EQ((*fabric)->component_count(), 1);
  const auto routes = Routes::ShortestPaths(*fabric);
  std::vector<ChannelIndex> path;
  ASSERT_TRUE(routes->Append(b, a, path).ok());
  EXPECT_EQ(path, std::vector<ChannelIndex>{ChannelIndex(1)});
  EXPECT_EQ(routes->distances().Hops(a, b), 1);
  EXPECT_EQ(DeriveHierarchy(**fabric)->levels.front().group_count, 2);
}

TEST(FabricBuilder, BundlesAHostsPortsBySwitch) {
  // n0 has an adapter with ports on both switches and another with one on each.
  FabricBuilder builder;
  for (const uint64_t guid : {0x10, 0x20}) ASSERT_TRUE(builder.AddSwitch(Switch(guid, 8)).ok());
  const char* const names[] = {"n0 mlx5_0", "n0 mlx5_1", "n1 mlx5_0"};
  for (uint8_t i = 0; i < 3; ++i) {
    const Guid guid(0x100 * (i + 1));
    ASSERT_TRUE(builder.AddAdapter(Adapter(guid.value(), 2, names[i])).ok());
    for (uint8_t port = 1; port <= 2; ++port) {
      ASSERT_TRUE(builder
                      .AddLink(guid, PortNum(port), Guid(port == 1 ? 0x10 : 0x20),
                               PortNum(static_cast<uint8_t>(i + 1)), kHdr)
                      .ok());
    }
  }
  const auto fabric = builder.Build();
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  std::vector<uint32_t> bundles;
  for (uint32_t e = 0; e < 6; ++e) bundles.push_back((*fabric)->bundle(EndpointIndex(e)).value());
  EXPECT_EQ(bundles, (std::vector<uint32_t>{0, 1, 0, 1, 2, 3}));
  EXPECT_TRUE(CheckFabric(**fabric).ok()) << CheckFabric(**fabric);
}

// Two ports of one host back to back: a link, as between any two.
TEST(FabricBuilder, TakesPortsOfOneHostBackToBack) {
  FabricBuilder builder;
  ASSERT_TRUE(builder.AddAdapter(Adapter(0x100, 2, "a mlx5_0")).ok());
  ASSERT_TRUE(builder.AddLink(Guid(0x100), PortNum(1), Guid(0x100), PortNum(2), kHdr).ok());
  const auto fabric = builder.Build();
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  const auto routes = Routes::ShortestPaths(*fabric);
  EXPECT_EQ(*routes->Length(VertexIndex(0), VertexIndex(1)), 1U);
  EXPECT_EQ(routes->distances().Hops(VertexIndex(0), VertexIndex(1)), 1U);
  EXPECT_TRUE(CheckFabric(**fabric).ok()) << CheckFabric(**fabric);
}

TEST(FabricBuilder, DoesNotMergeHostsWithEqualDescriptions) {
  FabricBuilder builder;
  ASSERT_TRUE(builder.AddSwitch(Switch(0x10, 8)).ok());
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(builder.AddAdapter(Adapter(0x100 * i, 1, i < 3 ? "n1 HCA-1" : "n1 HCA-2")).ok());
    ASSERT_TRUE(
        builder.AddLink(Guid(0x100 * i), PortNum(1), Guid(0x10), PortNum(static_cast<uint8_t>(i)))
            .ok());
  }
  const auto fabric = builder.Build();
  ASSERT_TRUE(fabric.ok());
  EXPECT_EQ((*fabric)->host_count(), 3);
  EXPECT_TRUE((*fabric)->FindHost("n1#0000000000000100").has_value());
  EXPECT_TRUE((*fabric)->FindHost("n1").has_value());  // the one with HCA-2
}

TEST(FabricBuilder, TakesAnEmptyFabric) {
  const auto fabric = FabricBuilder().Build();
  ASSERT_TRUE(fabric.ok());
  EXPECT_EQ((*fabric)->vertex_count(), 0);
}

TEST(SplitNodeDescription, KnowsDevices) {
  using Parts = std::pair<absl::string_view, absl::string_view>;
  EXPECT_EQ(SplitNodeDescription("node17 mlx5_0"), Parts("node17", "mlx5_0"));
  EXPECT_EQ(SplitNodeDescription("bonobo020 HCA-1"), Parts("bonobo020", "HCA-1"));
  EXPECT_EQ(SplitNodeDescription("node17"), Parts("node17", ""));
  EXPECT_EQ(SplitNodeDescription("MT25408 ConnectX Mellanox Technologies"),
            Parts("MT25408 ConnectX Mellanox Technologies", ""));
  EXPECT_EQ(SplitNodeDescription(""), Parts("", ""));
}

}  // namespace
}  // namespace coppice::fabric_builder_test
