// The readers and writers of topology text: what is read, what is refused, and that nothing
// crashes.
#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/topology_lines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabric_text.h"
#include "tests/support/tier.h"

namespace coppice::ibnetdiscover_test {
namespace {

using FabricOr = absl::StatusOr<std::shared_ptr<const Fabric>>;
using ::testing::AllOf;
using ::testing::HasSubstr;

//    n1 port 1 --- 1 s1 2 ===== 1 s2 3 --- r1        n1 port 2 --- 2 s2
constexpr char kSmall[] =
    R"(DR path slid 0; dlid 0; 0 -> new Channel Adapter {0a} portnum 1 lid 0-0 ""
#
# Topology file: generated on Sat Nov 21 04:21:37 2026
#

vendid=0x2c9
devid=0xc738
sysimgguid=0x100
switchguid=0x100(100)
Switch	36 "S-0000000000000100"		# "leaf "one" # 1" enhanced port 0 lid 7 lmc 0
[1]	"H-0000000000000010"[1](11) 		# "n1 mlx5_0" lid 3 4xQDR
[2]	"S-0000000000000200"[1]		# "spine" lid 8 12xEDR s=4 w=8 v=4
ibwarn: [4711] mad_rpc: timed out

vendid=0x2c9
switchguid=0x200(200)
Switch	36 "S-0000000000000200"		# "spine" base port 0 lid 8 lmc 0
[1][ext 4]	"S-0000000000000100"[2][ext 1]		# "leaf "one" # 1" lid 7 12xEDR
[2]	"H-0000000000000010"[2](12) 		# "n1 mlx5_0" lid 4 2xHDR
[3]	"R-0000000000000300"[1](301) 		# "router" lid 9 ??SDR

caguid=0x10
Ca	2 "H-0000000000000010"		# "n1 mlx5_0"
[1](11) 	"S-0000000000000100"[1]		# lid 3 lmc 1 "leaf "one" # 1" lid 7 4xQDR
[2](12) 	"S-0000000000000200"[2]		# lid 4 lmc 1 "spine" lid 8 2xHDR

rtguid=0x300
Rt	1 "R-0000000000000300"		# "router"
[1](301) 	"S-0000000000000200"[3]		# lid 9 lmc 0 "spine" lid 8 ??SDR
)";

std::string ReadTestFile(const std::string& name) {
  std::ifstream in(absl::StrCat(COPPICE_SOURCE_DIR, "/tests/data/", name));
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_TRUE(in.good()) << name;
  return text.str();
}

FabricOr Small(const std::vector<std::pair<std::string, std::string>>& changes = {}) {
  std::string text = kSmall;
  for (const auto& [from, to] : changes) {
    EXPECT_THAT(text, HasSubstr(from));
    text = absl::StrReplaceAll(text, {{from, to}});
  }
  return ReadFabricText(text, "small.txt");
}

// Expects INVALID_ARGUMENT with every one of `parts` in its message.
void ExpectRefused(const FabricOr& fabric, const std::vector<std::string>& parts) {
  ASSERT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument) << fabric.status();
  for (const std::string& part : parts) {
    EXPECT_THAT(std::string(fabric.status().message()), HasSubstr(part));
  }
}

TEST(IbnetdiscoverReaderTest, ReadsEveryFieldOfTheDefaultForm) {
  const FabricOr read = Small();
  ASSERT_TRUE(read.ok()) << read.status();
  const Fabric& fabric = **read;
  EXPECT_EQ(fabric.switch_count(), 2);
  EXPECT_EQ(fabric.endpoint_count(), 3);
  EXPECT_EQ(fabric.link_count(), 4);
  const SwitchInfo& leaf = fabric.switch_info(SwitchIndex(0));
  EXPECT_EQ(leaf.description, "leaf \"one\" # 1");
  EXPECT_EQ(leaf.lid, Lid(7));
  EXPECT_EQ(leaf.port_count, 36);
  EXPECT_EQ(leaf.vendor_id, 0x2c9U);
  EXPECT_EQ(leaf.device_id, 0xc738);
  const EndpointIndex second = *fabric.FindEndpoint(Guid(0x10), PortNum(2));
  EXPECT_EQ(fabric.endpoint(second).port_guid, Guid(0x12));
  EXPECT_EQ(fabric.endpoint(second).lid, Lid(4));
  EXPECT_EQ(fabric.endpoint(second).lmc, 1);
  EXPECT_EQ(fabric.host_name(fabric.host(second)), "n1");
  EXPECT_EQ(ToString(fabric.link(Fabric::link_of(fabric.uplink(second))).rate), "2xHDR");
  EXPECT_EQ(
      ToString(fabric.link(Fabric::link_of(fabric.channel_at(SwitchIndex(0), PortNum(2)))).rate),
      "12xEDR");
  const EndpointIndex router = *fabric.FindEndpoint(Guid(0x301));
  EXPECT_EQ(fabric.adapter(router).kind, AdapterKind::kRouter);
  const LinkRate half = fabric.link(Fabric::link_of(fabric.uplink(router))).rate;
  EXPECT_EQ(half.lanes, 0);
  EXPECT_EQ(half.speed, LaneSpeed::kSdr);
}

