// Texts as a careless or hostile hand makes them: each is the right fabric or an error that names
// text, line, object and what to do.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/models/model.h"
#include "daemon/fabric/topology_lines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabric_check.h"
#include "tests/support/fabric_text.h"

namespace coppice::topology_hostile_test {
namespace {

using FabricOr = absl::StatusOr<std::shared_ptr<const Fabric>>;
using ::testing::HasSubstr;

//     n1 --- 1 leaf 2 --- n2
constexpr char kPair[] = R"(switchguid=0x100(100)
Switch	36 "S-0000000000000100"		# "leaf" enhanced port 0 lid 7 lmc 0
[1]	"H-0000000000000010"[1](11) 		# "n1 mlx5_0" lid 3 4xHDR
[2]	"H-0000000000000020"[1](21) 		# "n2 mlx5_0" lid 4 4xHDR

caguid=0x10
Ca	1 "H-0000000000000010"		# "n1 mlx5_0"
[1](11) 	"S-0000000000000100"[1]		# lid 3 lmc 0 "leaf" lid 7 4xHDR

caguid=0x20
Ca	1 "H-0000000000000020"		# "n2 mlx5_0"
[1](21) 	"S-0000000000000100"[2]		# lid 4 lmc 0 "leaf" lid 7 4xHDR
)";

using Changes = std::vector<std::pair<std::string, std::string>>;

std::string Changed(const Changes& changes) {
  std::string text = kPair;
  for (const auto& [from, to] : changes) {
    EXPECT_THAT(text, HasSubstr(from));
    text = absl::StrReplaceAll(text, {{from, to}});
  }
  return text;
}

std::shared_ptr<const Fabric> Accepted(const std::string& text) {
  const FabricOr fabric = ReadFabricText(text, "pair.txt");
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  if (!fabric.ok()) return nullptr;
  EXPECT_TRUE(CheckFabric(**fabric).ok()) << CheckFabric(**fabric);
  const std::string written = WriteIbnetdiscover(**fabric);
  const FabricOr again = ReadFabricText(written, "again.txt");
  EXPECT_TRUE(again.ok()) << again.status();
  if (again.ok()) {
    EXPECT_EQ(WriteIbnetdiscover(**again), written);
  }
  return *fabric;
}

void Refused(const std::string& text, const std::vector<std::string>& parts) {
  const FabricOr fabric = ReadFabricText(text, "pair.txt");
  ASSERT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument) << text;
  for (const std::string& part : parts) {
    EXPECT_THAT(std::string(fabric.status().message()), HasSubstr(part));
  }
}

std::string HostOf(const Fabric& fabric, uint32_t e) {
  return std::string(fabric.host_name(fabric.host(EndpointIndex(e))));
}

TEST(HostileTopologyTest, LineEndsAndMarksOfEditorsDoNotMatter) {
  const std::string plain = WriteIbnetdiscover(*Accepted(kPair));
  EXPECT_EQ(WriteIbnetdiscover(*Accepted(Changed({{"\n", "\r\n"}}))), plain);
  EXPECT_EQ(WriteIbnetdiscover(*Accepted(absl::StrCat("\xEF\xBB\xBF", kPair))), plain);
  EXPECT_EQ(WriteIbnetdiscover(*Accepted(Changed({{"lid 7 4xHDR\n", "lid 7 4xHDR\n\n\n"}}))),
            plain);
}

