// Node lists: what the grammar means, what is refused and in which words, and that writing and
// reading are each other's inverse. A slow reading of the grammar is the oracle.
#include "proto/text/node_list.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/fabric_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabric_text.h"
#include "tests/support/tier.h"

namespace coppice::node_list_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Names = std::vector<std::string>;

Names Parsed(absl::string_view text) {
  const absl::StatusOr<Names> names = ParseNodeList(text);
  EXPECT_TRUE(names.ok()) << names.status();
  return names.ok() ? *names : Names();
}

std::string Refused(absl::string_view text) {
  const absl::StatusOr<Names> names = ParseNodeList(text);
  EXPECT_EQ(names.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(names.status().message());
}

TEST(NodeList, MeansWhatSlurmMeans) {
  EXPECT_THAT(Parsed("n[001-003,130]"), ElementsAre("n001", "n002", "n003", "n130"));
  EXPECT_THAT(Parsed("rack[1-2]node[08-10]"),
              ElementsAre("rack1node08", "rack1node09", "rack1node10", "rack2node08", "rack2node09",
                          "rack2node10"));
  EXPECT_THAT(Parsed("login1, n[8-11]-ib ,x"),
              ElementsAre("login1", "n8-ib", "n9-ib", "n10-ib", "n11-ib", "x"));
  EXPECT_THAT(Parsed("n[1-2]/1"), ElementsAre("n1/1", "n2/1"));
  EXPECT_THAT(Parsed("[7,09,98-101]"), ElementsAre("7", "09", "98", "99", "100", "101"));
  EXPECT_THAT(Parsed("n[001-3]"), ElementsAre("n001", "n002", "n003"));
  EXPECT_THAT(Parsed("n1,n1"), ElementsAre("n1", "n1"));
  EXPECT_THAT(Parsed("  "), IsEmpty());
  EXPECT_THAT(Parsed("n[1-1048576]"), SizeIs(kMaxListedNodes));
}

TEST(NodeList, ErrorsNameWordAndLetter) {
  EXPECT_THAT(Refused("n1,n[3-"), HasSubstr("letter 5, \"n[3-\": a bracket is not closed"));
  EXPECT_THAT(Refused("n1,n3]"),
              HasSubstr("letter 6, \"n3]\": a bracket is closed but not opened"));
  EXPECT_THAT(Refused("n[1[2]]"), HasSubstr("letter 4, \"n[1[\": brackets nest"));
  EXPECT_THAT(Refused("n1,,n2"), HasSubstr("letter 4, \"\": no name between commas"));
  EXPECT_THAT(Refused("n1,"), HasSubstr("letter 4"));
  EXPECT_THAT(Refused("n[9-3]"), HasSubstr("letter 3, \"9-3\": the range ends before it begins"));
  EXPECT_THAT(Refused("n[a-b]"), HasSubstr("letter 3, \"a-b\": brackets hold numbers"));
  EXPECT_THAT(Refused("n[]"), HasSubstr("letter 3, \"\": brackets hold numbers"));
  EXPECT_THAT(Refused("n[1,]"), HasSubstr("letter 5"));
  EXPECT_THAT(Refused("n[-3]"), HasSubstr("\"-3\""));
  EXPECT_THAT(Refused("n[1-2-3]"), HasSubstr("\"1-2-3\""));
  EXPECT_THAT(Refused("n[08-010]"), HasSubstr("different widths"));
  EXPECT_THAT(Refused("n[1234567890123456789]"), HasSubstr("more than 18 digits"));
  EXPECT_THAT(Refused("a[1-9]b[1-9]c[1-9]d[1-9]e[1]f[1]g[1]h[1]i[1]"),
              HasSubstr("brackets in one"));
}

TEST(NodeList, ExpansionIsBounded) {
  EXPECT_THAT(Refused("n[0-1048576]"), HasSubstr("more than 1048576 names"));
  EXPECT_THAT(Refused("n[0-999999999999999999]"), HasSubstr("more than 1048576 names"));
  EXPECT_THAT(Refused("n[0-999999]x[0-999999]y[0-999999]z[0-999999]"), HasSubstr("more than"));
  EXPECT_THAT(Refused("n[0-999999],m[0-999999]"), HasSubstr("letter 13, \"m[0-999999]\""));
  EXPECT_THAT(Refused(std::string(300, 'n')), HasSubstr("longer than 256 letters"));
  EXPECT_THAT(Refused(absl::StrCat(std::string(200, 'n'), "[1-900000]")), HasSubstr("letters"));
}

TEST(NodeList, WritesRunsAsBrackets) {
  EXPECT_EQ(FormatNodeList(Names{}), "");
  EXPECT_EQ(FormatNodeList(Names{"n001", "n002", "n003", "n130"}), "n[001-003,130]");
  EXPECT_EQ(FormatNodeList(Names{"n9", "n10", "login", "n11"}), "n[9-10],login,n11");
  EXPECT_EQ(FormatNodeList(Names{"n99", "n100", "n099"}), "n[99-100,099]");
  EXPECT_EQ(FormatNodeList(Names{"n2", "n1", "n1"}), "n[2,1,1]");
  EXPECT_EQ(FormatNodeList(Names{"a1/1", "a2/1"}), "a1/1,a2/1");
}

TEST(NodeList, SortsByNumberAndFindsWhatIsThereTwice) {
  Names names = {"n10", "m1", "n2", "login", "n02"};
  SortNodeNames(names);
  EXPECT_THAT(names, ElementsAre("login", "m1", "n2", "n02", "n10"));
  EXPECT_EQ(FindRepeated(Names{"a", "b", "a", "b"}), 2u);
  EXPECT_EQ(FindRepeated(Names{"a", "b"}), std::nullopt);
  EXPECT_TRUE(LooksLikeNodeList("n[1]"));
  EXPECT_TRUE(LooksLikeNodeList("a,b"));
  EXPECT_FALSE(LooksLikeNodeList("host with spaces/1"));
}

// Brackets opened one by one, the first first: what a word stands for by the letter.
Names Slowly(const std::string& word) {
  const size_t open = word.find('['), close = word.find(']');
  if (open == std::string::npos) return {word};
  Names names;
  for (size_t i = open + 1; i < close;) {
    const size_t stop = std::min(word.find(',', i), close);
    const std::string range = word.substr(i, stop - i);
    const size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const uint64_t last = std::stoull(dash == std::string::npos ? range : range.substr(dash + 1));
    for (uint64_t n = std::stoull(first); n <= last; ++n) {
      std::string digits = std::to_string(n);
      while (digits.size() < first.size()) digits = "0" + digits;
      const Names rest = Slowly(word.substr(0, open) + digits + word.substr(close + 1));
      names.insert(names.end(), rest.begin(), rest.end());
    }
    i = stop + 1;
  }
  return names;
}

TEST(NodeList, RandomListsReadAsTheSlowReaderReadsThem) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < (FullTier() ? 20'000 : 2'000); ++round) {
    Names words, expected;
    for (uint64_t w = 1 + below(4); w > 0; --w) {
      std::string word;
      for (uint64_t p = 1 + below(3); p > 0; --p) {
        absl::StrAppend(&word, std::string(1 + below(2), static_cast<char>('a' + below(3))));
        if (below(2) == 0) continue;
        Names ranges;
        for (uint64_t r = 1 + below(3); r > 0; --r) {
          const uint64_t first = below(3) == 0 ? 98 + below(4) : below(12);
          std::string range = absl::StrCat(below(2) == 0 ? "0" : "", first);
          const std::string last = absl::StrCat(first + below(4));
          if (below(2) == 0 && range[0] != '0') absl::StrAppend(&range, "-", last);
          ranges.push_back(range);
        }
        absl::StrAppend(&word, "[", absl::StrJoin(ranges, ","), "]");
      }
      const Names names = Slowly(word);
      words.push_back(word);
      expected.insert(expected.end(), names.begin(), names.end());
    }
    const std::string list = absl::StrJoin(words, ",");
    ASSERT_EQ(Parsed(list), expected) << list;
    const std::string written = FormatNodeList(expected);
    ASSERT_EQ(Parsed(written), expected) << written;
  }
}

