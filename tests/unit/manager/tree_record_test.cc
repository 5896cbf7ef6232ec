#include "daemon/manager/tree_record.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace coppice {
namespace {

TEST(TreeRecordTest, SizesAreCompactAndReadBackTheSame) {
  EXPECT_EQ("[[8,1]]", SizesJson({{8, 1}}));
  const double third = 1.0 / 3;
  const auto json = nlohmann::json::parse(SizesJson({{1ull << 50, third}, {0, 1e12}}));
  EXPECT_EQ(1ull << 50, json[0][0].get<uint64_t>());
  EXPECT_EQ(third, json[0][1].get<double>());
  EXPECT_EQ(1e12, json[1][1].get<double>());
}

TEST(TreeRecordTest, AlternativesEscapeWhatTheyQuote) {
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

TEST(TreeRecordTest, JsonHasNoInfinity) {
  Alternative endless;
  endless.total_us = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(nlohmann::json::parse(AlternativesJson({endless}))[0]["total_us"].is_null());
}

}  // namespace
}  // namespace coppice
