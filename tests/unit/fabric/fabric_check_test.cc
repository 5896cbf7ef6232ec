// Every promise of fabric.h that CheckFabric verifies, broken once.
#include "tests/support/fabric_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "daemon/fabric/fabric_builder.h"
#include "tests/support/fabrics.h"

namespace coppice {

// Reaches into a copy of a fabric, which no builder makes wrong.
struct FabricPeer {
  explicit FabricPeer(const Fabric& sound) : fabric(sound) {}
  Channel& first_channel(uint32_t vertex) {
    return fabric.channels_[fabric.channel_begin_[vertex]];
  }
  std::vector<Channel>& channels() { return fabric.channels_; }
  std::vector<LinkInfo>& links() { return fabric.links_; }
  std::vector<SwitchInfo>& switches() { return fabric.switches_; }
  std::vector<EndpointInfo>& endpoints() { return fabric.endpoints_; }
  std::vector<uint32_t>& endpoint_part() { return fabric.endpoint_part_; }
  ChannelIndex& port(uint32_t s, uint32_t p) {
    return fabric.port_channel_[fabric.port_begin_[s] + p];
  }
  std::vector<ChannelIndex>& uplinks() { return fabric.uplink_; }
  std::vector<uint32_t>& components() { return fabric.component_; }
  uint32_t& component_count() { return fabric.component_count_; }
  std::vector<std::string>& host_names() { return fabric.host_names_; }
  std::vector<EndpointIndex>& host_endpoints() { return fabric.host_endpoints_; }
  std::vector<BundleIndex>& bundles() { return fabric.bundle_; }
  std::vector<EndpointIndex>& by_port_guid() { return fabric.by_port_guid_; }

  // Gives two links each other's number, everywhere.
  void SwapLinks(uint32_t x, uint32_t y) {
    std::swap(fabric.links_[x], fabric.links_[y]);
    const auto renumber = [=](ChannelIndex& c) {
      const uint32_t l = c.value() / 2;
      if (l == x || l == y) c = ChannelIndex(2 * (x + y - l) + c.value() % 2);
    };
    for (Channel& channel : fabric.channels_) renumber(channel.index);
    for (ChannelIndex& c : fabric.port_channel_) renumber(c);
    for (ChannelIndex& c : fabric.uplink_) renumber(c);
  }

  Fabric fabric;
};

}  // namespace coppice

namespace coppice::fabric_check_test {

namespace {

// S0 - S1 with two hosts each: links 0: S0-n0, 1: S0-n1, 2: S0-S1, 3: S1-n2, 4: S1-n3.
std::string Verdict(const std::function<void(FabricPeer&)>& harm) {
  FabricPeer peer(*Chain(2, 2));
  harm(peer);
  const absl::Status status = CheckFabric(peer.fabric);
  EXPECT_EQ(status.ok(), status.code() != absl::StatusCode::kInternal);
  return std::string(status.message());
}

TEST(CheckFabric, PassesASoundFabric) {
  EXPECT_EQ(Verdict([](FabricPeer&) {}), "");
}

TEST(CheckFabric, NamesABrokenRow) {
  const std::string s0 = "switch 0000000000001000 \"S0\": ",
                    s1 = "switch 0000000000001001 \"S1\": ";
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.first_channel(0).index = ChannelIndex(10); }),
            s0 + "a channel of no link");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.first_channel(0).to = VertexIndex(2); }),
            s0 + "channel 4 is not its link");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.first_channel(0).port = PortNum(9); }),
            s0 + "channel 4 is not its link");
  EXPECT_EQ(Verdict([](FabricPeer& p) { std::swap(p.channels()[1], p.channels()[2]); }),
            s0 + "channels out of order");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.channels()[2] = p.channels()[1]; }),
            s0 + "a port with two cables");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.port(1, 2) = kNoChannel; }),
            s1 + "channel_at() misses a cable");
  EXPECT_EQ(Verdict([](FabricPeer& p) { std::swap(p.port(1, 1), p.port(1, 2)); }),
            s1 + "port 1 has another port's channel");
}

TEST(CheckFabric, NamesABrokenOrderOrLookup) {
  EXPECT_EQ(Verdict([](FabricPeer& p) { std::swap(p.switches()[0], p.switches()[1]); }),
            "switch 0000000000001001 \"S1\": not found by its GUID");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.uplinks()[3] = kNoChannel; }),
            "endpoint n3/1: its uplink is not its cable");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.endpoints()[3].port = PortNum(2); }),
            "endpoint n3/2: its cable is on another port");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.endpoints()[2].adapter = AdapterIndex(3); }),
            "endpoint n3/1: not found by adapter and port");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.by_port_guid()[1] = EndpointIndex(0); }),
            "endpoint n1/1: not found by its port GUID");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.switches()[1].lid = p.switches()[0].lid; }),
            "switch 0000000000001001 \"S1\": has the LID of another of its subnet");
}

TEST(CheckFabric, NamesABrokenLink) {
  EXPECT_EQ(Verdict([](FabricPeer& p) { std::swap(p.links()[1], p.links()[2]); }),
            "switch 0000000000001000 \"S0\": channel 4 is not its link");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.SwapLinks(1, 2); }),
            "link 2: links are not sorted by their ends");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.links().push_back(p.links().back()); }),
            "link 5: each of its channels must be in one row, once");
}

TEST(CheckFabric, NamesABrokenComponentOrHost) {
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.component_count() = 2; }),
            "fabric: 2 components, but cables make 1");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.components()[5] = 1; }),
            "endpoint n3/1: in another component than its cables say");
  EXPECT_EQ(Verdict([](FabricPeer& p) { std::swap(p.host_names()[0], p.host_names()[1]); }),
            "host n1: not found by its name");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.host_endpoints()[1] = EndpointIndex(0); }),
            "endpoint n0/1: listed under another host or twice");
  EXPECT_EQ(Verdict([](FabricPeer& p) { p.bundles()[1] = BundleIndex(0); }),
            "endpoint n1/1: in a bundle of another host or switch");
}

TEST(CheckFabric, NamesASplitBundle) {
  FabricPeer peer(*TwoLevelFatTree(1, 0, 2, /*ports_per_host=*/2));
  EXPECT_TRUE(CheckFabric(peer.fabric).ok());
  peer.bundles()[1] = BundleIndex(9);
  EXPECT_EQ(std::string(CheckFabric(peer.fabric).message()),
            "endpoint n0/2: not in the bundle of its host and switch");
}

TEST(CheckFabric, KnowsEndpointsBackToBack) {
  FabricBuilder builder;
  for (const uint64_t guid : {0x100, 0x200}) {
    AdapterInfo info;
    info.guid = Guid(guid);
    info.port_count = 1;
    ASSERT_TRUE(builder.AddAdapter(info).ok());
  }
  ASSERT_TRUE(builder.AddLink(Guid(0x100), PortNum(1), Guid(0x200), PortNum(1)).ok());
  FabricPeer peer(**builder.Build());
  EXPECT_TRUE(CheckFabric(peer.fabric).ok()) << CheckFabric(peer.fabric);
  peer.uplinks()[0] = ChannelIndex(0);
  EXPECT_EQ(std::string(CheckFabric(peer.fabric).message()),
            "endpoint 0000000000000100/1: its uplink is not its cable");
}

}  // namespace
}  // namespace coppice::fabric_check_test