TEST(IbnetdiscoverReaderTest, ReadsTextWithoutComments) {
  const FabricOr read = ReadFabricText(
      "Switch 2 \"S-0000000000000100\"\n[1] \"H-0000000000000010\"[1]\n"
      "Ca 1 \"H-0000000000000010\"\n[1] \"S-0000000000000100\"[1] # behind the rack",
      "bare");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->lid(VertexIndex(0)), Lid(0));
  EXPECT_EQ((*read)->endpoint(EndpointIndex(0)).port_guid, Guid(0x11));
}

TEST(IbnetdiscoverReaderTest, RefusesBadInputByLineAndObject) {
  ExpectRefused(ReadFabricText("", "empty.txt"), {"empty.txt", "no node"});
  ExpectRefused(ReadFabricText("# nothing\n\n", "empty.txt"), {"empty.txt", "no node"});
  ExpectRefused(Small({{"Ca\t2 \"H-0000000000000010\"", "Ca\t2 \"H-0000000000000011\""}}),
                {"small.txt:23", "0000000000000011", "0000000000000010"});
  ExpectRefused(Small({{"caguid=0x10\nCa\t2 \"H-0000000000000010\"",
                        "caguid=0x100\nCa\t2 \"H-0000000000000100\""}}),
                {"small.txt:23", "0000000000000100 appears twice", "line 10"});
  ExpectRefused(Small({{"Rt\t1", "Rt\t0"}}), {"small.txt:28", "1 to 254"});
  ExpectRefused(Small({{"Rt\t1", "Rt\t99999999999999999999"}}), {"small.txt:28", "1 to 254"});
  ExpectRefused(Small({{"Switch\t36 \"S-0000000000000200", "Switch\t2 \"S-0000000000000200"}}),
                {"small.txt:20", "port 3 of switch 0000000000000200", "2 ports"});
  ExpectRefused(Small({{"\"S-0000000000000200\"[3]", "\"S-0000000000000200\"[4]"}}),
                {"small.txt:20", "port 3 of switch 0000000000000200", "line 29"});
  ExpectRefused(Small({{"\"S-0000000000000200\"[1]\t", "\"S-0000000000000100\"[2]\t"}}),
                {"small.txt:12", "port 2 of switch 0000000000000100", "itself"});
  ExpectRefused(Small({{"[2]\t\"S-0000000000000200\"[1]", "[1]\t\"S-0000000000000200\"[1]"}}),
                {"small.txt:12", "port 1 of switch 0000000000000100", "two lines"});
  ExpectRefused(Small({{"(12)", "(11)"}}), {"small.txt", "0000000000000011", "twice"});
  ExpectRefused(Small({{"lid 4 lmc 1", "lid 70000 lmc 1"}}), {"small.txt:25", "lid LID"});
  ExpectRefused(Small({{"lid 4 lmc 1", "lid 4 lmc 9"}}), {"small.txt:25", "lmc"});
  ExpectRefused(Small({{"vendid=0x2c9\ndevid", "vendid=0x1000000\ndevid"}}),
                {"small.txt:6", "vendid"});
  ExpectRefused(Small({{"Ca\t2", "Toaster\t2"}}), {"small.txt:23", "Toaster"});
  ExpectRefused(Small({{"4xQDR", "4xQ"}}), {"small.txt:11", "4xQ", "rate"});
  ExpectRefused(
      ReadFabricText("[1]\t\"S-0000000000000100\"[1]\nCa 1 \"H-0000000000000010\"\n", "x"),
      {"x:1", "before the first node"});
}

TEST(IbnetdiscoverReaderTest, RefusesAOneSidedLink) {
  std::string text = kSmall;
  const size_t cut = text.rfind("[1](301)");
  ExpectRefused(ReadFabricText(text.substr(0, cut), "cut.txt"),
                {"cut.txt:20", "port 3 of switch 0000000000000200", "one-sided", "cut off"});
  const size_t router = text.find("rtguid");
  ExpectRefused(ReadFabricText(text.substr(0, router), "cut.txt"),
                {"cut.txt:20", "0000000000000300", "does not describe", "cut off"});
}

