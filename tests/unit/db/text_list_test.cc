// Lists of texts: any bytes survive, and nothing but what is written is read.
#include "db/text_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/tier.h"

namespace coppice::text_list_test {
namespace {

using Texts = std::vector<std::string>;

std::string Written(const Texts& texts) {
  std::string text;
  AppendTexts(texts, text);
  return text;
}

TEST(TextList, IsJson) {
  EXPECT_EQ(Written({}), "[]");
  EXPECT_EQ(Written({"n1", "", "a \"b\" \\"}), R"(["n1","","a \"b\" \\"])");
  EXPECT_EQ(Written({"\t"}), R"(["\u0009"])");
}

TEST(TextList, RandomTextsSurvive) {
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

TEST(TextList, NothingElseIsRead) {
  for (const char* bad : {"", "[", "]", "x", "[]x", "[,]", "[\"a\"", "[\"a\",]", "[\"a\" ]", "[\"a",
                          "[\"\\n\"]", "[\"\\u0041\"]", "[\"\\u00\"]", "[\"a\"]]", "[1]"}) {
    EXPECT_EQ(ParseTexts(bad).status().code(), absl::StatusCode::kDataLoss) << bad;
  }
}

}  // namespace
}  // namespace coppice::text_list_test