TEST(HostileTopologyTest, NamesOfEveryKind) {
  EXPECT_EQ(HostOf(*Accepted(Changed({{"n1 mlx5_0", "n1 \"a\" # lid 5 mlx5_0"}})), 0),
            "n1 \"a\" # lid 5");
  EXPECT_EQ(HostOf(*Accepted(Changed({{"n1 mlx5_0", "n\xC3\xBC mlx5_0"}})), 0), "n\xC3\xBC");
  EXPECT_EQ(HostOf(*Accepted(Changed({{"n1 mlx5_0", "n\xFC\x1b mlx5_0"}})), 0), "n?");
  EXPECT_EQ(HostOf(*Accepted(Changed({{"n1 mlx5_0", ""}})), 0), "0000000000000010");
  EXPECT_EQ(HostOf(*Accepted(Changed({{"n1 mlx5_0", std::string(9000, 'n')}})), 0).size(), 9000U);
  // What a message quotes is short and clean.
  Refused(Changed({{"Ca\t1 \"H-0000000000000010", "C\x1b\xFF\t1 \"H-0000000000000010"}}),
          {"pair.txt:7", "C ? "});
}

TEST(HostileTopologyTest, WhatIsNoFabricText) {
  for (const std::string& text : {std::string(5000, '\0'),
                                  std::string("\x7f"
                                              "ELF\x02\x01\x01 =\"\"\""),
                                  std::string("{}\n"), std::string("<html>404</html>"),
                                  std::string("a,b,c\n1,2,3\n"), std::string("\n\n[")}) {
    Refused(text, {"pair.txt:"});
  }
  Refused("", {"pair.txt: no node in it"});
  Refused("\xEF\xBB\xBF\r\n\r\n", {"pair.txt: no node in it"});
}

TEST(HostileTopologyTest, PortsThatCannotBe) {
  Refused(Changed({{"[1]\t\"H", "[0]\t\"H"}}), {"pair.txt:3", "port 0 of switch", "36 ports"});
  Refused(Changed({{"[2]\t\"H", "[37]\t\"H"}}), {"pair.txt:4", "port 37 of switch", "36 ports"});
  Refused(Changed({{"[2]\t\"H", "[999]\t\"H"}}), {"pair.txt:4", "ports up to 254"});
  Refused(Changed({{"[2]\t\"H", "[-2]\t\"H"}}), {"pair.txt:4", "ports up to 254"});
  Refused(Changed({{"\"H-0000000000000020\"[1]", "\"H-0000000000000020\"[9]"}}),
          {"pair.txt:12", "port 9", "line 4", "correct one"});
  Refused(Changed({{"Switch\t36", "Switch\t255"}}), {"pair.txt:2", "1 to 254"});
  Refused(Changed({{"\"H-0000000000000010\"[1](11)", "\"S-0000000000000100\"[1]"}}),
          {"pair.txt:3", "cabled to itself", "remove"});
}

TEST(HostileTopologyTest, LidsOfEveryKind) {
  EXPECT_EQ(FindLid(*Accepted(Changed({{"lid 3", "lid 0"}, {"lid 4", "lid 0"}})), Lid(3)),
            std::nullopt);
  EXPECT_EQ(Accepted(Changed({{"lid 4", "lid 49151"}}))->endpoint(EndpointIndex(1)).lid,
            Lid(49151));
  for (const char* lid : {"lid 49152", "lid 65535", "lid 99999999999999999999", "lid -1"}) {
    Refused(Changed({{"lid 4", lid}}), {"pair.txt:4", "49151"});
  }
  Refused(Changed({{"lid 4", "lid 3"}}), {"LID 3 appears twice", "n1/1", "n2/1"});
}

// The pair once more, as another subnet: the same LIDs, but GUIDs and names of its own.
std::string OtherSubnet(const std::string& text) {
  std::string other;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StrContains(line, "guid=")) absl::StrAppend(&other, line, "\n");
  }
  return absl::StrReplaceAll(other, {{"-0000", "-1000"},
                                     {"(11)", "(1000000000000011)"},
                                     {"(21)", "(1000000000000021)"},
                                     {"n1", "m1"},
                                     {"n2", "m2"}});
}

