// Lists as JSON text: all of them are read back exactly, and nothing but what is written is read.
#include "db/json_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/tier.h"
#include "tests/unit/db/store_records.h"

namespace coppice::json_lists_test {
namespace {

TEST(NumberListTest, ExtremesAreExact) {
  const std::vector<int64_t> signed_numbers = {INT64_MIN, -1, 0, INT64_MAX};
  const std::vector<uint64_t> unsigned_numbers = {0, UINT64_MAX};
  std::string text;
  AppendNumbers(signed_numbers, text);
  EXPECT_EQ(text, "[-9223372036854775808,-1,0,9223372036854775807]");
  EXPECT_EQ(*ParseNumbers<int64_t>(text), signed_numbers);
  text.clear();
  AppendNumbers(unsigned_numbers, text);
  EXPECT_EQ(*ParseNumbers<uint64_t>(text), unsigned_numbers);
  text.clear();
  AppendNumbers(std::vector<int64_t>(), text);
  EXPECT_EQ(text, "[]");
  EXPECT_TRUE(ParseNumbers<int64_t>(text)->empty());
}

TEST(NumberListTest, GuidsAsEveryoneWritesThem) {
  std::string text;
  AppendGuids({Guid(0x2c9), Guid(UINT64_MAX)}, text);
  EXPECT_EQ(text, R"(["00000000000002c9","ffffffffffffffff"])");
  EXPECT_THAT(*ParseGuids(text), testing::ElementsAre(Guid(0x2c9), Guid(UINT64_MAX)));
}

TEST(NumberListTest, TreeNodes) {
  const TreeRecord tree = Tree(1, 1, {7}, 2);
  std::string text;
  AppendTreeNodes(tree, text);
  EXPECT_EQ(text, "[[0,2,2,3],[2,2,2,3],[-1,-1,0,0]]");
  TreeRecord read;
  ASSERT_TRUE(ParseTreeNodes(text, read).ok());
  EXPECT_EQ(read.ranks, tree.ranks);
  EXPECT_EQ(read.parents, tree.parents);
  EXPECT_EQ(read.edge_links_up, tree.edge_links_up);
  EXPECT_EQ(read.edge_links_down, tree.edge_links_down);
}

TEST(NumberListTest, WrongTextIsRefusedWithItsPosition) {
  for (const char* text : {"", "[", "[1", "[1,", "[1,]", "[,1]", "1", "[1]x", "[1 ]", "[1.5]",
                           "[9223372036854775808]", "[[1]]", "[\"1\"]"}) {
    SCOPED_TRACE(text);
    EXPECT_STATUS(ParseNumbers<int64_t>(text).status(), absl::StatusCode::kDataLoss, "position");
  }
  EXPECT_FALSE(ParseNumbers<uint64_t>("[-1]").ok());
  EXPECT_FALSE(ParseGuids("[\"2c9\"]").ok());
  EXPECT_FALSE(ParseGuids("[0002c9030010a001]").ok());
  TreeRecord tree;
  for (const char* text : {"[[1,2,3]]", "[[-1,-1,0,0],[0,0,1,1]]", "[[-2,0,0,0]]",
                           "[[4294967296,0,0,0]]", "[[0,0,-1,0]]"}) {
    EXPECT_EQ(ParseTreeNodes(text, tree).code(), absl::StatusCode::kDataLoss) << text;
  }
}

// What parses is what the writer would have written; nothing crashes.
TEST(NumberListTest, MutatedTextIsReadExactlyOrRefused) {
  std::mt19937_64 random(TestSeed());
  std::string nodes;
  AppendTreeNodes(Tree(1, 1, {7, 8}, 5), nodes);
  const std::string seeds[] = {"[1,-22,333]", R"(["00000000000002c9","ffffffffffffffff"])", nodes};
  const int rounds = FullTier() ? 200'000 : 5'000;
  for (int round = 0; round < rounds; ++round) {
    std::string text = seeds[random() % 3];
    for (uint64_t edits = 1 + random() % 3; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text.erase(at, 1 + random() % 3);
      } else {
        text[at] = "[],-0189af\"x"[random() % 12];
      }
    }
    std::string again;
    if (auto numbers = ParseNumbers<int64_t>(text); numbers.ok()) {
      AppendNumbers(*numbers, again);
      EXPECT_EQ(ParseNumbers<int64_t>(again).value(), *numbers);
    }
    if (auto guids = ParseGuids(text); guids.ok()) {
      again.clear();
      AppendGuids(*guids, again);
      EXPECT_EQ(ParseGuids(again).value(), *guids);
    }
    if (TreeRecord tree, copy; ParseTreeNodes(text, tree).ok()) {
      again.clear();
      AppendTreeNodes(tree, again);
      ASSERT_TRUE(ParseTreeNodes(again, copy).ok()) << text;
      EXPECT_EQ(copy.ranks, tree.ranks);
      EXPECT_EQ(copy.parents, tree.parents);
    }
  }
}

using Texts = std::vector<std::string>;

std::string Written(const Texts& texts) {
  std::string text;
  AppendTexts(texts, text);
  return text;
}

TEST(TextListTest, IsJson) {
  EXPECT_EQ(Written({}), "[]");
  EXPECT_EQ(Written({"n1", "", "a \"b\" \\"}), R"(["n1","","a \"b\" \\"])");
  EXPECT_EQ(Written({"\t"}), R"(["\u0009"])");
}

TEST(TextListTest, RandomTextsSurvive) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 2'000; ++round) {
    Texts texts(random() % 5);
    for (std::string& text : texts) {
      for (uint64_t n = random() % 8; n > 0; --n) text += static_cast<char>(random());
    }
    const auto parsed = ParseTexts(Written(texts));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_EQ(*parsed, texts);
  }
}

TEST(TextListTest, NothingElseIsRead) {
  for (const char* bad : {"", "[", "]", "x", "[]x", "[,]", "[\"a\"", "[\"a\",]", "[\"a\" ]", "[\"a",
                          "[\"\\n\"]", "[\"\\u0041\"]", "[\"\\u00\"]", "[\"a\"]]", "[1]"}) {
    EXPECT_EQ(ParseTexts(bad).status().code(), absl::StatusCode::kDataLoss) << bad;
  }
}

}  // namespace
}  // namespace coppice::json_lists_test
