#include "tests/unit/mapping/reader_properties.h"

#include <cmath>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "daemon/mapping/input/pattern_file.h"
#include "daemon/mapping/input/square_matrix.h"

namespace coppice {
namespace {

using PatternPtr = std::shared_ptr<const Pattern>;
using DistancesPtr = std::shared_ptr<const PlaceDistances>;

// Such sizes are right, but slow to try by the million.
constexpr uint32_t kMaxRanks = 1 << 16;

std::string ErrorViolation(const absl::Status& status) {
  if (status.ok()) return "";
  if (!absl::IsInvalidArgument(status)) return absl::StrCat("code of ", status.ToString());
  if (!absl::StartsWith(status.message(), "fuzz"))
    return absl::StrCat("no origin: ", status.message());
  return "";
}

// Only traces say how many messages there are.
std::string PatternViolation(const Pattern& pattern, bool has_messages) {
  double bytes = 0, messages = 0;
  for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) {
    if (!(pattern.self_bytes(rank) >= 0)) return "self bytes";
    uint32_t above = 0;
    for (const Exchange& e : pattern.exchanges(rank)) {
      if (e.peer < above || e.peer >= pattern.rank_count() || e.peer == rank) return "peers";
      above = e.peer + 1;
      if (!(e.out_bytes >= 0 && e.in_bytes >= 0 && e.both() > 0)) return "weights";
      bytes += e.out_bytes;
    }
    for (const double m : pattern.out_messages(rank)) messages += m;
  }
  if (!std::isfinite(pattern.total_bytes())) return "an infinite total";
  if (std::abs(bytes - pattern.total_bytes()) > 1e-9 * pattern.total_bytes()) return "total";
  for (const Pattern::Entry& e : pattern.empty_messages()) messages += e.messages;
  return messages > 0 && !has_messages ? "messages from nowhere" : "";
}

template <class Reader>
std::string Violation(const char* name, const Reader& read, absl::string_view text) {
  const absl::StatusOr<PatternPtr> pattern = read(text, "fuzz");
  std::string violation = ErrorViolation(pattern.status());
  if (violation.empty() && pattern.ok() && (*pattern)->rank_count() <= kMaxRanks) {
    const bool is_trace = absl::StartsWith(absl::StripAsciiWhitespace(text), "coppice-trace") ||
                          absl::StrContains(text.substr(0, 3), "\xEF\xBB\xBF");
    violation = PatternViolation(**pattern, is_trace);
    const auto again = ReadMatrixMarket(AsMatrixMarket(**pattern), "again");
    if (!again.ok()) {
      violation = again.status().ToString();
    } else if (!SameWeights(**pattern, **again)) {
      violation = "another pattern from its own file";
    }
  }
  return violation.empty() ? "" : absl::StrCat(name, ": ", violation);
}

std::string DistancesViolation(const PlaceDistances& distances) {
  bool symmetric = true;
  for (uint32_t a = 0; a < distances.count(); ++a) {
    for (uint32_t b = 0; b < distances.count(); ++b) {
      const double d = distances(PlaceIndex(a), PlaceIndex(b));
      if (!(d >= 0 && d <= distances.greatest())) return "a distance out of range";
      symmetric = symmetric && d == distances(PlaceIndex(b), PlaceIndex(a));
    }
  }
  return symmetric == distances.symmetric() ? "" : "symmetry";
}

}  // namespace

std::string AsMatrixMarket(const Pattern& pattern) {
  std::string lines;
  size_t count = 0;
  const auto add = [&](uint32_t from, uint32_t to, double bytes) {
    if (bytes == 0) return;
    absl::StrAppendFormat(&lines, "%d %d %.17g\n", from + 1, to + 1, bytes);
    ++count;
  };
  for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) {
    add(rank, rank, pattern.self_bytes(rank));
    for (const Exchange& e : pattern.exchanges(rank)) add(rank, e.peer, e.out_bytes);
  }
  return absl::StrCat("%%MatrixMarket matrix coordinate real general\n", pattern.rank_count(), " ",
                      pattern.rank_count(), " ", count, "\n", lines);
}

bool SameWeights(const Pattern& a, const Pattern& b) {
  if (a.rank_count() != b.rank_count() || a.pair_count() != b.pair_count()) return false;
  for (uint32_t rank = 0; rank < a.rank_count(); ++rank) {
    if (a.self_bytes(rank) != b.self_bytes(rank)) return false;
    if (a.exchanges(rank).size() != b.exchanges(rank).size()) return false;
    for (size_t i = 0; i < a.exchanges(rank).size(); ++i) {
      const Exchange &x = a.exchanges(rank)[i], &y = b.exchanges(rank)[i];
      if (x.peer != y.peer || x.out_bytes != y.out_bytes || x.in_bytes != y.in_bytes) return false;
    }
  }
  return true;
}

std::string PatternReaderViolation(absl::string_view text) {
  const std::string violations = absl::StrCat(
      Violation("Matrix Market", ReadMatrixMarket, text), Violation("METIS", ReadMetisGraph, text),
      Violation("dense", ReadDensePattern, text), Violation("trace", ReadTraceFile, text),
      Violation("any", ReadPattern, text));
  if (!violations.empty()) return violations;
  const auto pattern = ReadPattern(text, "fuzz");
  const auto windows = ReadPattern(absl::StrReplaceAll(text, {{"\n", "\r\n"}}), "fuzz");
  if (pattern.ok() != windows.ok()) return "Windows line ends are read in another way";
  return !pattern.ok() || SameWeights(**pattern, **windows) ? ""
                                                            : "Windows line ends change weights";
}

std::string QaplibViolation(absl::string_view text) {
  const absl::StatusOr<QapInstance> instance = ReadQaplib(text, "fuzz");
  if (!instance.ok()) return ErrorViolation(instance.status());
  if (instance->flows->rank_count() != instance->distances->count()) return "sizes";
  return absl::StrCat(PatternViolation(*instance->flows, false),
                      DistancesViolation(*instance->distances));
}

std::string DistanceMatrixViolation(absl::string_view text) {
  const absl::StatusOr<DistancesPtr> distances = ReadDistanceMatrix(text, "fuzz");
  if (!distances.ok()) return ErrorViolation(distances.status());
  return DistancesViolation(**distances);
}

}  // namespace coppice
