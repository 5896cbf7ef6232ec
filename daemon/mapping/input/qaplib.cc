#include "daemon/mapping/input/qaplib.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/line_scanner.h"

namespace coppice {
namespace {

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
