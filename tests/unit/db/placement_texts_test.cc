// The measures of a placement as text: read back exactly, and in the form that databases have.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <type_traits>
#include <variant>

#include "db/json_lists.h"
#include "tests/support/tier.h"

namespace coppice::placement_texts_test {
namespace {

PlacementRecord Parsed(absl::string_view text) {
  PlacementRecord record;
  ParseMeasures(text, record);
  return record;
}

TEST(PlacementTextsTest, IsReadAsWritten) {
  PlacementRecord record;
  PlacementMeasures& measures = record.measures;
  measures.leaf_switches = 3;
  measures.least_leaf_switches = 2;
  measures.pods = 1;
  measures.total_distance = 1e15 + 0.5;
  measures.mean_distance = 0.1;
  measures.shared_links = 4'000'000'000u - 1;
  measures.mean_load = 0.25;
  measures.most_load = 1;
  measures.switches_without_entries = 7;
  measures.fragmentation = -2;
  measures.max_congestion = 3.5;
  measures.cost = 1.0 / 3;
  record.is_optimal = true;
  const std::string text = MeasuresText(record);
  EXPECT_EQ(Parsed(text), record);
  EXPECT_EQ(Parsed(text).measures.fragmentation, -2);
  EXPECT_EQ(Parsed(text).measures.total_distance, 1e15 + 0.5);
  record.is_optimal = false;
  EXPECT_NE(text, MeasuresText(record));
  EXPECT_EQ(Parsed(MeasuresText(record)), record);
}

TEST(PlacementTextsTest, HasEveryMeasure) {
  PlacementRecord record;
  double value = 1;
  ForEachMeasure([&](const PlacementMeasure& measure) {
    std::visit(
        [&](auto member) {
          using Field = std::remove_reference_t<decltype(record.measures.*member)>;
          record.measures.*member = static_cast<Field>(value++);
        },
        measure.member);
  });
  const PlacementMeasures read = Parsed(MeasuresText(record)).measures;
  const auto json = nlohmann::json::parse(MeasuresText(record));
  value = 1;
  ForEachMeasure([&](const PlacementMeasure& measure) {
    EXPECT_EQ(json.at(measure.name), value) << measure.name;
    EXPECT_EQ(measure.Of(read), value++) << measure.name;
  });
}

// Rows of databases stay as they are: what the release before wrote is read, and written the same.
TEST(PlacementTextsTest, KeepsTheFormOfTheReleaseBefore) {
  const std::string text =
      R"({"leaf_switches":3,"pods":1,"mean_distance":0.10000000000000001,)"
      R"("shared_links":3999999999,"mean_load":0.25,"switches_without_entries":7,)"
      R"("fragmentation":-2,"traffic":0,"least_leaf_switches":2,)"
      R"("total_distance":1000000000000000.5,"most_load":1,"max_congestion":3.5,)"
      R"("cost":0.33333333333333331,"is_optimal":1})";
  const PlacementRecord read = Parsed(text);
  EXPECT_EQ(read.measures.mean_distance, 0.1);
  EXPECT_EQ(read.measures.shared_links, 3'999'999'999u);
  EXPECT_EQ(read.measures.fragmentation, -2);
  EXPECT_EQ(read.measures.cost, 1.0 / 3);
  EXPECT_TRUE(read.is_optimal);
  EXPECT_EQ(MeasuresText(read), text);
}

TEST(PlacementTextsTest, ReadsWhatItFindsInOtherText) {
  for (const char* text :
       {"", "{", "{\"pods\":}", "{\"pods\":x}", "{\"pods\":1e300}", "{\"pods\":-1}",
        "{\"pods\":4294967296}", "{\"fragmentation\":-2147483649}", "{\"cost\":nan}",
        "{\"cost\":1e999}", "{\"cost\":", "{\"is_optimal\":2}", "null", "[]", "{,:,}"}) {
    EXPECT_EQ(Parsed(text), PlacementRecord()) << text;
  }
  EXPECT_EQ(Parsed("{\"pods\":2}").measures.pods, 2u);
  EXPECT_EQ(Parsed("{\"pods\":2,\"later\":\"x\",\"cost\":x,\"traffic\":3}").measures.traffic, 3);
}

TEST(PlacementTextsTest, EditedTextIsReadAsIsWrittenOfIt) {
  std::mt19937_64 random(TestSeed());
  PlacementRecord whole;
  whole.measures.leaf_switches = std::numeric_limits<uint32_t>::max();
  whole.measures.fragmentation = std::numeric_limits<int32_t>::min();
  whole.measures.cost = 0.1;
  const std::string good = MeasuresText(whole);
  EXPECT_EQ(Parsed(good), whole);
  for (int round = 0; round < 3'000; ++round) {
    std::string text = good;
    for (uint64_t n = random() % 6; n > 0; --n) {
      text[random() % text.size()] = "{},:\"-0189.einf"[random() % 15];
    }
    const PlacementRecord read = Parsed(text);
    EXPECT_EQ(Parsed(MeasuresText(read)), read) << text;
  }
}

}  // namespace
}  // namespace coppice::placement_texts_test
