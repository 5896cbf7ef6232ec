#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/line_scanner.h"
#include "daemon/mapping/input/pattern_file.h"

namespace coppice {
namespace {

struct Header {
  bool is_array = false, has_values = true, is_symmetric = false;
  uint64_t ranks = 0, entries = 0;
};

std::string NextLower(LineScanner& lines) { return absl::AsciiStrToLower(lines.NextWord()); }

absl::Status ReadBanner(LineScanner& lines, Header& header) {
  const bool has_line = lines.NextLine();
  if (!has_line || NextLower(lines) != "%%matrixmarket" || NextLower(lines) != "matrix") {
    return lines.Error(
        "a Matrix Market file begins with \"%%MatrixMarket matrix coordinate integer general\" or "
        "the like");
  }
  const std::string format = NextLower(lines), field = NextLower(lines),
                    symmetry = NextLower(lines);
  if (format != "coordinate" && format != "array") {
    return lines.Error(absl::StrCat("format ", Quoted(format), "; give coordinate or array"));
  }
  header.is_array = format == "array";
  header.has_values = field != "pattern";
  if (field != "real" && field != "double" && field != "integer" && field != "pattern") {
    return lines.Error(
        absl::StrCat("values of kind ", Quoted(field), "; give real, integer or pattern"));
  }
  if (header.is_array && !header.has_values) {
    return lines.Error("an array of kind pattern has no values; give coordinates");
  }
  header.is_symmetric = symmetry == "symmetric";
  if (symmetry != "general" && symmetry != "symmetric") {
    return lines.Error(absl::StrCat("symmetry ", Quoted(symmetry),
                                    "; give general or symmetric: bytes are never negative"));
  }
  return absl::OkStatus();
}

absl::Status ReadSize(LineScanner& lines, absl::string_view text, Header& header) {
  if (!lines.NextLineThatSays("%")) return lines.Error("the line of sizes is missing");
  uint64_t rows = 0, columns = 0;
  bool is_size = ParseCount(lines.NextWord(), rows) && ParseCount(lines.NextWord(), columns);
  if (!header.is_array) is_size = is_size && ParseCount(lines.NextWord(), header.entries);
  if (!is_size || !lines.NextWord().empty()) {
    return lines.Error(header.is_array ? "the line of sizes is not ROWS COLUMNS"
                                       : "the line of sizes is not ROWS COLUMNS ENTRIES");
  }
  if (rows != columns) {
    return lines.Error(absl::StrCat("the matrix is not square: ", rows, " rows and ", columns,
                                    " columns; each rank has one of both"));
  }
  if (rows == 0 || rows > Pattern::kMaxRanks) {
    return lines.Error(
        absl::StrCat("the matrix is of ", rows, " ranks; give 1 to ", Pattern::kMaxRanks));
  }
  header.ranks = rows;
  if (header.is_array) header.entries = header.is_symmetric ? rows * (rows + 1) / 2 : rows * rows;
  // An entry takes two characters at least; with coordinates four.
  if (header.entries > text.size() / (header.is_array ? 2 : 4) + 1) {
    return lines.Error(absl::StrCat("promises ", header.entries, " entries, but the file has only ",
                                    text.size(), " bytes; is it cut off?"));
  }
  return absl::OkStatus();
}

using Entries = std::vector<Pattern::Entry>;

// `row` and `column` from 0.
void Add(const Header& header, uint64_t row, uint64_t column, double weight, Entries& entries) {
  const auto from = static_cast<uint32_t>(row), to = static_cast<uint32_t>(column);
  entries.push_back({from, to, weight, 0});
  if (header.is_symmetric && from != to) entries.push_back({to, from, weight, 0});
}

absl::Status ReadCoordinate(LineScanner& lines, const Header& header, Entries& entries) {
  uint64_t row = 0, column = 0;
  if (!ParseCount(lines.NextWord(), row) || !ParseCount(lines.NextWord(), column)) {
    return lines.Error(header.has_values ? "an entry is ROW COLUMN VALUE"
                                         : "an entry is ROW COLUMN");
  }
  if (row < 1 || column < 1 || row > header.ranks || column > header.ranks) {
    return lines.Error(absl::StrCat("entry ", row, ", ", column, " is outside of the ",
                                    header.ranks, " rows and columns (counted from 1)"));
  }
  double weight = 1;
  if (header.has_values) {
    const absl::Status status = ParseWeight(lines.NextWord(), weight);
    if (!status.ok()) return lines.Error(absl::StrCat("weight ", status.message()));
  }
  if (!lines.NextWord().empty()) return lines.Error("there is more on the line than one entry");
  Add(header, row - 1, column - 1, weight, entries);
  return absl::OkStatus();
}

absl::Status CutOff(const LineScanner& lines, const Header& header, uint64_t seen,
                    absl::string_view what) {
  return lines.ErrorOfAll(
      absl::StrCat("promises ", header.entries, " ", what, ", but has ", seen, "; is it cut off?"));
}

absl::Status ReadCoordinates(LineScanner& lines, const Header& header, Entries& entries) {
  uint64_t seen = 0;
  while (lines.NextLineThatSays("%")) {
    if (++seen > header.entries) {
      return lines.Error(absl::StrCat("more than the ", header.entries, " entries promised"));
    }
    RETURN_IF_ERROR(ReadCoordinate(lines, header, entries));
  }
  if (seen == header.entries) return absl::OkStatus();
  return CutOff(lines, header, seen, "entries");
}

// Values may share lines.
absl::Status ReadArray(LineScanner& lines, const Header& header, Entries& entries) {
  uint64_t row = 0, column = 0, seen = 0;
  while (lines.NextLineThatSays("%")) {
    for (absl::string_view word = lines.NextWord(); !word.empty(); word = lines.NextWord()) {
      if (++seen > header.entries) {
        return lines.Error(absl::StrCat("more than the ", header.entries, " values promised"));
      }
      double weight = 0;
      const absl::Status status = ParseWeight(word, weight);
      if (!status.ok()) return lines.Error(absl::StrCat("weight ", status.message()));
      if (weight > 0) Add(header, row, column, weight, entries);
      if (++row < header.ranks) continue;
      ++column;
      row = header.is_symmetric ? column : 0;
    }
  }
  if (seen == header.entries) return absl::OkStatus();
  return CutOff(lines, header, seen, "values");
}

}  // namespace

absl::StatusOr<PatternPointer> ReadMatrixMarket(absl::string_view text, absl::string_view origin) {
  LineScanner lines(text, origin);
  Header header;
  RETURN_IF_ERROR(ReadBanner(lines, header));
  RETURN_IF_ERROR(ReadSize(lines, text, header));
  Entries entries;
  if (!header.is_array) entries.reserve(header.entries * (header.is_symmetric ? 2 : 1));
  RETURN_IF_ERROR(header.is_array ? ReadArray(lines, header, entries)
                                  : ReadCoordinates(lines, header, entries));
  auto pattern = Pattern::Make(static_cast<uint32_t>(header.ranks), std::move(entries));
  if (!pattern.ok()) return lines.ErrorOfAll(pattern.status().message());
  return pattern;
}

namespace {

constexpr absl::string_view kGraphComments = "%#";
constexpr uint64_t kMaxWeightsPerVertex = 1 << 10;

struct MetisHeader {
  uint64_t ranks = 0, edges = 0;
  uint64_t passed_over = 0;  // numbers at the beginning of each line: vertex size and weights
  bool has_weights = false;
};

absl::Status CheckCounts(const LineScanner& lines, absl::string_view text,
                         const MetisHeader& header) {
  if (header.ranks == 0 || header.ranks > Pattern::kMaxRanks) {
    return lines.Error(
        absl::StrCat("the graph has ", header.ranks, " ranks; give 1 to ", Pattern::kMaxRanks));
  }
  // An edge is named twice, with two characters each time at least.
  if (header.edges > text.size() / 4 + 1) {
    return lines.Error(absl::StrCat("promises ", header.edges, " edges, but the file has only ",
                                    text.size(), " bytes; is it cut off?"));
  }
  return absl::OkStatus();
}

absl::Status ReadHeader(LineScanner& lines, absl::string_view text, MetisHeader& header) {
  const bool has_line = lines.NextLineThatSays(kGraphComments);
  if (!has_line || !ParseCount(lines.NextWord(), header.ranks) ||
      !ParseCount(lines.NextWord(), header.edges)) {
    return lines.Error("a graph begins with the line RANKS EDGES [FORMAT [WEIGHTS]]");
  }
  const absl::string_view format = lines.NextWord(), weights = lines.NextWord();
  const bool is_format =
      format.size() <= 3 && format.find_first_not_of("01") == absl::string_view::npos;
  uint64_t weights_per_vertex = 1;
  if (!is_format || !lines.NextWord().empty() ||
      (!weights.empty() && !ParseCount(weights, weights_per_vertex)) ||
      weights_per_vertex > kMaxWeightsPerVertex) {
    return lines.Error(absl::StrCat("the header's format ", Quoted(format), " ", Quoted(weights),
                                    "; give three digits such as 001 for edges with weights, and "
                                    "at most ",
                                    kMaxWeightsPerVertex, " weights of each vertex"));
  }
  const std::string digits = absl::StrCat(std::string(3 - format.size(), '0'), format);
  header.has_weights = digits[2] == '1';
  header.passed_over = (digits[0] == '1' ? 1 : 0) + (digits[1] == '1' ? weights_per_vertex : 0);
  return CheckCounts(lines, text, header);
}

// A blank line is a vertex.
bool IsComment(const LineScanner& lines) {
  const char first = lines.NextCharacter();
  return first != '\0' && kGraphComments.find(first) != absl::string_view::npos;
}

struct Reading {
  std::vector<Pattern::Entry> entries;
  uint64_t named = 0, loops = 0;  // neighbours of all lines; those that are the line's own rank
};

absl::Status ReadVertex(LineScanner& lines, const MetisHeader& header, uint32_t rank,
                        Reading& reading) {
  double weight = 1;
  for (uint64_t i = 0; i < header.passed_over; ++i) {
    const absl::Status status = ParseWeight(lines.NextWord(), weight);
    if (!status.ok()) {
      return lines.Error(
          absl::StrCat("size or weight of vertex ", rank + 1, ": ", status.message()));
    }
  }
  weight = 1;
  for (absl::string_view word = lines.NextWord(); !word.empty(); word = lines.NextWord()) {
    uint64_t neighbour = 0;
    if (!ParseCount(word, neighbour) || neighbour < 1 || neighbour > header.ranks) {
      return lines.Error(absl::StrCat("vertex ", rank + 1, " has the neighbour ", Quoted(word),
                                      "; give 1 to ", header.ranks));
    }
    if (header.has_weights) {
      const absl::Status status = ParseWeight(lines.NextWord(), weight);
      if (!status.ok()) {
        return lines.Error(
            absl::StrCat("weight of edge ", rank + 1, " - ", neighbour, ": ", status.message()));
      }
    }
    ++reading.named;
    const uint32_t peer = static_cast<uint32_t>(neighbour - 1);
    if (peer == rank) ++reading.loops;
    reading.entries.push_back({rank, peer, peer == rank ? weight : weight / 2, 0});
  }
  return absl::OkStatus();
}

absl::Status ReadVertices(LineScanner& lines, const MetisHeader& header, Reading& reading) {
  uint32_t rank = 0;
  while (lines.NextLine()) {
    if (IsComment(lines)) continue;
    if (rank < header.ranks) {
      RETURN_IF_ERROR(ReadVertex(lines, header, rank++, reading));
    } else if (lines.NextCharacter() != '\0') {
      return lines.Error(
          absl::StrCat("a line after those of the ", header.ranks, " vertices promised"));
    }
  }
  // One may be missing: a blank line that no line end ends is none.
  if (rank + 1 < header.ranks) {
    return lines.ErrorOfAll(absl::StrCat("promises ", header.ranks, " vertices, but has lines of ",
                                         rank, "; a rank that talks to nobody has a blank line"));
  }
  const uint64_t twice = 2 * header.edges;
  if (reading.named == twice || reading.named + reading.loops == twice) return absl::OkStatus();
  return lines.ErrorOfAll(absl::StrCat("promises ", header.edges, " edges, which is ", twice,
                                       " neighbours in all lines, but the lines name ",
                                       reading.named));
}

// The line of a vertex, to name it; only on the way to an error.
uint64_t LineOf(absl::string_view text, absl::string_view origin, uint32_t rank) {
  LineScanner lines(text, origin);
  lines.NextLineThatSays(kGraphComments);
  uint32_t next = 0;
  while (lines.NextLine()) {
    if (!IsComment(lines) && next++ == rank) break;
  }
  return lines.line();
}

absl::Status CheckBothWays(const Pattern& pattern, absl::string_view text,
                           absl::string_view origin) {
  for (uint32_t rank = 0; !pattern.symmetric() && rank < pattern.rank_count(); ++rank) {
    for (const Exchange& exchange : pattern.exchanges(rank)) {
      if (exchange.out_bytes == exchange.in_bytes) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(origin, ", line ", LineOf(text, origin, rank), ": vertex ", rank + 1,
                       " gives its edge to ", exchange.peer + 1, " the weight ",
                       2 * exchange.out_bytes, ", but line ", LineOf(text, origin, exchange.peer),
                       " of vertex ", exchange.peer + 1, " says ", 2 * exchange.in_bytes,
                       "; both must name the edge alike (directed patterns fit into a "
                       "Matrix Market file)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PatternPointer> ReadMetisGraph(absl::string_view text, absl::string_view origin) {
  LineScanner lines(text, origin);
  MetisHeader header;
  RETURN_IF_ERROR(ReadHeader(lines, text, header));
  Reading reading;
  reading.entries.reserve(2 * header.edges);
  RETURN_IF_ERROR(ReadVertices(lines, header, reading));
  auto pattern = Pattern::Make(static_cast<uint32_t>(header.ranks), std::move(reading.entries));
  if (!pattern.ok()) return lines.ErrorOfAll(pattern.status().message());
  RETURN_IF_ERROR(CheckBothWays(**pattern, text, origin));
  return pattern;
}

}  // namespace coppice
