// Tables of partitions as a real subnet manager writes them, against what smpquery prints of each
// port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/fabric/partitions.h"
#include "tests/system/live_subnet.h"

namespace coppice::live_partitions_test {
namespace {

constexpr char kFabric[] = "fat-tree(leaves=4,spines=2,hosts-per-leaf=4)";

class LivePartitions : public LiveSubnet {
 protected:
  // "   0: 0xffff 0x8001 0x0000 ...", eight keys a line.
  PartitionTable TableBySmpquery(Lid lid, PortNum port) {
    const absl::StatusOr<std::string> text =
        subnet_->Run({"smpquery", "pkeys", absl::StrCat(lid.value()), absl::StrCat(port.value())});
    EXPECT_TRUE(text.ok()) << text.status();
    PartitionTable table;
    std::istringstream words(text.ok() ? *text : "");
    for (std::string word; words >> word;) {
      uint32_t key = 0;
      if (word.size() == 6 && absl::SimpleHexAtoi(word, &key)) {
        table.push_back(static_cast<uint16_t>(key));
      }
    }
    EXPECT_FALSE(table.empty()) << *text;
    while (!table.empty() && table.back() == 0) table.pop_back();
    return table;
  }

  void ExpectTablesOfSmpquery(const SweepResult& result) {
    const Fabric& fabric = *result.fabric;
    const Partitions& partitions = *result.partitions;
    EXPECT_EQ(partitions.port_count(), fabric.endpoint_count() + fabric.switch_count());
    for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
      const EndpointInfo& info = fabric.endpoint(EndpointIndex(e));
      EXPECT_EQ(partitions.TableOf(info.port_guid), TableBySmpquery(info.lid, info.port)) << e;
    }
    for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
      const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
      EXPECT_EQ(partitions.TableOf(info.guid), TableBySmpquery(info.lid, PortNum(0))) << s;
      for (uint32_t number = 1; number <= info.port_count; ++number) {
        const PortNum port(static_cast<uint8_t>(number));
        const Partitions::Enforcement* const at = partitions.EnforcedAt(info.guid, port);
        if (at == nullptr) continue;
        EXPECT_EQ(at->table, TableBySmpquery(info.lid, port)) << s << " port " << number;
        ++enforced_;
      }
    }
  }

  // "0x0002c9...=full" of the n-th endpoint.
  static std::string Member(const Fabric& fabric, uint32_t n, const std::string& membership) {
    return absl::StrCat("0x", ToString(fabric.endpoint(EndpointIndex(n)).port_guid), "=",
                        membership);
  }

  int enforced_ = 0;
};

TEST_F(LivePartitions, TablesOfThreeTenantsEqualTheReference) {
  ASSERT_NO_FATAL_FAILURE(Start(kFabric, "minhop"));
  const SweepResult before = SweepOrFail();
  ASSERT_NE(before.partitions, nullptr);
  const Fabric& fabric = *before.fabric;
  const auto port = [&](uint32_t n) { return fabric.endpoint(EndpointIndex(n)).port_guid; };
  EXPECT_EQ(before.partitions->Of(port(5), kDefaultPartition), Membership::kFull);
  // The first host, where OpenSM and we are, stays full; n4 is in two, n5 in one both ways.
  std::string text = "Default=0x7fff,ipoib,defmember=limited: ALL, SELF=full, ALL_SWITCHES=full;\n";
  absl::StrAppend(&text, "red=0x0001: ", Member(fabric, 1, "full"), ", ",
                  Member(fabric, 2, "limited"), ", ", Member(fabric, 4, "full"), ";\n");
  absl::StrAppend(&text, "green=0x0002: ALL_SWITCHES=full, ", Member(fabric, 4, "limited"), ", ",
                  Member(fabric, 5, "both"), ";\n");
  absl::StrAppend(&text, "blue=0x7000: ", Member(fabric, 6, "full"), ", ",
                  Member(fabric, 7, "full"), ";\n");
  const absl::Status managed = subnet_->RunSubnetManager("minhop", text);
  ASSERT_TRUE(managed.ok()) << managed;
  const SweepResult result = SweepOrFail();
  ASSERT_NE(result.partitions, nullptr);
  const Partitions& partitions = *result.partitions;
  EXPECT_NE(partitions, *before.partitions);
  const PartitionNum red(1), green(2), blue(0x7000);
  EXPECT_EQ(partitions.Of(port(1), red), Membership::kFull);
  EXPECT_EQ(partitions.Of(port(2), red), Membership::kLimited);
  EXPECT_EQ(partitions.Of(port(3), red), Membership::kNone);
  EXPECT_EQ(partitions.Of(port(4), red), Membership::kFull);
  EXPECT_EQ(partitions.Of(port(4), green), Membership::kLimited);
  EXPECT_EQ(partitions.Of(port(5), green), Membership::kFull);
  EXPECT_EQ(partitions.Of(port(6), blue), Membership::kFull);
  EXPECT_EQ(partitions.Of(port(8), kDefaultPartition), Membership::kLimited);
  EXPECT_EQ(partitions.Of(fabric.switch_info(SwitchIndex(0)).guid, green), Membership::kFull);
  EXPECT_EQ(partitions.Of(fabric.switch_info(SwitchIndex(0)).guid, red), Membership::kNone);
  ExpectTablesOfSmpquery(result);
  std::printf("%d ports of switches look at keys\n", enforced_);
}

}  // namespace
}  // namespace coppice::live_partitions_test
