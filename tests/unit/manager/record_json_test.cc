#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/manager/tree_record.h"
#include "tests/support/tier.h"

namespace coppice::record_json_test {
namespace {

TEST(RecordJsonTest, SizesAreCompactAndReadBackTheSame) {
  EXPECT_EQ("[[8,1]]", SizesJson({{8, 1}}));
  const double third = 1.0 / 3;
  const auto json = nlohmann::json::parse(SizesJson({{1ull << 50, third}, {0, 1e12}}));
  EXPECT_EQ(1ull << 50, json[0][0].get<uint64_t>());
  EXPECT_EQ(third, json[0][1].get<double>());
  EXPECT_EQ(1e12, json[1][1].get<double>());
}

TEST(RecordJsonTest, AlternativesEscapeWhatTheyQuote) {
  Alternative built, refused;
  built.builder = TreeBuilder::kKnomial;
  built.width = 4;
  built.total_us = 9.5;
  built.why_not = "1.2 us slower";
  refused.type = TreeType::kTypeII;
  refused.builder = TreeBuilder::kMinimumCost;
  refused.why_not = "switch \"a\\b\"\n\x01 is full, \xc3\xa4";
  const std::string text = AlternativesJson({built, refused});
  EXPECT_EQ(0u, text.find("[{\"type\":\"I\",\"builder\":\"knomial\",\"width\":4,\"total_us\":9.5,"
                          "\"why_not\":\"1.2 us slower\"},{"));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ("II", json[1]["type"]);
  EXPECT_TRUE(json[1]["total_us"].is_null());
  EXPECT_EQ(refused.why_not, json[1]["why_not"].get<std::string>());
  EXPECT_EQ("[]", AlternativesJson({}));
}

TEST(RecordJsonTest, JsonHasNoInfinity) {
  Alternative endless;
  endless.total_us = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(nlohmann::json::parse(AlternativesJson({endless}))[0]["total_us"].is_null());
}

TEST(RecordJsonTest, SizesRoundTrip) {
  EXPECT_TRUE(ParseSizes("[]").empty());
  const std::vector<SizeShare> sizes = {{8, 1}, {1ull << 50, 1.0 / 3}, {0, 1e12}};
  const std::vector<SizeShare> read = ParseSizes(SizesJson(sizes));
  ASSERT_EQ(sizes.size(), read.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(sizes[i].bytes, read[i].bytes);
    EXPECT_EQ(sizes[i].weight, read[i].weight);
  }
}

std::vector<Alternative> AllKinds() {
  std::vector<Alternative> all;
  for (const TreeType type : {TreeType::kTypeI, TreeType::kTypeII}) {
    for (const TreeBuilder builder :
         {TreeBuilder::kKary, TreeBuilder::kKnomial, TreeBuilder::kHierarchical,
          TreeBuilder::kMinimumCost, TreeBuilder::kPostal}) {
      Alternative alternative{type, builder, static_cast<uint32_t>(all.size()), 12.25, "slower"};
      if (all.size() % 2 == 1) alternative.total_us.reset();
      if (all.size() % 3 == 1) alternative.why_not = "\"quoted\\\"\n\x01\x1f, \xc3\xa4 {[,]}";
      all.push_back(std::move(alternative));
    }
  }
  return all;
}

TEST(RecordJsonTest, AlternativesRoundTrip) {
  EXPECT_TRUE(ParseAlternatives("[]").empty());
  const std::vector<Alternative> all = AllKinds();
  const std::vector<Alternative> read = ParseAlternatives(AlternativesJson(all));
  ASSERT_EQ(all.size(), read.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].type, read[i].type);
    EXPECT_EQ(all[i].builder, read[i].builder);
    EXPECT_EQ(all[i].width, read[i].width);
    EXPECT_EQ(all[i].total_us, read[i].total_us);
    EXPECT_EQ(all[i].why_not, read[i].why_not);
  }
}

// Whatever is not written by us reads as nothing, and nothing is read beyond the text.
TEST(RecordJsonTest, DamagedTextIsAnEmptyList) {
  const size_t all = AllKinds().size();
  const std::string good = AlternativesJson(AllKinds());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_TRUE(ParseAlternatives(good.substr(0, length)).empty()) << length;
  }
  EXPECT_TRUE(ParseAlternatives(good + " ").empty());
  std::mt19937_64 random(TestSeed());
  for (int trial = 0; trial < 5000; ++trial) {
    std::string text = good;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    const size_t count = ParseAlternatives(text).size();
    EXPECT_TRUE(count == 0 || count == all) << text;
    text.resize(random() % text.size());
    ParseSizes("[[" + text);
  }
  for (const char* text :
       {"", "[", "[[8,1]", "[[8 ,1]]", "[[8,1]]x", "[[-1,1]]", "[8,1]", "null"}) {
    EXPECT_TRUE(ParseSizes(text).empty()) << text;
  }
}

}  // namespace
}  // namespace coppice::record_json_test
