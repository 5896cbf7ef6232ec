#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/forwarding_tables.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/fabric/routes.h"
#include "tests/support/fabric_check.h"
#include "tests/support/fabric_text.h"
#include "tests/support/fabrics.h"
#include "tests/support/tables.h"
#include "tests/support/tier.h"

namespace coppice::forwarding_table_reader_test {
namespace {

constexpr char kTable[] =
    "Unicast lids [0x0-0x4] of switch Lid 1 guid 0x0000000000001000 (S0):\n"
    "  Lid  Out   Destination\n"
    "       Port     Info \n"
    "0x0001 000 : (Switch portguid 0x0000000000001000: 'S0')\n"
    "0x0003 001 : (Channel Adapter portguid 0x0000000000200001: 'n0 mlx5_0')\n"
    "2 valid lids dumped \n";

std::string ErrorOf(const std::string& text) {
  const auto tables = ReadForwardingTables(*Chain(2, 1), text);
  if (tables.ok()) return "";
  EXPECT_EQ(tables.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(tables.status().message());
}

TEST(ForwardingTableReader, ReadsATable) {
  const auto tables = ReadForwardingTables(*Chain(2, 1), kTable);
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_EQ(tables->port(SwitchIndex(0), Lid(1)), 0);
  EXPECT_EQ(tables->port(SwitchIndex(0), Lid(3)), 1);
  EXPECT_EQ(tables->port(SwitchIndex(0), Lid(4)), ForwardingTables::kNoRoute);
  EXPECT_EQ(tables->port(SwitchIndex(1), Lid(3)), ForwardingTables::kNoRoute);
}

TEST(ForwardingTableReader, NamesWhatIsWrong) {
  const auto changed = [](absl::string_view from, absl::string_view to) {
    return ErrorOf(absl::StrReplaceAll(kTable, {{from, to}}));
  };
  EXPECT_NE(changed("guid 0x0000000000001000", "guid 0x0000000000000099").find("not in the fabric"),
            std::string::npos);
  EXPECT_NE(changed("0x0003 001", "0x0009 001").find("line 5"), std::string::npos);
  EXPECT_EQ(changed("0x0003 001", "0x0003 254"), "");
  EXPECT_NE(changed("[0x0-0x4]", "[0x0-0xffff]").find("unicast"), std::string::npos);
  EXPECT_NE(changed("2 valid", "3 valid").find("2 routes"), std::string::npos);
  EXPECT_NE(changed("0x0003", "0x0001").find("twice"), std::string::npos);
  EXPECT_NE(changed("0x0003 001 ", "0x0003 xyz ").find("PORT"), std::string::npos);
  EXPECT_NE(changed("2 valid lids dumped", "").find("ends before"), std::string::npos);
  EXPECT_NE(ErrorOf(std::string(kTable) + kTable).find("comes twice"), std::string::npos);
  EXPECT_NE(ErrorOf("hello\n").find("line 1"), std::string::npos);
}

std::string ReadPlafrim(const std::string& path) {
  std::ifstream file(std::string(COPPICE_SOURCE_DIR) + "/tests/data/plafrim/" + path);
  EXPECT_TRUE(file.is_open()) << path << ": missing";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ForwardingTableReader, ReadsARealClustersTables) {
  const auto fabric = ReadFabricText(ReadPlafrim("ibnetdiscover.txt"), "ibnetdiscover.txt");
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_TRUE(CheckFabric(**fabric).ok()) << CheckFabric(**fabric);
  const auto tables = ReadForwardingTables(**fabric, ReadPlafrim("ibroute.txt"));
  ASSERT_TRUE(tables.ok()) << tables.status();
  const auto again = ReadForwardingTables(**fabric, WriteForwardingTables(**fabric, *tables));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(*again == *tables);
  const auto routes = *Routes::FromTables(*fabric, std::make_shared<ForwardingTables>(*tables));
  uint32_t broken = 0, longer = 0;
  for (const EndpointIndex from : AllEndpoints(**fabric)) {
    for (const EndpointIndex to : AllEndpoints(**fabric)) {
      const VertexIndex a = (*fabric)->Vertex(from), b = (*fabric)->Vertex(to);
      const auto length = routes->Length(a, b);
      if (!length.ok()) {
        ++broken;
      } else if (*length > routes->distances().Hops(a, b)) {
        ++longer;
      }
    }
  }
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(longer, 0);
}

TEST(ForwardingTableReader, TablesOfManyTextsAndWhatIbrouteSaysBehindThem) {
  const FabricPtr fabric = Chain(2, 1);
  const std::string second =
      absl::StrReplaceAll(kTable, {{"0000001000", "0000001001"}, {"'S0'", "'S1'"}});
  ForwardingTableReader reader(*fabric);
  ASSERT_TRUE(reader.Read(absl::StrCat(kTable, "ibroute: iberror: failed: no answer\n")).ok());
  ASSERT_TRUE(reader.Read(absl::StrCat(second, "iberror: failed: twice\n")).ok());
  EXPECT_EQ(reader.skipped(), 2u);
  // The same as of one text.
  const auto whole = ReadForwardingTables(*fabric, absl::StrCat(kTable, second));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(reader.Take() == *whole);
  EXPECT_EQ(whole->port(SwitchIndex(1), Lid(3)), 1);
  // In a table it is no end of it, and a switch comes in one text only.
  EXPECT_NE(ErrorOf(absl::StrReplaceAll(kTable, {{"2 valid", "iberror: failed\n2 valid"}})), "");
  ForwardingTableReader twice(*fabric);
  ASSERT_TRUE(twice.Read(kTable).ok());
  EXPECT_EQ(twice.Read(kTable).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ForwardingTableReader, SurvivesMutatedText) {
  std::mt19937_64 rng(TestSeed());
  const FabricPtr fabric = Chain(2, 1);
  const std::string seed = std::string(kTable);
  const int rounds = FullTier() ? 200000 : 5000;
  for (int round = 0; round < rounds; ++round) {
    std::string text = seed;
    for (uint64_t k = rng() % 6; k > 0 && !text.empty(); --k) {
      const size_t at = rng() % text.size();
      switch (rng() % 3) {
        case 0:
          text[at] = static_cast<char>(rng());
          break;
        case 1:
          text.erase(at, rng() % 40);
          break;
        default:
          text.insert(at, text.substr(rng() % text.size(), rng() % 40));
      }
    }
    const auto tables = ReadForwardingTables(*fabric, text);
    if (!tables.ok()) {
      ASSERT_EQ(tables.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace coppice::forwarding_table_reader_test