TEST(HostileTopologyTest, EqualLidsInTwoSubnets) {
  const auto fabric = Accepted(absl::StrCat(kPair, "\n", OtherSubnet(kPair)));
  ASSERT_NE(fabric, nullptr);
  EXPECT_EQ(fabric->component_count(), 2U);
  EXPECT_EQ(FindLid(*fabric, Lid(7)), VertexIndex(0));
  // Twice within the second subnet, although the first one has the LID, too.
  Refused(absl::StrCat(kPair, "\n", OtherSubnet(Changed({{"lid 4", "lid 3"}}))),
          {"LID 3 appears twice in one subnet", "m1/1", "m2/1"});
}

TEST(HostileTopologyTest, RatesOfEveryGeneration) {
  for (const char* lanes : {"1x", "2x", "4x", "8x", "12x"}) {
    for (const char* speed : {"SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"}) {
      const std::string rate = absl::StrCat(lanes, speed);
      const auto fabric = Accepted(Changed({{"4xHDR", rate}}));
      ASSERT_NE(fabric, nullptr);
      EXPECT_EQ(ToString(fabric->link(LinkIndex(0)).rate), rate);
      EXPECT_GT(fabric->link(LinkIndex(0)).capacity_gbps, 0);
    }
  }
  EXPECT_EQ(Accepted(Changed({{"4xHDR", "4x???"}}))->link(LinkIndex(0)).capacity_gbps, 0);
  Refused(Changed({{"4xHDR", "16xHDR"}}), {"pair.txt:3", "16xHDR", "no link rate"});
  Refused(Changed({{"4xHDR", ""}}), {"pair.txt:3", "no link rate"});
}

TEST(HostileTopologyTest, FabricsWithoutTheUsual) {
  const auto alone = Accepted("Switch 36 \"S-0000000000000100\"\n");
  EXPECT_EQ(alone->switch_count(), 1U);
  EXPECT_EQ(alone->component_count(), 1U);
  EXPECT_EQ(Accepted("Ca 2 \"H-0000000000000010\"\n")->endpoint_count(), 0U);
  const auto back_to_back = Accepted(
      "Ca 1 \"H-0000000000000010\"\n[1] \"H-0000000000000020\"[1]\n"
      "Ca 1 \"H-0000000000000020\"\n[1] \"H-0000000000000010\"[1]\n");
  EXPECT_EQ(back_to_back->switch_count(), 0U);
  EXPECT_EQ(back_to_back->endpoint_count(), 2U);
  // A cable from a switch to itself is legal; a cable from a port to itself is not.
  EXPECT_EQ(Accepted("Switch 36 \"S-0000000000000100\"\n[1] \"S-0000000000000100\"[2]\n"
                     "[2] \"S-0000000000000100\"[1]\n")
                ->link_count(),
            1U);
}

// Every model through both formats.
TEST(TopologyRoundTripTest, EveryModelInBothFormats) {
  for (const Model& model : Models()) {
    const std::string arguments =
        model.name == "percs"      ? "(supernodes=3,hosts=2)"
        : model.name == "fat-tree" ? "(leaves=6,spines=3,ports-per-host=2,lids=1,speeds=xdr/2xndr)"
                                   : "(lids=1,speeds=edr/hdr/ndr)";
    const FabricOr fabric = GenerateModel(absl::StrCat(model.name, arguments));
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    const std::string text = WriteIbnetdiscover(**fabric);
    const FabricOr read = ReadFabricText(text, model.name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(WriteIbnetdiscover(**read) == text) << model.name;
    for (uint32_t l = 0; l < (*fabric)->link_count(); ++l) {
      const LinkInfo &x = (*fabric)->link(LinkIndex(l)), &y = (*read)->link(LinkIndex(l));
      ASSERT_EQ(x.rate, y.rate);
      ASSERT_EQ(x.capacity_gbps, y.capacity_gbps);
    }
    const std::string net = WriteIbsimNet(**fabric);
    const FabricOr simulated = ReadFabricText(net, model.name);
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    EXPECT_TRUE(WriteIbsimNet(**simulated) == net) << model.name;
    EXPECT_TRUE(WriteIbnetdiscover(**simulated) == text) << model.name;
  }
}

}  // namespace
}  // namespace coppice::topology_hostile_test
