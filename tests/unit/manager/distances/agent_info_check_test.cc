// Whose agent somebody is, by the name in a certificate and the hosts that the fabric has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/fabric/fabric_builder.h"
#include "daemon/manager/distances/agent_table.h"

namespace coppice::agent_info_check_test {
namespace {

using testing::HasSubstr;

// One switch with these hosts.
std::shared_ptr<const Fabric> HostsNamed(const std::vector<std::string>& hosts) {
  FabricBuilder builder;
  SwitchInfo leaf;
  leaf.guid = Guid(1);
  leaf.port_count = 36;
  EXPECT_TRUE(builder.AddSwitch(leaf).ok());
  for (size_t i = 0; i < hosts.size(); ++i) {
    AdapterInfo adapter;
    adapter.guid = Guid(100 + i);
    adapter.port_count = 1;
    adapter.description = hosts[i] + " HCA-1";
    EXPECT_TRUE(builder.AddAdapter(adapter).ok());
    EXPECT_TRUE(
        builder.AddLink(Guid(1), PortNum(static_cast<uint8_t>(1 + i)), adapter.guid, PortNum(1))
            .ok());
    EXPECT_TRUE(builder
                    .SetAdapterPort(adapter.guid, PortNum(1), Guid(200 + i),
                                    Lid(static_cast<uint16_t>(1 + i)))
                    .ok());
  }
  return *builder.Build();
}

absl::Status Claim(const Fabric& fabric, const std::string& own, const std::string& claimed) {
  return CheckHostIsOf(fabric, {"tls:agent-" + own, own}, claimed);
}

TEST(CheckHostIsOfTest, NamesAreTheSameUpToADotWhereOneHasNone) {
  const auto fabric = HostsNamed({"n1.a", "n2"});
  EXPECT_TRUE(Claim(*fabric, "", "n2").ok()) << "an administrator";
  EXPECT_TRUE(Claim(*fabric, "n1.a", "n1.a").ok());
  EXPECT_TRUE(Claim(*fabric, "n1", "n1.a").ok());
  EXPECT_TRUE(Claim(*fabric, "n2.b", "n2").ok());
  EXPECT_FALSE(Claim(*fabric, "n1.b", "n1.a").ok());
  EXPECT_FALSE(Claim(*fabric, "n1", "n2").ok());
}

TEST(CheckHostIsOfTest, WhereSeveralAreCalledSoTheWholeNameCounts) {
  const auto fabric = HostsNamed({"n1.a", "n1.b", "n2", "n2.a"});
  for (const char* const host : {"n1.a", "n1.b"}) {
    const absl::Status refused = Claim(*fabric, "n1", host);
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("several hosts of that name"));
    EXPECT_TRUE(Claim(*fabric, host, host).ok());
  }
  EXPECT_TRUE(Claim(*fabric, "n2", "n2").ok());
  EXPECT_FALSE(Claim(*fabric, "n2", "n2.a").ok());
  EXPECT_FALSE(Claim(*fabric, "n2.a", "n2").ok());
}

}  // namespace
}  // namespace coppice::agent_info_check_test
