// The files that patterns come from: what each says, what is refused and in which words, and that
// mutated files do no worse.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/mapping/input/pattern_file.h"
#include "daemon/mapping/input/square_matrix.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/reader_files.h"
#include "tests/unit/mapping/reader_properties.h"

namespace coppice::pattern_readers_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// "0>1:5" for each pair with bytes, then "3:7" for what a rank sends to itself.
std::vector<std::string> Weights(absl::string_view text) {
  const auto pattern = ReadPattern(text, "p");
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  std::vector<std::string> weights;
  if (!pattern.ok()) return weights;
  for (uint32_t rank = 0; rank < (*pattern)->rank_count(); ++rank) {
    for (const Exchange& e : (*pattern)->exchanges(rank)) {
      if (e.out_bytes > 0) weights.push_back(absl::StrCat(rank, ">", e.peer, ":", e.out_bytes));
    }
    const double self = (*pattern)->self_bytes(rank);
    if (self > 0) weights.push_back(absl::StrCat(rank, ":", self));
  }
  return weights;
}

std::string Error(absl::string_view text) {
  const absl::Status status = ReadPattern(text, "p").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

std::string Coordinate(absl::string_view rest, absl::string_view kind = "integer general") {
  return absl::StrCat("%%MatrixMarket matrix coordinate ", kind, "\n", rest);
}

TEST(MatrixMarket, EntriesAreDirected) {
  EXPECT_THAT(Weights(Coordinate("% who talks\n\n3 3 3\n1 2 4096\n3 1 64\n\n2 1 1e3\n")),
              ElementsAre("0>1:4096", "1>0:1000", "2>0:64"));
}

TEST(MatrixMarket, SymmetricFilesHoldBothDirections) {
  EXPECT_THAT(Weights(Coordinate("3 3 3\n2 1 5\n3 3 9\n3 2 .5\n", "real symmetric")),
              ElementsAre("0>1:5", "1>0:5", "1>2:0.5", "2>1:0.5", "2:9"));
  EXPECT_THAT(Weights(Coordinate("2 2 1\n2 1\n", "pattern symmetric")),
              ElementsAre("0>1:1", "1>0:1"));
}

TEST(MatrixMarket, LoopsAreKeptApartAndDuplicatesAddedUp) {
  EXPECT_THAT(Weights(Coordinate("2 2 4\n1 2 1\n2 2 3\n1 2 2\n2 2 4\n")),
              ElementsAre("0>1:3", "1:7"));
}

TEST(MatrixMarket, ArraysGoColumnByColumn) {
  EXPECT_THAT(Weights("%%MatrixMarket matrix array real general\n2 2\n0\n1.5\n2.5 7\n"),
              ElementsAre("0>1:2.5", "1>0:1.5", "1:7"));
  EXPECT_THAT(Weights("%%matrixmarket MATRIX Array Integer Symmetric\n3 3\n0 1 2\n0 3\n4\n"),
              ElementsAre("0>1:1", "0>2:2", "1>0:1", "1>2:3", "2>0:2", "2>1:3", "2:4"));
}

TEST(MatrixMarket, NamesWhatIsWrong) {
  const struct {
    std::string text;
    const char* message;
  } kCases[] = {
      {"%%MatrixMarket vector coordinate real general\n1 1 0",
       "line 1: a Matrix Market file begins"},
      {"%%MatrixMarket matrix sparse real general\n1 1 0", "format \"sparse\""},
      {Coordinate("1 1 0", "complex general"), "kind \"complex\""},
      {Coordinate("1 1 0", "real skew-symmetric"), "symmetry \"skew-symmetric\""},
      {"%%MatrixMarket matrix array pattern general\n1 1", "has no values"},
      {Coordinate(""), "sizes is missing"},
      {Coordinate("2 2"), "line 2: the line of sizes is not ROWS COLUMNS ENTRIES"},
      {Coordinate("2 3 0"), "not square: 2 rows and 3 columns"},
      {Coordinate("0 0 0"), "0 ranks; give 1 to 16777216"},
      {Coordinate("16777217 16777217 0"), "16777217 ranks; give 1 to 16777216"},
      {Coordinate("99999999999999999999 99999999999999999999 0"), "is not ROWS COLUMNS ENTRIES"},
      {Coordinate("2 2 4000000000\n1 2 3"), "promises 4000000000 entries, but the file has only"},
      {"%%MatrixMarket matrix array real general\n16777216 16777216\n", "is it cut off?"},
      {Coordinate("2 2 1\n1 3 5"), "line 3: entry 1, 3 is outside of the 2 rows"},
      {Coordinate("2 2 1\n0 1 5"), "entry 0, 1 is outside"},
      {Coordinate("2 2 1\n1 2"), "weight \"\" is no number"},
      {Coordinate("2 2 1\n1 2 5 6"), "more on the line"},
      {Coordinate("2 2 1\n1 2 -5"), "line 3: weight \"-5\" is negative"},
      {Coordinate("2 2 1\n1 2 nan"), "\"nan\" is no number that can be counted with"},
      {Coordinate("2 2 1\n1 2 inf"), "\"inf\" is infinite"},
      {Coordinate("2 2 1\n1 2 1e999"), "\"1e999\" is more than a double holds"},
      {Coordinate("2 2 1\n1 2 x"), "\"x\" is no number"},
      {Coordinate("2 2 2\n1 2 1.7e308\n1 2 1.7e308"), "more than a double holds; scale them down"},
      {Coordinate("2 2 1\n1 2 5\n2 1 5"), "line 4: more than the 1 entries promised"},
      {Coordinate("2 2 2\n1 2 5"), "p: promises 2 entries, but has 1"},
      {"%%MatrixMarket matrix array real general\n2 2\n0 1 2", "promises 4 values, but has 3"},
      {"%%MatrixMarket matrix array real general\n2 2\n0 1 2 3\n4",
       "line 4: more than the 4 values"},
      {"%%MatrixMarket matrix array real general\n2 2\n0 -1 2 3\n", "\"-1\" is negative"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_THAT(Error(text), HasSubstr(message));
    EXPECT_THAT(Error(text), StartsWith("p"));
  }
}

TEST(MetisGraph, HalfOfAnEdgeGoesEachWay) {
  EXPECT_THAT(Weights("% a path\n3 2 001\n2 4096\n1 4096 3 7\n# the end\n2 7\n"),
              ElementsAre("0>1:2048", "1>0:2048", "1>2:3.5", "2>1:3.5"));
}

TEST(MetisGraph, EveryFormat) {
  const std::vector<std::string> path = {"0>1:0.5", "1>0:0.5", "1>2:0.5", "2>1:0.5"};
  EXPECT_EQ(Weights("3 2\n2\n1 3\n2\n"), path);
  EXPECT_EQ(Weights("3 2 0\n2\n1 3\n2\n"), path);
  EXPECT_EQ(Weights("3 2 001\n2 1\n1 1 3 1\n2 1\n"), path);
  EXPECT_EQ(Weights("3 2 1\n2 1\n1 1 3 1\n2 1\n"), path);
  EXPECT_EQ(Weights("3 2 010\n9 2\n8 1 3\n7 2\n"), path);
  EXPECT_EQ(Weights("3 2 10 2\n9 9 2\n8 8 1 3\n7 7 2\n"), path);
  EXPECT_EQ(Weights("3 2 100\n9 2\n8 1 3\n7 2\n"), path);
  EXPECT_EQ(Weights("3 2 110 2\n5 9 9 2\n5 8 8 1 3\n5 7 7 2\n"), path);
  EXPECT_EQ(Weights("3 2 111\n5 9 2 1\n5 8 1 1 3 1\n5 7 2 1\n"), path);
  EXPECT_EQ(Weights("3 2 011\n9 2 1\n8 1 1 3 1\n7 2 1"), path);
}

TEST(MetisGraph, BlankLinesAreRanksThatTalkToNobody) {
  EXPECT_THAT(Weights("4 1\n\n4\n\n2\n"), ElementsAre("1>3:0.5", "3>1:0.5"));
  const auto cut = ReadPattern("4 1\n2\n1\n\n", "p").value();
  EXPECT_EQ(cut->rank_count(), 4u);
  EXPECT_EQ(cut->pair_count(), 1u);
}

TEST(MetisGraph, LoopsCountOnceAndDuplicatesAreAddedUp) {
  EXPECT_THAT(Weights("2 3 001\n1 8 2 3 2 4\n1 4 1 3\n"), ElementsAre("0>1:3.5", "0:8", "1>0:3.5"));
  EXPECT_THAT(Weights("2 2\n1 2\n1\n"), ElementsAre("0>1:0.5", "0:1", "1>0:0.5"));
}

TEST(MetisGraph, NamesWhatIsWrong) {
  const struct {
    const char *text, *message;
  } kCases[] = {
      {"4 1\n2\n1\n", "promises 4 vertices, but has lines of 2"},
      {"3000000 0\n", "promises 3000000 vertices, but has lines of 0"},
      {"3 x\n", "line 1: a graph begins with the line RANKS EDGES"},
      {"0 0\n", "0 ranks; give 1 to"},
      {"16777217 0\n", "16777217 ranks; give 1 to 16777216"},
      {"3 99999999\n", "99999999 edges, but the file has only"},
      {"3 2 002\n2\n1 3\n2\n", "format \"002\""},
      {"3 2 0011\n2\n1 3\n2\n", "format \"0011\""},
      {"3 2 010 9999\n2\n1 3\n2\n", "at most 1024 weights"},
      {"3 2\n2\n1 4\n2\n", "line 3: vertex 2 has the neighbour \"4\"; give 1 to 3"},
      {"3 2\n2\n1 0\n2\n", "line 3: vertex 2 has the neighbour \"0\""},
      {"3 2\n2\n1 3.5\n2\n", "\"3.5\""},
      {"3 2 001\n2 1\n1 1 3\n2 1\n", "line 3: weight of edge 2 - 3: \"\" is no number"},
      {"3 2 001\n2 -1\n1 1 3 1\n2 1\n", "line 2: weight of edge 1 - 2: \"-1\" is negative"},
      {"3 2 001\n2 nan\n1 1 3 1\n2 1\n", "\"nan\" is no number that"},
      {"3 2 001\n2 inf\n1 1 3 1\n2 1\n", "\"inf\" is infinite"},
      {"3 2 010\nx 2\n8 1 3\n7 2\n", "line 2: size or weight of vertex 1: \"x\" is no number"},
      {"2 1 001\n2 1.7e308 2 1.7e308 2 1.7e308\n1 1\n", "2 neighbours in all lines, but"},
      {"2 3 001\n2 1.7e308 2 1.7e308 2 1.7e308\n1 1e308 1 1 1 1\n", "scale them down"},
      {"3 2\n2\n1 3\n2\n1\n", "line 5: a line after those of the 3 vertices"},
      {"3 3\n2\n1 3\n2\n",
       "promises 3 edges, which is 6 neighbours in all lines, but the lines name 4"},
      {"3 3\n2\n1 3\n2 1\n", "but the lines name 5"},
      {"% c\n3 2 001\n2 5\n% c\n1 6 3 1\n2 1\n",
       "line 3: vertex 1 gives its edge to 2 the weight 5, but line 5 of vertex 2 says 6"},
      {"3 2 001\n2 5\n3 1\n1 5 2 1\n",
       "line 2: vertex 1 gives its edge to 2 the weight 5, but line 3"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_THAT(Error(text), HasSubstr(message));
    EXPECT_THAT(Error(text), StartsWith("p"));
  }
}

TEST(DensePattern, RowsSend) {
  EXPECT_THAT(Weights("3\n0 1 2\n\n# row 1\n3 0 0\n0,0.5 ,\t9\n"),
              ElementsAre("0>1:1", "0>2:2", "1>0:3", "2>1:0.5", "2:9"));
  EXPECT_THAT(Weights("\xef\xbb\xbf"
                      "5 0 0 0 1\n0 0 0 0 0\n0 0 0 0 0\n0 0 0 0 0\n0 2 0 0 0"),
              ElementsAre("0>4:1", "0:5", "4>1:2"));
  EXPECT_THAT(Weights("0 4\n4 0\n"), ElementsAre("0>1:4", "1>0:4"));
  EXPECT_THAT(Weights("0,4\n4,0\n"), ElementsAre("0>1:4", "1>0:4"));
  EXPECT_THAT(Weights("1\n6\n"), ElementsAre("0:6"));
}

TEST(DensePattern, NamesWhatIsWrong) {
  const struct {
    const char *text, *message;
  } kCases[] = {
      {"", "p: is empty"},
      {"\n# nothing\n", "p: is empty"},
      {"0\n", "the matrix has 0 rows; give 1 to 16777216"},
      {"-3\n", "\"-3\" is no number of rows"},
      {"99999999\n0\n", "99999999 rows; give 1 to 16777216"},
      {"2\n0 1\n", "not square: 1 rows of 2"},
      {"2\n0 1\n1 0\n0 0\n", "line 4: the matrix is not square: more than 2 rows"},
      {"2\n0 1\n1\n", "line 3: row 2, column 2: the weight is missing, the row has 1 of 2"},
      {"2\n0 1 2\n1 0 2\n", "line 2: row 1 has 3 columns; the matrix has 2 rows"},
      {"2\n0 -1\n1 0\n", "line 2: row 1, column 2: weight \"-1\" is negative"},
      {"2\n0 nan\n1 0\n", "\"nan\" is no number that"},
      {"2\n0 Infinity\n1 0\n", "\"Infinity\" is infinite"},
      {"2\n0,,1\n1 0\n", "column 2: weight \"\" is no number"},
      {"2\n0 1e308\n1e308 0\n", "p: the pattern's weights add up to more than a double holds"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_THAT(Error(text), HasSubstr(message));
    EXPECT_THAT(Error(text), StartsWith("p"));
  }
}

TEST(ReadPattern, TellsSmallGraphsFromSmallMatrices) {
  EXPECT_THAT(Weights("3 3 001 1\n2 5 3 5\n1 5 3 5\n1 5 2 5\n"),
              ElementsAre("0>1:2.5", "0>2:2.5", "1>0:2.5", "1>2:2.5", "2>0:2.5", "2>1:2.5"));
  EXPECT_THAT(Weights("0 3 0\n1 0 0\n0 1 0\n"), ElementsAre("0>1:3", "1>0:1", "2>1:1"));
  EXPECT_THAT(Weights("1 0\n"), ElementsAre());
}

// As graphs these would be one rank that talks to itself, and two that do.
TEST(ReadPattern, TakesSquaresWithLoopsForMatrices) {
  EXPECT_THAT(Weights("1 1\n1 1\n"), ElementsAre("0>1:1", "0:1", "1>0:1", "1:1"));
  EXPECT_THAT(Weights("1 2\n1 1\n"), ElementsAre("0>1:2", "0:1", "1>0:1", "1:1"));
  EXPECT_THAT(Weights("1 1\n1 0\n"), ElementsAre("0>1:1", "0:1", "1>0:1"));
  EXPECT_THAT(Weights("2 3 0\n1 1 2\n1 2 2\n"),
              ElementsAre("0>1:3", "0:2", "1>0:1", "1>2:2", "1:1", "2>0:1", "2>1:2", "2:2"));
}

TEST(WithMessages, AddsCountsToBytes) {
  const auto bytes = ReadPattern("2\n3 100\n0 0\n", "b").value();
  const auto counts = ReadPattern("2\n0 7\n8 0\n", "c").value();
  const auto both = WithMessages(*bytes, *counts).value();
  EXPECT_EQ(both->total_bytes(), 100);
  EXPECT_EQ(both->self_bytes(0), 3);
  EXPECT_THAT(both->out_messages(0), ElementsAre(7));
  EXPECT_EQ(both->total_messages(), 7 + 8);  // 8 of them carry nothing
  ASSERT_EQ(both->empty_messages().size(), 1u);
  EXPECT_EQ(both->empty_messages()[0].from, 1u);
  EXPECT_EQ(both->empty_messages()[0].messages, 8);
  const auto other = ReadPattern("3\n0 7 1\n8 0 1\n1 1 1\n", "c").value();
  EXPECT_THAT(std::string(WithMessages(*bytes, *other).status().message()),
              HasSubstr("messages of 3 ranks for a pattern of 2"));
}

// A trace says both; as --messages it is asked for its messages, those without bytes and of a rank
// to itself, too.
TEST(WithMessages, TakesWhatATraceCounts) {
  const auto bytes = ReadPattern("3\n3 100 0\n0 0 50\n0 0 0\n", "b").value();
  const auto trace =
      ReadPattern("coppice-trace 1\nranks 3\n0 0 4 16 1 2 1000\n1 0 5 0\n2 1 6 70\nend 4\n", "t")
          .value();
  const auto both = WithMessages(*bytes, *trace).value();
  EXPECT_EQ(both->total_bytes(), 150);
  EXPECT_EQ(both->self_bytes(0), 3);
  EXPECT_THAT(both->out_messages(0), ElementsAre(2));
  EXPECT_THAT(both->out_messages(1), ElementsAre(0, 0));  // 5 to rank 0 carry nothing
  EXPECT_EQ(both->total_messages(), 2 + 5 + 6);
  EXPECT_EQ(both->empty_messages().size(), 3u);
  const auto of_itself = ReadPattern("coppice-trace 1\nranks 3\n0 0 4 16\nend 1\n", "t").value();
  EXPECT_EQ(WithMessages(*bytes, *of_itself).value()->empty_messages()[0].messages, 4);
  EXPECT_EQ(WithMessages(*trace, *trace).value()->total_messages(), trace->total_messages());
}

TEST(ReadTrace, AddsUpPairsOfRanks) {
  const std::string text =
      "coppice-trace 1\napplication my program\nmpi any\nranks 4\n"
      "0 1 3 4096 2 1 0\n2 2 5 50 0 1 7\n0 1 1 4\nend 5\n";
  EXPECT_THAT(Weights(text), ElementsAre("0>1:4100", "2>0:7", "2:50"));
  const auto pattern = ReadPattern(text, "t").value();
  EXPECT_EQ(pattern->rank_count(), 4u);
  EXPECT_THAT(pattern->out_messages(0), ElementsAre(4, 0));
  EXPECT_EQ(pattern->self_bytes(2), 50);
  EXPECT_EQ(pattern->total_messages(), 3 + 1 + 1 + 1);  // those of 2 to itself are apart
  ASSERT_EQ(pattern->empty_messages().size(), 2u);
  EXPECT_EQ(ReadPattern("coppice-trace 1\nranks 2\nend 0\n", "t").value()->pair_count(), 0u);
}

TEST(ReadTrace, SaysWhatIsWrong) {
  const auto error = [](absl::string_view rest) {
    return std::string(ReadPattern(absl::StrCat("coppice-trace ", rest), "t").status().message());
  };
  EXPECT_THAT(error("2\nranks 2\nend 0\n"), HasSubstr("t, line 1: a trace of version \"2\""));
  EXPECT_THAT(error("1\n0 1 1 1\nend 1\n"), HasSubstr("line 2: the line ranks COUNT is missing"));
  EXPECT_THAT(error("1\nranks 0\nend 0\n"), HasSubstr("line 2: the line is not ranks COUNT"));
  EXPECT_THAT(error("1\nranks 2\n2 1 1 1\nend 1\n"),
              HasSubstr("line 3: sender \"2\" is none of the ranks 0 to 1"));
  EXPECT_THAT(error("1\nranks 2\n0 -1 1 1\nend 1\n"), HasSubstr("receiver \"-1\" is none"));
  EXPECT_THAT(error("1\nranks 2\n0 1 1\nend 1\n"), HasSubstr("followed by MESSAGES BYTES"));
  EXPECT_THAT(error("1\nranks 2\n0 1 0 5\nend 1\n"), HasSubstr("followed by MESSAGES BYTES"));
  EXPECT_THAT(error("1\nranks 2\n0\nend 0\n"), HasSubstr("no receivers"));
  EXPECT_THAT(error("1\nranks 2\n0 1 1 5\nend 2\n"), HasSubstr("the file has 1 pairs, but"));
  EXPECT_THAT(error("1\nranks 2\n0 1 1 5\n"), HasSubstr("t: has no end"));
  EXPECT_THAT(error("1\nranks 2\nend 0\n1 0 1 1\n"), HasSubstr("line 4: there is more after"));
}

// The bytes matrix is directed, the graph its sum of both directions, scaled down.
TEST(ReadPattern, ReadsWhatWasTraced) {
  for (const char* name : {"lammps_melt", "lammps_peptide", "openfoam_pitz"}) {
    const std::string base = absl::StrCat("patterns/comm_", name, "64.");
    const auto bytes = ReadPattern(DataText(absl::StrCat(base, "bytes.mat")), "b").value();
    const auto messages = ReadPattern(DataText(absl::StrCat(base, "msgs.mat")), "m").value();
    const auto graph = ReadPattern(DataText(absl::StrCat(base, "graph")), "g").value();
    EXPECT_EQ(bytes->rank_count(), 64u);
    EXPECT_EQ(messages->rank_count(), 64u);
    EXPECT_EQ(graph->rank_count(), 64u);
    EXPECT_FALSE(bytes->symmetric());
    EXPECT_TRUE(graph->symmetric());
    EXPECT_GT(WithMessages(*bytes, *messages).value()->total_messages(), 0);
    EXPECT_EQ(graph->pair_count(), bytes->pair_count());
  }
}

// A mesh as METIS is given them, of 55,000 vertices: a ring with chords over 2 and 3.
TEST(ReadPattern, ReadsALargeMesh) {
  constexpr uint32_t kVertices = 55'000;
  std::string text = absl::StrCat(kVertices, " ", 3 * kVertices, "\n");
  for (uint32_t v = 0; v < kVertices; ++v) {
    for (const uint32_t ahead : {1u, 2u, 3u, kVertices - 3, kVertices - 2, kVertices - 1}) {
      absl::StrAppend(&text, (v + ahead) % kVertices + 1, " ");
    }
    text += "\n";
  }
  const auto mesh = ReadPattern(text, "mesh").value();
  EXPECT_EQ(mesh->rank_count(), kVertices);
  EXPECT_EQ(mesh->pair_count(), 3 * kVertices);
}

TEST(ReadPattern, SurvivesMutatedFiles) {
  const std::string seeds[] = {
      Coordinate("% c\n4 4 4\n1 2 4096\n3 1 64\n4 4 1\n2 3 1e3\n", "real symmetric"),
      "%%MatrixMarket matrix array real general\n3 3\n0 1 2\n3 0 5\n6 7 0\n",
      "% c\n4 4 011 1\n1 2 5 3 6\n1 1 5\n1 1 6 4 7 4 1\n1 3 8\n",
      "3\n0 1 2\n3 0 4\n5 6 0\n",
      "0 1, 2.5 3 1e9\n0 0 0 0 0\n0 0 0 0 0\n1 1 1 1 1\n0 0 0 0 9\n",
      "coppice-trace 1\napplication a b\nranks 4\n0 1 3 4096 2 1 0\n3 0 1 1e3\nend 3\n",
      "coppice-trace 1\nranks 3\n1 1 2 70 2 2 6\n0 2 9 1\nend 3\n",
  };
  std::mt19937_64 rng(TestSeed());
  const int rounds = FullTier() ? 200'000 : 20'000;
  for (int round = 0; round < rounds; ++round) {
    const std::string text = Mutated(rng, seeds[round % std::size(seeds)]);
    ASSERT_EQ(PatternReaderViolation(text), "") << absl::CEscape(text);
  }
}

}  // namespace
}  // namespace coppice::pattern_readers_test
