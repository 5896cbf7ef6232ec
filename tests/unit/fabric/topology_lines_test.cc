// Lines from a file are the lines of the same text in memory; and descriptions and
// excerpts hold nothing that a program or a terminal stumbles over.
#include "daemon/fabric/topology_lines.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"

namespace coppice::topology_lines_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Read {
  std::vector<std::string> lines;
  bool unfinished = false;
  absl::Status status;
};

Read ReadAll(TopologyLines& lines) {
  Read read;
  absl::string_view line;
  while (lines.Next(&line)) {
    read.lines.emplace_back(line);
    EXPECT_EQ(lines.number(), read.lines.size());
  }
  read.unfinished = lines.unfinished();
  read.status = lines.status();
  return read;
}

Read FromMemory(absl::string_view text) {
  std::istringstream in{std::string(text)};
  TopologyLines lines(in, "memory");
  return ReadAll(lines);
}

// Reads twice, to try Rewind.
Read FromFile(const std::string& text) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/coppice_lines_", getpid());
  std::ofstream(path, std::ios::binary) << text;
  char buffer[64];  // lines lie across its ends
  auto file = OpenFabricFile(path, absl::MakeSpan(buffer));
  EXPECT_TRUE(file.ok()) << file.status();
  TopologyLines lines(*file, path);
  const Read first = ReadAll(lines);
  lines.Rewind();
  Read second = ReadAll(lines);
  EXPECT_EQ(first.lines, second.lines);
  std::remove(path.c_str());
  return second;
}

TEST(TopologyLinesTest, CutsNumbersAndDropsCarriageReturns) {
  EXPECT_THAT(FromMemory("a\r\n\nb").lines, ElementsAre("a", "", "b"));
  EXPECT_TRUE(FromMemory("a\nb").unfinished);
  EXPECT_FALSE(FromMemory("a\nb\n").unfinished);
  EXPECT_THAT(FromMemory("").lines, ElementsAre());
  for (const auto& read :
       {FromMemory("\xEF\xBB\xBFone\ntwo\n"), FromFile("\xEF\xBB\xBFone\ntwo\n")}) {
    EXPECT_THAT(read.lines, ElementsAre("one", "two"));
  }
  EXPECT_THAT(FromFile("\xEF\xBB\xBF").lines, ElementsAre());
}

TEST(TopologyLinesTest, BlocksOfAFileDoNotShow) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 300 : 12); ++round) {
    std::string text;
    const size_t longest = round % 3 == 0 ? 90000 : 3000;
    while (text.size() < 6 * TopologyLines::kMaxLine) {
      text.append(random() % longest, static_cast<char>('a' + random() % 26));
      text += random() % 4 == 0 ? "\r\n" : "\n";
    }
    if (round % 2 == 0) text += "no end";
    const Read memory = FromMemory(text), file = FromFile(text);
    ASSERT_TRUE(file.status.ok()) << file.status;
    ASSERT_EQ(file.unfinished, memory.unfinished);
    ASSERT_TRUE(file.lines == memory.lines) << "round " << round;
  }
}

TEST(TopologyLinesTest, EndsWhereNoLineEnds) {
  const Read read =
      FromFile("first\n" + std::string(8 * TopologyLines::kMaxLine, 'x') + "\nlast\n");
  EXPECT_THAT(read.lines, ElementsAre("first"));
  EXPECT_EQ(read.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(read.status.message()), HasSubstr(":2: a line of more than"));
  // The longest line, and one letter more.
  const std::string longest(TopologyLines::kMaxLine, 'x');
  for (const absl::string_view end : {"\n", "\nlast\n", ""}) {
    EXPECT_TRUE(FromFile(absl::StrCat(longest, end)).status.ok());
    EXPECT_EQ(FromFile(absl::StrCat(longest, "x", end)).lines.size(), 0U);
  }
}

TEST(TopologyTextTest, DescriptionsAreCleanUtf8) {
  EXPECT_EQ(CleanDescription("n1 \"the one\" # \xC3\xBC \xE6\x97\xA5"),
            "n1 \"the one\" # \xC3\xBC \xE6\x97\xA5");
  EXPECT_EQ(CleanDescription("a\x1b[31m\tb\x7f\n"), "a [31m b  ");
  // Latin 1, an overlong form, a surrogate, beyond U+10FFFF, a character cut off.
  EXPECT_EQ(CleanDescription("\xE9t\xE9"), "?t?");
  EXPECT_EQ(CleanDescription("\xC0\xAF|\xE0\x80\x80|\xED\xA0\x80"), "??|???|???");
  EXPECT_EQ(CleanDescription("\xF4\x90\x80\x80|\xF0\x9F\x98\x80"), "????|\xF0\x9F\x98\x80");
  EXPECT_EQ(CleanDescription("\xE6\x97"), "??");
  EXPECT_EQ(CleanDescription(std::string(3, '\0')), "   ");
  EXPECT_EQ(CleanDescription("a\xC2\x9Bm|\xE2\x80\xAE|\xD8\x9C"), "a?m|?|?");  // CSI, RLO, ALM
}

TEST(TopologyTextTest, ExcerptsAreShortAndWhole) {
  EXPECT_EQ(Excerpt(std::string(5000, 'x')), std::string(80, 'x'));
  EXPECT_EQ(Excerpt(std::string(78, 'x') + "\xE6\x97\xA5"), std::string(78, 'x'));
  EXPECT_EQ(Excerpt(std::string(77, 'x') + "\xE6\x97\xA5y"), std::string(77, 'x') + "\xE6\x97\xA5");
  EXPECT_EQ(Excerpt("\x1b[2J"), " [2J");
}

}  // namespace
}  // namespace coppice::topology_lines_test
