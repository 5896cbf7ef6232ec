// Live discovery against the reference tools, on real management packets and real routing.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/fabric/routes.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/system/live_subnet.h"
#include "tests/system/reference_text.h"

namespace coppice::live_discovery_test {
namespace {

class LiveDiscovery : public LiveSubnet {
 protected:
  void ExpectGraphOfIbnetdiscover(const Fabric& fabric) {
    const absl::StatusOr<std::string> text = subnet_->Run({"ibnetdiscover"});
    ASSERT_TRUE(text.ok()) << text.status();
    const Lines expected = DescribeIbnetdiscover(*text);
    ASSERT_GE(expected.size(), fabric.vertex_count());
    EXPECT_EQ(Difference(expected, DescribeFabric(fabric)), "");
  }

  void ExpectTablesOfDumpLfts(const SweepResult& result) {
    ASSERT_NE(result.tables, nullptr);
    // Without what it says of each LID's owner: 500 MB on the large fabric.
    const absl::StatusOr<std::string> text =
        subnet_->Run({"sh", "-c", "dump_lfts | sed 's/ : .*//'"}, absl::Minutes(5));
    ASSERT_TRUE(text.ok()) << text.status();
    const Lines expected = DescribeDumpLfts(*text);
    ASSERT_GT(expected.size(), result.fabric->switch_count());
    EXPECT_EQ(Difference(expected, DescribeTables(*result.fabric, *result.tables)), "");
  }

  // Follows the tables from the switch of `from` to `to`.
  static std::vector<std::string> SwitchHops(const SweepResult& result, EndpointIndex from,
                                             EndpointIndex to) {
    const Fabric& fabric = *result.fabric;
    std::vector<std::string> hops;
    VertexIndex at = fabric.Vertex(*fabric.attached_switch(from));
    while (fabric.IsSwitch(at) && hops.size() < 64) {
      const SwitchIndex s = fabric.AsSwitch(at);
      const PortNum port(result.tables->port(s, fabric.endpoint(to).lid));
      hops.push_back(absl::StrFormat("S %x[%d]", fabric.switch_info(s).guid.value(), port.value()));
      const ChannelIndex channel = fabric.channel_at(s, port);
      if (channel == kNoChannel) return hops;
      at = fabric.channel_to(channel);
    }
    return hops;
  }

