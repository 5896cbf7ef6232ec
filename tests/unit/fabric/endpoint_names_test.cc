#include "daemon/fabric/endpoint_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "daemon/fabric/fabric_builder.h"

namespace coppice::endpoint_names_test {
namespace {

using ::testing::HasSubstr;

// n7 has two adapters: port 1 on both, port 2 on the second only.
std::shared_ptr<const Fabric> TwoAdapters() {
  FabricBuilder builder;
  SwitchInfo leaf;
  leaf.guid = Guid(0x100);
  leaf.port_count = 8;
  EXPECT_TRUE(builder.AddSwitch(leaf).ok());
  uint8_t port = 1;
  const auto cable = [&](uint64_t adapter, const std::string& description, uint8_t ports) {
    AdapterInfo info;
    info.guid = Guid(adapter);
    info.port_count = 2;
    info.description = description;
    EXPECT_TRUE(builder.AddAdapter(info).ok());
    for (uint8_t p = 1; p <= ports; ++p) {
      EXPECT_TRUE(builder.SetAdapterPort(info.guid, PortNum(p), Guid(adapter + p), Lid(0)).ok());
      EXPECT_TRUE(
          builder.AddLink(leaf.guid, PortNum(port++), info.guid, PortNum(p), LinkRate()).ok());
    }
  };
  cable(0x1000, "n7 mlx5_0", 1);
  cable(0x2000, "n7 mlx5_1", 2);
  return *builder.Build();
}

Guid PortGuid(uint64_t host) { return Guid(0x5000 + host); }

// leaf --- n0, n1, ... n11, each with one port.
std::shared_ptr<const Fabric> TwelveHosts() {
  FabricBuilder builder;
  SwitchInfo leaf;
  leaf.guid = Guid(0x100);
  leaf.port_count = 12;
  EXPECT_TRUE(builder.AddSwitch(leaf).ok());
  for (uint8_t h = 0; h < 12; ++h) {
    AdapterInfo info;
    info.guid = Guid(0x1000 + h);
    info.port_count = 1;
    info.description = "n" + std::to_string(h);
    EXPECT_TRUE(builder.AddAdapter(info).ok());
    EXPECT_TRUE(builder.SetAdapterPort(info.guid, PortNum(1), PortGuid(h), Lid(0)).ok());
    EXPECT_TRUE(builder.AddLink(leaf.guid, PortNum(h + 1), info.guid, PortNum(1), LinkRate()).ok());
  }
  return *builder.Build();
}

TEST(EndpointNamesTest, HostsPortsAndGuids) {
  const auto fabric = TwelveHosts();
  const auto guid = [&](absl::string_view name) {
    const auto endpoint = ResolveEndpoint(*fabric, name);
    return endpoint.ok() ? fabric->endpoint(*endpoint).port_guid : Guid();
  };
  EXPECT_EQ(PortGuid(3), guid("n3"));
  EXPECT_EQ(PortGuid(3), guid("n3/1"));
  EXPECT_EQ(PortGuid(10), guid("000000000000500a"));
  EXPECT_EQ(PortGuid(10), guid("0x000000000000500A"));
  EXPECT_EQ(PortGuid(10), guid("0x500a"));  // as ibnetdiscover writes it
  EXPECT_EQ(Guid(), guid("0x"));
  EXPECT_EQ(Guid(), guid("0x0000000000000500a"));
}

TEST(EndpointNamesTest, UnknownNamesComeWithAHint) {
  const auto fabric = TwelveHosts();
  const auto message = [&](absl::string_view name) {
    const absl::Status status = ResolveEndpoint(*fabric, name).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(message("n44"), "no host is named \"n44\"; did you mean n4, n0 or n1?");
  EXPECT_EQ(message("m11"), "no host is named \"m11\"; did you mean n11, n1 or n10?");
  EXPECT_EQ(message("zz"),
            "no host is named \"zz\"; hosts are called like n0; `fabric nodes` lists them");
  EXPECT_THAT(message("n3/2"), HasSubstr("no cabled port 2; it has 1"));
  EXPECT_THAT(message("n77/1"), HasSubstr("\"n77\""));
  EXPECT_THAT(message("n3/"), HasSubstr("n3/"));
  EXPECT_THAT(message("n3/x"), HasSubstr("n3/x"));
  EXPECT_THAT(message("n3/99999999999"), HasSubstr("n3/"));
  EXPECT_THAT(message("000000000000dead"), HasSubstr("000000000000dead"));
  EXPECT_THAT(message("500a"), HasSubstr("500a"));  // without 0x a GUID has 16 digits
  EXPECT_TRUE(absl::IsInvalidArgument(ResolveEndpoint(*fabric, "").status()));
}

TEST(EndpointNamesTest, AHintNamesOnlyHostsThatAreThere) {
  const auto message = [](const Fabric& fabric, absl::string_view name) {
    return std::string(ResolveEndpoint(fabric, name).status().message());
  };
  EXPECT_EQ(message(*TwoAdapters(), "n77"), "no host is named \"n77\"; did you mean n7?");
  const auto fabric = TwelveHosts();
  EXPECT_THAT(message(*fabric, "nope"), HasSubstr("did you mean n0, n1 or n10?"));
  EXPECT_THAT(message(*fabric, std::string(1 << 20, 'n')), HasSubstr("did you mean n0, n1 or"));
}

TEST(EndpointNamesTest, AnEmptyFabricHasNoHint) {
  FabricBuilder builder;
  const auto fabric = *builder.Build();
  EXPECT_THAT(std::string(ResolveEndpoint(*fabric, "n1").status().message()),
              HasSubstr("no hosts"));
}

TEST(EndpointNamesTest, APortThatTwoAdaptersShareIsAnErrorNotAChoice) {
  const auto fabric = TwoAdapters();
  const absl::Status status = ResolveEndpoint(*fabric, "n7/1").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000001001"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000002001"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("n7/1@mlx5_1"));
  EXPECT_EQ(Guid(0x2002), fabric->endpoint(*ResolveEndpoint(*fabric, "n7/2")).port_guid);
  EXPECT_EQ(Guid(0x1001), fabric->endpoint(*ResolveEndpoint(*fabric, "n7")).port_guid);
}

TEST(EndpointNamesTest, EachIsCalledOtherwiseAndFoundByThat) {
  const auto fabric = TwoAdapters();
  std::set<std::string> names;
  for (uint32_t e = 0; e < fabric->endpoint_count(); ++e) {
    const std::string name = EndpointName(*fabric, EndpointIndex(e));
    EXPECT_TRUE(names.insert(name).second) << name;
    const auto found = ResolveEndpoint(*fabric, name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, EndpointIndex(e)) << name;
  }
  EXPECT_EQ(names, std::set<std::string>({"n7/1@mlx5_0", "n7/1@mlx5_1", "n7/2"}));
  EXPECT_EQ(Guid(0x2001),
            fabric->endpoint(*ResolveEndpoint(*fabric, "n7/1@0000000000002001")).port_guid);
  EXPECT_EQ(Guid(0x2002), fabric->endpoint(*ResolveEndpoint(*fabric, "n7/2@mlx5_1")).port_guid);
  EXPECT_TRUE(absl::IsNotFound(ResolveEndpoint(*fabric, "n7/2@mlx5_0").status()));
}

}  // namespace
}  // namespace coppice::endpoint_names_test
