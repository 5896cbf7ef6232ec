#include "proto/text/plain_text.h"

#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <string>

#include "tests/support/tier.h"

namespace coppice::plain_text_test {
namespace {

// As UTF-8, straight from RFC 3629, section 3.
std::string Encoded(char32_t code) {
  const auto tail = [code](int shift) {
    return static_cast<char>(0x80 | ((code >> shift) & 0x3F));
  };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

TEST(PlainText, EveryCharacterIsReadAsItWasWritten) {
  for (char32_t code = 0; code <= 0x110000; ++code) {
    const std::string text = Encoded(code) + "x";
    const Character character = FirstCharacter(text);
    if ((code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) {
      ASSERT_EQ(character.bytes, 0u) << std::hex << static_cast<uint32_t>(code);
    } else {
      ASSERT_EQ(character.code, code);
      ASSERT_EQ(character.bytes, text.size() - 1);
    }
  }
  for (const char* text :
       {"\xC0\xAF", "\xE0\x80\x80", "\xF0\x80\x80\x80", "\x80", "\xFF", "\xE6\x97"}) {
    EXPECT_EQ(FirstCharacter(text).bytes, 0u) << text;
  }
}

TEST(PlainText, RefusesWhatSteersATerminalOrTurnsTextAround) {
  for (const char32_t code : {0x00, 0x0A, 0x0D, 0x09, 0x1B, 0x7F, 0x80, 0x9B, 0x9F, 0x061C, 0x200E,
                              0x200F, 0x2028, 0x2029, 0x202A, 0x202E, 0x2066, 0x2069}) {
    const std::string text = "melt" + Encoded(code) + "x";
    EXPECT_NE(TextFault(text), "") << std::hex << static_cast<uint32_t>(code);
    EXPECT_EQ(TextFault(ShownText(text)), "");
  }
  EXPECT_EQ(TextFault("n[001-128] \xC3\xBC \xE6\x97\xA5 \xF0\x9F\x98\x80"), "");
  EXPECT_EQ(TextFault("a\x1b[31m"), "holds the control character U+001B at byte 1");
  EXPECT_EQ(TextFault("ab\xff"), "is no UTF-8 at byte 2");
}

TEST(PlainText, AWordIsShortAndHasNoSpaces) {
  EXPECT_TRUE(IsWord("!"));
  EXPECT_TRUE(IsWord(std::string(255, '~')));
  for (const std::string& text :
       {std::string(), std::string(256, 'a'), std::string("a b"), std::string("a\0", 2),
        std::string("\x7f"), std::string("\u00e9")}) {
    EXPECT_FALSE(IsWord(text)) << text;
  }
}

TEST(PlainText, AnAddressIsAHostAndAPort) {
  for (const char* text : {"10.0.0.7:1", "n1.site.org:65535", "[fe80::1]:18516"}) {
    EXPECT_TRUE(IsHostAndPort(text)) << text;
  }
  for (const char* text : {"", ":1", "n1", "n1:", "n1:0", "n1:65536", "n 1:5", "n1:5x", "n1:-1"}) {
    EXPECT_FALSE(IsHostAndPort(text)) << text;
  }
}

TEST(PlainText, ShowsAsJsonWrites) {
  EXPECT_EQ(ShownText("a\x1b[2J\n\r\t\x7f"), "a\\u001b[2J\\n\\r\\t\\u007f");
  EXPECT_EQ(ShownText("\xC2\x9B|\xE2\x80\xAE|\xff"), "\\u009b|\\u202e|\\xff");
  EXPECT_EQ(ShownText("plain \xC3\xBC"), "plain \xC3\xBC");
}

TEST(PlainText, LinesStayLines) {
  EXPECT_EQ(ShownText("a\tb\r\nc\rd\n\x1b", TextLines::kMany), "a\tb\r\nc\\rd\n\\u001b");
  EXPECT_EQ(TextFault("a\tb\r\nc\n", TextLines::kMany), "");
  EXPECT_NE(TextFault("a\rb", TextLines::kMany), "");
}

TEST(PlainText, IsNotCutThroughACharacter) {
  EXPECT_EQ(CutText("ab\xC3\xBC", 3), "ab");
  EXPECT_EQ(CutText("ab\xC3\xBC", 4), "ab\xC3\xBC");
  EXPECT_EQ(CutText("\xF0\x9F\x98\x80", 3), "");
}

TEST(PlainText, WhateverIsShownIsPlain) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? random() % 128 : random());
    const std::string shown = ShownText(text);
    ASSERT_EQ(TextFault(shown), "") << shown;
    ASSERT_EQ(shown == text, TextFault(text).empty()) << shown;
    ASSERT_EQ(TextFault(ShownText(text, TextLines::kMany), TextLines::kMany), "") << shown;
  }
}

}  // namespace
}  // namespace coppice::plain_text_test
