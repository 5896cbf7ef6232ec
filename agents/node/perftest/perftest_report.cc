#include "agents/node/perftest/perftest_report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

using Words = std::vector<absl::string_view>;

constexpr absl::string_view kLatencyHeading =
    "#bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec]";
constexpr absl::string_view kBandwidthHeading =
    "#bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]";
// Places in the rows.
constexpr size_t kBytes = 0, kIterations = 1, kTypical = 4, kDeviation = 6, kLatencyColumns = 7;
constexpr size_t kAverage = 3, kBandwidthColumns = 5;
// Beyond that no fabric measures: an hour, and a Pbit/s.
constexpr double kMax = 3.6e9;
constexpr size_t kLastLines = 3, kMaxWords = 200;

absl::Status NoReport(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("gave a report that ", what));
}

Words WordsOf(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
}

// The words of the one row under the heading.
absl::StatusOr<Words> FindRow(absl::string_view output, absl::string_view heading) {
  bool is_headed = false;
  Words row;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    Words words = WordsOf(line);
    if (words.empty()) continue;
    if (words[0] == "#bytes") {
      if (is_headed || !absl::StartsWith(absl::StrJoin(words, " "), heading)) {
        return NoReport("has another heading than this release of the agent knows");
      }
      is_headed = true;
    } else if (is_headed && absl::ascii_isdigit(static_cast<unsigned char>(words[0][0]))) {
      if (!row.empty()) return NoReport("has a second row");
      row = std::move(words);
    }
  }
  if (row.empty()) return NoReport("has no row of figures");
  return row;
}

bool ReadFigure(absl::string_view word, double least, double& figure) {
  const bool is_number = std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.';
  });
  return is_number && absl::SimpleAtod(word, &figure) && std::isfinite(figure) && figure >= least &&
         figure <= kMax;
}

absl::StatusOr<Spread> ParseRow(absl::string_view output, absl::string_view heading, size_t columns,
                                uint32_t bytes, size_t mean, size_t deviation) {
  const absl::StatusOr<Words> row = FindRow(output, heading);
  if (!row.ok()) return row.status();
  uint32_t row_bytes = 0;
  Spread spread;
  if (row->size() < columns) return NoReport("has a row that is cut off");
  if (!absl::SimpleAtoi((*row)[kBytes], &row_bytes) || row_bytes != bytes) {
    return NoReport(absl::StrCat("is not of ", bytes, " bytes"));
  }
  if (!absl::SimpleAtoi((*row)[kIterations], &spread.samples) || spread.samples == 0) {
    return NoReport("has no number of iterations");
  }
  // A figure is printed with two digits after the point.
  if (!ReadFigure((*row)[mean], 0.005, spread.mean) ||
      (deviation != 0 && !ReadFigure((*row)[deviation], 0, spread.deviation))) {
    return NoReport("has a figure that is none");
  }
  return spread;
}

}  // namespace

absl::StatusOr<Spread> ParseLatencyReport(absl::string_view output, uint32_t bytes) {
  return ParseRow(output, kLatencyHeading, kLatencyColumns, bytes, kTypical, kDeviation);
}

absl::StatusOr<Spread> ParseBandwidthReport(absl::string_view output, uint32_t bytes) {
  return ParseRow(output, kBandwidthHeading, kBandwidthColumns, bytes, kAverage, 0);
}

std::string LastWords(absl::string_view output) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    std::string text(absl::StripAsciiWhitespace(line));
    std::replace_if(
        text.begin(), text.end(),
        [](char c) { return !absl::ascii_isprint(static_cast<unsigned char>(c)); }, ' ');
    if (std::any_of(text.begin(), text.end(), absl::ascii_isalpha)) lines.push_back(text);
  }
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  return absl::StrJoin(lines, "; ").substr(0, kMaxWords);
}

}  // namespace coppice