// A cycle of cables: port 1 of each switch claims the next.
TEST(IbnetdiscoverReaderTest, RefusesCyclicCables) {
  std::string text;
  for (int s = 1; s <= 3; ++s) {
    absl::StrAppend(&text, "Switch 4 \"S-000000000000000", s, "\"\n[1] \"S-000000000000000",
                    s % 3 + 1, "\"[1]\n");
  }
  ExpectRefused(ReadFabricText(text, "ring"),
                {"ring:2", "port 1 of switch 0000000000000001", "line 4"});
}

// Wherever the file is cut, the result is an error, or a fabric without any cable.
TEST(IbnetdiscoverReaderTest, EveryTruncationIsNoticed) {
  const std::string whole = WriteIbnetdiscover(**Small());
  const std::string expected = whole;
  for (size_t length = 0; length < whole.size() - 1; ++length) {
    const FabricOr fabric = ReadFabricText(absl::string_view(whole).substr(0, length), "cut");
    if (fabric.ok() && (*fabric)->link_count() > 0) {
      EXPECT_EQ(WriteIbnetdiscover(**fabric), expected) << length;
    }
  }
}

TEST(IbnetdiscoverReaderTest, ReadsTheRealClusterInPortsForm) {
  const FabricOr read = ReadFabricText(ReadTestFile("plafrim/ibnetdiscover.txt"), "plafrim");
  ASSERT_TRUE(read.ok()) << read.status();
  const Fabric& fabric = **read;
  EXPECT_EQ(fabric.switch_count(), 9);
  EXPECT_EQ(fabric.host_count(), 125);
  EXPECT_EQ(fabric.endpoint_count(), 125);
  EXPECT_EQ(fabric.link_count(), 201);
  EXPECT_EQ(fabric.component_count(), 1);
  const HostIndex host = *fabric.FindHost("bonobo020");
  const EndpointIndex endpoint = fabric.endpoints_of_host(host)[0];
  EXPECT_EQ(fabric.endpoint(endpoint).port_guid, Guid(0x0002c9030002da23));
  EXPECT_EQ(fabric.endpoint(endpoint).lid, Lid(1));
  EXPECT_EQ(fabric.adapter(endpoint).guid, Guid(0x0002c9030002da22));  // as its chatter says
  EXPECT_EQ(fabric.switch_info(*fabric.FindSwitch(Guid(0x0008f10500108c9e))).description,
            "Voltaire 4036 # 4036-8C9E");
}

TEST(IbnetdiscoverReaderTest, PortsFormKeepsAdaptersApart) {
  constexpr char kRows[] =
      "CA     3  1 0x0000000000000011 4x QDR - SW     7  1 0x0000000000000100 ( 'n1 HCA-1' - 's' "
      ")\n"
      "CA     4  2 0x0000000000000012 4x QDR - SW     7  2 0x0000000000000100 ( 'n1 HCA-1' - 's' "
      ")\n"
      "CA     5  1 0x0000000000000021 1x SDR - SW     7  3 0x0000000000000100 ( 'a' - 's' )\n"
      "CA     6  2 0x0000000000000022 1x SDR - SW     7  4 0x0000000000000100 ( 'b' - 's' )\n"
      "SW     7  5 0x0000000000000100 4x ???                                    's'\n"
      "SW     7  4 0x0000000000000100 1x SDR - CA     6  2 0x0000000000000022 ( 's' - 'b' )\n"
      "SW     7  3 0x0000000000000100 1x SDR - CA     5  1 0x0000000000000021 ( 's' - 'a' )\n"
      "SW     7  2 0x0000000000000100 4x QDR - CA     4  2 0x0000000000000012 ( 's' - 'n1 HCA-1' "
      ")\n"
      "SW     7  1 0x0000000000000100 4x QDR - CA     3  1 0x0000000000000011 ( 's' - 'n1 HCA-1' "
      ")\n";
  const FabricOr read = ReadFabricText(kRows, "rows");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->adapter_count(), 3);
  EXPECT_EQ((*read)->switch_info(SwitchIndex(0)).port_count, 5);
  const std::vector<std::string> lines = absl::StrSplit(kRows, '\n');
  for (size_t skip = 0; skip + 1 < lines.size(); ++skip) {
    if (absl::StrContains(lines[skip], "???")) continue;
    std::vector<std::string> rest = lines;
    rest.erase(rest.begin() + static_cast<long>(skip));
    ExpectRefused(ReadFabricText(absl::StrJoin(rest, "\n"), "rows"), {"rows:"});
  }
}