  void ExpectRoutesOfIbtracert(const SweepResult& result, int samples) {
    const Fabric& fabric = *result.fabric;
    std::mt19937_64 random(TestSeed());
    std::uniform_int_distribution<uint32_t> any(0, fabric.endpoint_count() - 1);
    for (int i = 0; i < samples; ++i) {
      const EndpointIndex from(any(random));
      EndpointIndex to = from;
      while (to == from) to = EndpointIndex(any(random));
      const absl::StatusOr<std::string> text =
          subnet_->Run({"ibtracert", absl::StrCat(fabric.endpoint(from).lid.value()),
                        absl::StrCat(fabric.endpoint(to).lid.value())});
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(SwitchHops(result, from, to), SwitchHopsOfIbtracert(*text)) << *text;
    }
  }
};

TEST_F(LiveDiscovery, GraphTablesAndRoutesOf512HostsEqualTheReference) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  const SweepResult result = SweepOrFail();
  ASSERT_NE(result.fabric, nullptr);
  EXPECT_TRUE(result.has_subnet_manager);
  EXPECT_EQ(result.fabric->endpoint_count(), 512u);
  EXPECT_EQ(result.fabric->switch_count(), 48u);
  EXPECT_EQ(port_->Describe(), "umad:ibsim0:1");
  ExpectGraphOfIbnetdiscover(*result.fabric);
  ExpectTablesOfDumpLfts(result);
  ExpectRoutesOfIbtracert(result, FullTier() ? 200 : 20);
}

TEST_F(LiveDiscovery, GraphAndTablesOf8192HostsEqualTheReference) {
  ASSERT_NO_FATAL_FAILURE(Start(kLargeFabric, "ftree"));
  const SweepResult result = SweepOrFail();
  ASSERT_NE(result.fabric, nullptr);
  EXPECT_EQ(result.fabric->endpoint_count(), 8192u);
  EXPECT_EQ(result.fabric->switch_count(), 832u);
  ExpectGraphOfIbnetdiscover(*result.fabric);
  ExpectRoutesOfIbtracert(result, 20);
  if (FullTier()) ExpectTablesOfDumpLfts(result);  // half a minute by itself
}

TEST_F(LiveDiscovery, OtherShapesEqualTheReference) {
  ASSERT_NO_FATAL_FAILURE(Start("torus(dims=4x3x3,hosts=2)", "minhop"));
  const SweepResult result = SweepOrFail();
  ASSERT_NE(result.fabric, nullptr);
  ExpectGraphOfIbnetdiscover(*result.fabric);
  ExpectTablesOfDumpLfts(result);
  ExpectRoutesOfIbtracert(result, 10);
}

TEST_F(LiveDiscovery, SeveralPortsOfOneAdapterAndParallelCables) {
  ASSERT_NO_FATAL_FAILURE(
      Start("fat-tree(leaves=4,spines=2,hosts-per-leaf=3,ports-per-host=2,uplinks-per-leaf=6)",
            "minhop"));
  const SweepResult result = SweepOrFail();
  ASSERT_NE(result.fabric, nullptr);
  EXPECT_EQ(result.fabric->endpoint_count(), 24u);
  EXPECT_EQ(result.fabric->adapter_count(), 12u);
  ExpectGraphOfIbnetdiscover(*result.fabric);
  ExpectTablesOfDumpLfts(result);
}

// Every host has a port on each of two leaf switches: its packets from one to the other take as
// many links as ibtracert counts.
TEST_F(LiveDiscovery, RoutesBetweenPortsOfOneAdapterAreThoseOfIbtracert) {
  ASSERT_NO_FATAL_FAILURE(Start(*HostsOnTwoLeaves(3, 2, 2), "minhop"));
  const SweepResult result = SweepOrFail();
  ASSERT_NE(result.fabric, nullptr);
  ASSERT_NE(result.tables, nullptr);
  const Fabric& fabric = *result.fabric;
  ASSERT_EQ(fabric.host_count(), 6u);
  const auto routes = Routes::FromTables(result.fabric, result.tables);
  ASSERT_TRUE(routes.ok()) << routes.status();
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    const absl::Span<const EndpointIndex> ports = fabric.endpoints_of_host(HostIndex(h));
    ASSERT_EQ(ports.size(), 2u);
    const absl::StatusOr<std::string> text =
        subnet_->Run({"ibtracert", absl::StrCat(fabric.endpoint(ports[0]).lid.value()),
                      absl::StrCat(fabric.endpoint(ports[1]).lid.value())});
    ASSERT_TRUE(text.ok()) << text.status();
    const size_t links = 1 + SwitchHopsOfIbtracert(*text).size();
    EXPECT_EQ(links, 4u) << *text;
    EXPECT_EQ(*(*routes)->Length(fabric.Vertex(ports[0]), fabric.Vertex(ports[1])), links);
  }
}

TEST_F(LiveDiscovery, WithoutTablesThereAreNone) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "minhop"));
  const SweepResult result = SweepOrFail(/*read_forwarding_tables=*/false);
  ASSERT_NE(result.fabric, nullptr);
  EXPECT_TRUE(result.has_subnet_manager);
  EXPECT_EQ(result.tables, nullptr);
  ExpectGraphOfIbnetdiscover(*result.fabric);
}

TEST_F(LiveDiscovery, WithoutASubnetManagerTheGraphIsReadAndSaysSo) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, ""));
  const SweepResult result = SweepOrFail();
  ASSERT_NE(result.fabric, nullptr);
  EXPECT_FALSE(result.has_subnet_manager);
  EXPECT_EQ(result.tables, nullptr);
  EXPECT_EQ(result.fabric->endpoint_count(), 512u);
  EXPECT_EQ(result.fabric->link_count(), 1024u);
  ExpectGraphOfIbnetdiscover(*result.fabric);
}

}  // namespace
}  // namespace coppice::live_discovery_test
