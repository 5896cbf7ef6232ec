#include "daemon/mapping/input/square_matrix.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/line_scanner.h"

namespace coppice {
namespace {

constexpr absl::string_view kMatrixComments = "#%";

// The values of one line. A comma ends a value, and two of them have a value between them, which is
// a hole if nothing stands there; so has a comma at either end of the line.
class RowWords {
 public:
  explicit RowWords(absl::string_view row) : rest_(absl::StripAsciiWhitespace(row)) {
    is_done_ = rest_.empty();
  }
  bool done() const { return is_done_; }
  absl::string_view Next() {
    const absl::string_view word = rest_.substr(0, rest_.find_first_of(", \t\r\v\f"));
    rest_ = absl::StripLeadingAsciiWhitespace(rest_.substr(word.size()));
    const bool has_comma = !rest_.empty() && rest_.front() == ',';
    if (has_comma) rest_ = absl::StripLeadingAsciiWhitespace(rest_.substr(1));
    is_done_ = rest_.empty() && !has_comma;
    return word;
  }

 private:
  absl::string_view rest_;
  bool is_done_;
};

uint64_t CountWords(absl::string_view row) {
  uint64_t count = 0;
  for (RowWords words(row); !words.done(); words.Next()) ++count;
  return count;
}

using Visitor = absl::FunctionRef<void(uint32_t row, uint32_t column, double value)>;

// The number of rows: the only number of the first line that says something, after which `lines`
// goes on to the next, or how many values that line holds, which is then the first row.
absl::StatusOr<uint64_t> ReadCount(LineScanner& lines, uint32_t most, bool& has_row) {
  uint64_t count = CountWords(lines.rest());
  has_row = true;
  if (count == 1) {
    const absl::string_view word = lines.NextWord();
    if (!ParseCount(word, count)) {
      return lines.Error(absl::StrCat(Quoted(word), " is no number of rows"));
    }
    if (count >= 1 && count <= most) has_row = lines.NextLineThatSays(kMatrixComments);
  }
  if (count >= 1 && count <= most) return count;
  return lines.Error(absl::StrCat("the matrix has ", count, " rows; give 1 to ", most));
}

absl::Status ReadRow(const LineScanner& lines, absl::string_view value, uint64_t row,
                     uint64_t count, Visitor visit) {
  RowWords words(lines.rest());
  const auto at = [&](uint64_t column) {
    return absl::StrCat("row ", row + 1, ", column ", column + 1, ": ");
  };
  for (uint64_t column = 0; column < count; ++column) {
    if (words.done()) {
      return lines.Error(absl::StrCat(at(column), "the ", value, " is missing, the row has ",
                                      column, " of ", count));
    }
    double number = 0;
    const absl::Status status = ParseWeight(words.Next(), number);
    if (!status.ok()) {
      return lines.Error(absl::StrCat(at(column), value, " ", status.message()));
    }
    visit(static_cast<uint32_t>(row), static_cast<uint32_t>(column), number);
  }
  if (words.done()) return absl::OkStatus();
  return lines.Error(absl::StrCat("row ", row + 1, " has ", CountWords(lines.rest()),
                                  " columns; the matrix has ", count, " rows and columns"));
}

// Calls visit(row, column, value), from 0 and row after row, and returns the number of rows, at
// most `most`. `value` is what an error calls a value, such as "distance".
absl::StatusOr<uint32_t> ReadSquareMatrix(absl::string_view text, absl::string_view origin,
                                          absl::string_view value, uint32_t most, Visitor visit) {
  LineScanner lines(text, origin);
  if (!lines.NextLineThatSays(kMatrixComments)) {
    return lines.ErrorOfAll(absl::StrCat("is empty; give a square matrix of ", value, "s"));
  }
  bool has_row = false;
  ASSIGN_OR_RETURN(const uint64_t count, ReadCount(lines, most, has_row));
  uint64_t row = 0;
  for (; has_row; has_row = lines.NextLineThatSays(kMatrixComments), ++row) {
    if (row == count) {
      return lines.Error(
          absl::StrCat("the matrix is not square: more than ", count, " rows of as many columns"));
    }
    RETURN_IF_ERROR(ReadRow(lines, value, row, count, visit));
  }
  if (row == count) return static_cast<uint32_t>(count);
  return lines.ErrorOfAll(
      absl::StrCat("the matrix is not square: ", row, " rows of ", count, "; is it cut off?"));
}

// The next word of the text, whatever line it is on; "" at the end.
absl::string_view NextWordOfAll(LineScanner& lines) {
  absl::string_view word = lines.NextWord();
  while (word.empty() && lines.NextLine()) word = lines.NextWord();
  return word;
}

std::string Position(absl::string_view matrix, uint64_t index, uint64_t n) {
  return absl::StrCat(matrix, " in row ", index / n + 1, ", column ", index % n + 1);
}

// Calls visit(row, column, value) for each number of one matrix.
template <class Visitor>
absl::Status ReadMatrix(LineScanner& lines, absl::string_view matrix, uint64_t n,
                        const Visitor& visit) {
  for (uint64_t i = 0; i < n * n; ++i) {
    const absl::string_view word = NextWordOfAll(lines);
    if (word.empty()) {
      return lines.ErrorOfAll(absl::StrCat("ends before the ", Position(matrix, i, n), " of ", n,
                                           " by ", n, " each; is it cut off?"));
    }
    double value = 0;
    const absl::Status status = ParseWeight(word, value);
    if (!status.ok()) {
      return lines.Error(absl::StrCat(Position(matrix, i, n), ": ", status.message()));
    }
    visit(static_cast<uint32_t>(i / n), static_cast<uint32_t>(i % n), value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PatternPointer> ReadDensePattern(absl::string_view text, absl::string_view origin) {
  std::vector<Pattern::Entry> entries;
  ASSIGN_OR_RETURN(const uint32_t ranks,
                   ReadSquareMatrix(text, origin, "weight", Pattern::kMaxRanks,
                                    [&](uint32_t row, uint32_t column, double bytes) {
                                      if (bytes > 0) entries.push_back({row, column, bytes, 0});
                                    }));
  auto pattern = Pattern::Make(ranks, std::move(entries));
  RETURN_IF_ERROR(Annotate(pattern.status(), origin));
  return pattern;
}

absl::StatusOr<DistancesPointer> ReadDistanceMatrix(absl::string_view text,
                                                    absl::string_view origin) {
  std::vector<double> values;
  ASSIGN_OR_RETURN(
      const uint32_t places,
      ReadSquareMatrix(text, origin, "distance", PlaceDistances::kMaxMatrixPlaces,
                       [&](uint32_t, uint32_t, double value) { values.push_back(value); }));
  return PlaceDistances::Matrix(places, std::move(values));
}

absl::StatusOr<QapInstance> ReadQaplib(absl::string_view text, absl::string_view origin) {
  LineScanner lines(text, origin);
  const absl::string_view word = NextWordOfAll(lines);
  if (word.empty()) {
    return lines.ErrorOfAll(absl::StrCat("is empty; give the size first, 1 to ",
                                         PlaceDistances::kMaxMatrixPlaces,
                                         ", then distances, then flows"));
  }
  uint64_t n = 0;
  if (!ParseCount(word, n) || n == 0 || n > PlaceDistances::kMaxMatrixPlaces) {
    return lines.Error(absl::StrCat("begins with ", Quoted(word), "; give the size first, 1 to ",
                                    PlaceDistances::kMaxMatrixPlaces,
                                    ", then distances, then flows"));
  }
  std::vector<double> distances;
  RETURN_IF_ERROR(ReadMatrix(
      lines, "distance", n, [&](uint32_t, uint32_t, double value) { distances.push_back(value); }));
  std::vector<Pattern::Entry> flows;
  RETURN_IF_ERROR(ReadMatrix(lines, "flow", n, [&](uint32_t from, uint32_t to, double value) {
    if (value > 0) flows.push_back({from, to, value, 0});
  }));
  if (const absl::string_view more = NextWordOfAll(lines); !more.empty()) {
    return lines.Error(absl::StrCat(Quoted(more), " comes after the two matrices of ", n, " by ", n,
                                    " numbers; is the size wrong?"));
  }
  QapInstance instance;
  ASSIGN_OR_RETURN(instance.distances,
                   PlaceDistances::Matrix(static_cast<uint32_t>(n), std::move(distances)));
  auto pattern = Pattern::Make(static_cast<uint32_t>(n), std::move(flows));
  RETURN_IF_ERROR(Annotate(pattern.status(), origin));
  instance.flows = *std::move(pattern);
  return instance;
}

}  // namespace coppice