TEST(TopologyReaderTest, OrderOfNodesDoesNotMatter) {
  const FabricOr fabric = LoadFabric("model:dragonfly");
  const std::string text = WriteIbnetdiscover(**fabric);
  std::vector<std::string> records = absl::StrSplit(text, "\n\n");
  std::mt19937_64 random(TestSeed());
  std::shuffle(records.begin() + 1, records.end(), random);
  const FabricOr shuffled = ReadFabricText(absl::StrJoin(records, "\n\n"), "shuffled");
  ASSERT_TRUE(shuffled.ok()) << shuffled.status();
  EXPECT_EQ(WriteIbnetdiscover(**shuffled), text);
}

TEST(IbsimNetReaderTest, CountsGuidsAsIbsimDoes) {
  const FabricOr read = ReadFabricText(
      "# first\nSwitch\t8 \"Switch1\"\n[1]\t\"Hca1\"[1] w=3\n[2]\t\"Hca2\"\n\n"
      "Hca\t2 \"Hca1\"\n[1]\t\"Switch1\"[1] w=1 s=4\n\nhcaguids+0x10\nHca 1 \"Hca2\"\n[1] "
      "\"Switch1\"[2]\n",
      "net");
  ASSERT_TRUE(read.ok()) << read.status();
  const Fabric& fabric = **read;
  EXPECT_TRUE(fabric.FindSwitch(Guid(0x200000)).has_value());
  EXPECT_TRUE(fabric.FindEndpoint(Guid(0x100000), PortNum(1)).has_value());
  EXPECT_TRUE(fabric.FindEndpoint(Guid(0x100010), PortNum(1)).has_value());
  EXPECT_EQ(ToString(fabric.link(Fabric::link_of(fabric.uplink(EndpointIndex(1)))).rate), "4xSDR");
  const LinkRate narrow = fabric.link(Fabric::link_of(fabric.uplink(EndpointIndex(0)))).rate;
  EXPECT_EQ(narrow.lanes, 1);  // enabled by both: 1x; speeds: none
  EXPECT_EQ(narrow.speed, LaneSpeed::kUnknown);
}

TEST(IbsimNetReaderTest, RefusesWhatOnlyIbsimCanDo) {
  ExpectRefused(ReadFabricText("include \"other\"\n", "net"), {"net:1", "include"});
  ExpectRefused(ReadFabricText("Hca 1 \"a\"\n[1] \"b\"[1]\n", "net"), {"net:2", "\"b\""});
  ExpectRefused(ReadFabricText("Hca 1 \"a\"\n\nHca 1 \"a\"\n", "net"),
                {"net:3", "\"a\" appears twice"});
  ExpectRefused(ReadFabricText("Hca 1 \"a\"\n[1] \"b\"[1] w=99\nHca 1 \"b\"\n", "net"),
                {"net:2", "w=99"});
}

// Flips, cuts, doubles and moves pieces of good texts: every outcome is a fabric or
// INVALID_ARGUMENT.
void Mutate(std::string& text, std::mt19937_64& random) {
  const uint64_t changes = 1 + random() % 4;
  for (uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const size_t at = random() % text.size(), length = random() % 40;
    switch (random() % 5) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(random() % text.size(), length));
        break;
      default:
        text[at] = "0123456789\"[]()#x-\n"[random() % 19];
        break;
    }
  }
}

TEST(TopologyReaderTest, MutatedTextsNeverCrash) {
  const FabricOr model = LoadFabric("model:fat-tree(leaves=2,spines=2,hosts-per-leaf=2,lids=1)");
  const std::vector<std::string> texts = {
      kSmall, WriteIbnetdiscover(**model), WriteIbsimNet(**model),
      ReadTestFile("plafrim/ibnetdiscover.txt").substr(36000, 4000)};
  std::mt19937_64 random(TestSeed());
  const int rounds = FullTier() ? 200000 : 6000;
  for (int round = 0; round < rounds; ++round) {
    std::string text = texts[static_cast<size_t>(round) % texts.size()];
    Mutate(text, random);
    for (const FabricOr& fabric :
         {ReadFabricText(text, "m"), ReadTextBy(ReadIbnetdiscover, text, "m"),
          ReadTextBy(ReadIbsimNet, text, "m")}) {
      if (fabric.ok()) {
        const std::string written = WriteIbnetdiscover(**fabric);
        ASSERT_TRUE(ReadTextBy(ReadIbnetdiscover, written, "again").ok()) << text;
      } else {
        ASSERT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument) << fabric.status();
        ASSERT_LT(fabric.status().message().size(), 1000U);
      }
    }
  }
}

}  // namespace
}  // namespace coppice::ibnetdiscover_test