TEST(NodeList, MutatedListsAreReadOrRefused) {
  std::mt19937_64 random(TestSeed());
  const std::string alphabet = "n019-,[] \n\xff";
  for (int round = 0; round < (FullTier() ? 200'000 : 5'000); ++round) {
    std::string text = "n[001-128,130],rack[1-2]node[01-16],login1";
    for (uint64_t change = 1 + random() % 6; change > 0; --change) {
      const size_t at = random() % text.size();
      const char letter = alphabet[random() % alphabet.size()];
      if (random() % 3 == 0) {
        text.erase(at, 1);
      } else if (random() % 2 == 0) {
        text[at] = letter;
      } else {
        text.insert(at, 1, letter);
      }
    }
    const absl::StatusOr<Names> names = ParseNodeList(text);
    if (names.ok()) {
      ASSERT_EQ(Parsed(FormatNodeList(*names)), *names) << text;
    } else {
      ASSERT_TRUE(absl::StrContains(names.status().message(), "node list, letter ")) << text;
    }
  }
}

TEST(ExpandEndpointNames, LeavesNamesAndExpandsLists) {
  const auto fabric = ReadFabricText(R"(switchguid=0x100(100)
Switch	36 "S-0000000000000100"		# "leaf" enhanced port 0 lid 7 lmc 0
[1]	"H-0000000000000010"[1](11) 		# "n[1] mlx5_0" lid 3 4xHDR
[2]	"H-0000000000000020"[1](21) 		# "n2 mlx5_0" lid 4 4xHDR

caguid=0x10
Ca	1 "H-0000000000000010"		# "n[1] mlx5_0"
[1](11) 	"S-0000000000000100"[1]		# lid 3 lmc 0 "leaf" lid 7 4xHDR

caguid=0x20
Ca	1 "H-0000000000000020"		# "n2 mlx5_0"
[1](21) 	"S-0000000000000100"[2]		# lid 4 lmc 0 "leaf" lid 7 4xHDR
)",
                                     "pair.txt");
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  const auto expand = [&](Names names, size_t limit = 100) {
    return ExpandEndpointNames(**fabric, names, limit, "hosts");
  };
  EXPECT_THAT(*expand({"n[1]", "n2/1", "n[2-3],x"}), ElementsAre("n[1]", "n2/1", "n2", "n3", "x"));
  EXPECT_THAT(*expand({"n[1]/1"}), ElementsAre("n[1]/1"));
  EXPECT_THAT(expand({"n2", "n["}).status().message(), HasSubstr("hosts[1]: node list, letter 2"));
  EXPECT_THAT(expand({"n[1-101]"}).status().message(), HasSubstr("hosts: more than 100 names"));
  EXPECT_THAT(*expand({"n[1-100]"}), SizeIs(100));
}

}  // namespace
}  // namespace coppice::node_list_test
