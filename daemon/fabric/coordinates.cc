#include "daemon/fabric/coordinates.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

constexpr size_t kMaxDimensions = 32;
constexpr int32_t kMaxExtent = 1 << 20;

std::optional<GridKind> ParseKind(absl::string_view word) {
  for (const GridKind kind : {GridKind::kTorus, GridKind::kMesh, GridKind::kHypercube}) {
    if (word == ToString(kind)) return kind;
  }
  return std::nullopt;
}

// "4x4x2" split at 'x', each part a plain number below `limit`.
std::optional<std::vector<int32_t>> ParseNumbers(absl::string_view text, char separator,
                                                 int32_t limit) {
  std::vector<int32_t> numbers;
  for (const absl::string_view part : absl::StrSplit(text, separator)) {
    int32_t number = 0;
    const bool digits = !part.empty() && part.size() <= 7 &&
                        part.find_first_not_of("0123456789") == absl::string_view::npos;
    if (!digits || !absl::SimpleAtoi(part, &number) || number >= limit) return std::nullopt;
    if (numbers.size() == kMaxDimensions) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

bool IsConsistent(const GridPosition& position) {
  if (position.at.size() != position.extents.size()) return false;
  for (size_t d = 0; d < position.at.size(); ++d) {
    if (position.at[d] >= position.extents[d]) return false;
    if (position.kind == GridKind::kHypercube && position.extents[d] != 2) return false;
  }
  return true;
}

}  // namespace

absl::string_view ToString(GridKind kind) {
  switch (kind) {
    case GridKind::kTorus:
      return "torus";
    case GridKind::kMesh:
      return "mesh";
    case GridKind::kHypercube:
      return "hypercube";
  }
  return "unknown";
}

std::string FormatPosition(absl::string_view name, const GridPosition& position) {
  return absl::StrCat(name, "(", absl::StrJoin(position.at, ","), ";",
                      absl::StrJoin(position.extents, "x"), " ", ToString(position.kind), ")");
}

std::optional<GridPosition> ParsePosition(absl::string_view description) {
  if (description.empty() || description.back() != ')') return std::nullopt;
  const size_t open = description.rfind('(');
  if (open == absl::string_view::npos) return std::nullopt;
  const absl::string_view inside = description.substr(open + 1, description.size() - open - 2);
  const size_t semicolon = inside.find(';');
  const size_t blank = inside.rfind(' ');
  if (semicolon == absl::string_view::npos || blank == absl::string_view::npos ||
      blank < semicolon) {
    return std::nullopt;
  }
  const auto at = ParseNumbers(inside.substr(0, semicolon), ',', kMaxExtent);
  const auto extents =
      ParseNumbers(inside.substr(semicolon + 1, blank - semicolon - 1), 'x', kMaxExtent + 1);
  const auto kind = ParseKind(inside.substr(blank + 1));
  if (!at || !extents || !kind) return std::nullopt;
  GridPosition position{*at, *extents, *kind};
  if (!IsConsistent(position)) return std::nullopt;
  return position;
}

}  // namespace coppice
