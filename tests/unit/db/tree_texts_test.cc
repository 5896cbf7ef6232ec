#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "db/json_lists.h"
#include "tests/support/tier.h"
#include "tests/unit/db/store_records.h"

namespace coppice::tree_texts_test {
namespace {

TEST(TreeTextsTest, SizesAreCompactAndReadBackTheSame) {
  EXPECT_EQ("[[8,1]]", SizesText({{8, 1}}));
  const double third = 1.0 / 3;
  const auto json = nlohmann::json::parse(SizesText({{1ull << 50, third}, {0, 1e12}}));
  EXPECT_EQ(1ull << 50, json[0][0].get<uint64_t>());
  EXPECT_EQ(third, json[0][1].get<double>());
  EXPECT_EQ(1e12, json[1][1].get<double>());
}

TEST(TreeTextsTest, AlternativesEscapeWhatTheyQuote) {
  Alternative built, refused;
  built.builder = TreeBuilder::kKnomial;
  built.width = 4;
  built.total_us = 9.5;
  built.why_not = "1.2 us slower";
  refused.type = TreeType::kTypeII;
  refused.builder = TreeBuilder::kMinimumCost;
  refused.why_not = "switch \"a\\b\"\n\x01 is full, \xc3\xa4";
  const std::string text = AlternativesText({built, refused});
  EXPECT_EQ(0u, text.find("[{\"type\":\"I\",\"builder\":\"knomial\",\"width\":4,\"total_us\":9.5,"
                          "\"why_not\":\"1.2 us slower\"},{"));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ("II", json[1]["type"]);
  EXPECT_TRUE(json[1]["total_us"].is_null());
  EXPECT_EQ(refused.why_not, json[1]["why_not"].get<std::string>());
  EXPECT_EQ("[]", AlternativesText({}));
}

TEST(TreeTextsTest, JsonHasNoInfinity) {
  Alternative endless;
  endless.total_us = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(nlohmann::json::parse(AlternativesText({endless}))[0]["total_us"].is_null());
}

TEST(TreeTextsTest, SizesRoundTrip) {
  EXPECT_TRUE(ParseSizes("[]")->empty());
  const std::vector<SizeShare> sizes = {{8, 1}, {1ull << 50, 1.0 / 3}, {0, 1e12}};
  EXPECT_EQ(sizes, *ParseSizes(SizesText(sizes)));
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

TEST(TreeTextsTest, AlternativesRoundTrip) {
  EXPECT_TRUE(ParseAlternatives("[]")->empty());
  const std::vector<Alternative> all = AllKinds();
  const std::vector<Alternative> read = *ParseAlternatives(AlternativesText(all));
  EXPECT_EQ(all, read);
  // What is answered before a restart is answered after it: times are kept as they are.
  Alternative exact;
  exact.total_us = 0.1 + 0.2 + 1e3 / 7;
  EXPECT_EQ(exact, ParseAlternatives(AlternativesText({exact}))->at(0));
  // Earlier releases kept ten digits.
  const std::vector<Alternative> old = *ParseAlternatives(
      R"([{"type":"I","builder":"knomial","width":4,"total_us":9.543210988,"why_not":"slower"},)"
      R"({"type":"II","builder":"minimum-cost","width":0,"total_us":null,"why_not":"\"a\\b\"\u000a"}])");
  ASSERT_EQ(2u, old.size());
  EXPECT_EQ((Alternative{TreeType::kTypeI, TreeBuilder::kKnomial, 4, 9.543210988, "slower"}),
            old[0]);
  EXPECT_EQ((Alternative{TreeType::kTypeII, TreeBuilder::kMinimumCost, 0, {}, "\"a\\b\"\n"}),
            old[1]);
}

// Whatever is not written by us is told, and nothing is read beyond the text.
TEST(TreeTextsTest, DamagedTextIsDataLoss) {
  const size_t all = AllKinds().size();
  const std::string good = AlternativesText(AllKinds());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_STATUS(ParseAlternatives(good.substr(0, length)).status(), absl::StatusCode::kDataLoss,
                  absl::StrCat("of a list of ", length, " characters"));
  }
  EXPECT_STATUS(ParseAlternatives(good + " ").status(), absl::StatusCode::kDataLoss,
                absl::StrCat("wrong character at position ", good.size()));
  std::mt19937_64 random(TestSeed());
  for (int trial = 0; trial < 5000; ++trial) {
    std::string text = good;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    const auto read = ParseAlternatives(text);
    EXPECT_TRUE(read.ok() ? read->size() == all : absl::IsDataLoss(read.status())) << text;
    text.resize(random() % text.size());
    EXPECT_FALSE(ParseSizes("[[" + text).ok());
  }
  for (const char* text :
       {"", "[", "[[8,1]", "[[8 ,1]]", "[[8,1]]x", "[[-1,1]]", "[[8,inf]]", "[8,1]", "null"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseSizes(text).status())) << text;
  }
}

TreeRecord RecordOf(absl::string_view spec) {
  TreeRecord record;
  record.type = 2;
  ParseSpec(spec, record);
  return record;
}

TEST(TreeTextsTest, NothingAskedForAndNothingKept) {
  const TreeRecord free = RecordOf("{}");
  EXPECT_EQ(TreeSpec(), free.spec);
  EXPECT_FALSE(free.accepts_type1 || free.lacks_spec);
  EXPECT_EQ("{}", SpecText(free));
  const TreeRecord old = RecordOf("");
  EXPECT_EQ(TreeType::kTypeII, old.spec.type);
  EXPECT_TRUE(old.accepts_type1 && old.lacks_spec);
  EXPECT_EQ("", SpecText(old));
  TreeRecord old_type1;
  old_type1.type = 1;
  ParseSpec("", old_type1);
  EXPECT_EQ(TreeSpec(), old_type1.spec);
  const TreeRecord either = RecordOf(R"({"type":"II","or_else":"I"})");
  EXPECT_EQ(TreeType::kTypeII, either.spec.type);
  EXPECT_TRUE(either.accepts_type1);
  EXPECT_FALSE(either.lacks_spec);
  EXPECT_EQ(R"({"type":"II","or_else":"I"})", SpecText(either));
}

TEST(TreeTextsTest, EditedSpecsAskForNothing) {
  for (const char* text : {"{\"latency\":x}", "{\"builder\":\"minimum-cost\"}", "{\"width\":-1}",
                           "{\"root\":\"xyz\"}", "{\"type\":\"III\"}", "null", "[]", "{,:,}"}) {
    EXPECT_EQ(TreeSpec(), RecordOf(text).spec) << text;
  }
  std::mt19937_64 random(TestSeed());
  TreeRecord record;
  record.spec.type = TreeType::kTypeII;
  record.spec.root_switch = Guid(7);
  record.spec.width = 3;
  const std::string whole = SpecText(record);
  for (int round = 0; round < 3'000; ++round) {
    std::string text = whole;
    for (uint64_t n = random() % 6; n > 0; --n) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    text.resize(random() % (text.size() + 1));
    RecordOf(text);
  }
}

}  // namespace
}  // namespace coppice::tree_texts_test
