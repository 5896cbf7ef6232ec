#include "proto/text/rank_ranges.h"

#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

std::optional<RankRange> ParseRange(absl::string_view text) {
  const std::vector<absl::string_view> by_stride = absl::StrSplit(text, ':');
  const std::vector<absl::string_view> ends = absl::StrSplit(by_stride[0], '-');
  RankRange range;
  if (by_stride.size() > 2 || ends.size() > 2) return std::nullopt;
  if (!absl::SimpleAtoi(ends.front(), &range.first) ||
      !absl::SimpleAtoi(ends.back(), &range.last)) {
    return std::nullopt;
  }
  if (range.last < range.first || range.last == std::numeric_limits<uint32_t>::max()) {
    return std::nullopt;
  }
  if (by_stride.size() == 2 &&
      (!absl::SimpleAtoi(by_stride[1], &range.stride) || range.stride == 0)) {
    return std::nullopt;
  }
  return range;
}

absl::StatusOr<std::vector<RankRange>> ParseAll(const std::vector<absl::string_view>& parts) {
  std::vector<RankRange> ranges;
  for (const absl::string_view part : parts) {
    const std::optional<RankRange> range = ParseRange(part);
    if (!range) {
      return absl::InvalidArgumentError(
          absl::StrCat("ranks \"", part, "\": write A, A-B or A-B:STRIDE with A <= B"));
    }
    ranges.push_back(*range);
  }
  return ranges;
}

}  // namespace

absl::StatusOr<std::vector<RankRange>> ParseRankRanges(absl::string_view text) {
  return ParseAll(absl::StrSplit(text, ','));
}

absl::StatusOr<std::vector<CommunicatorLine>> ParseCommunicators(absl::string_view text,
                                                                 absl::string_view origin) {
  std::vector<CommunicatorLine> communicators;
  for (const TextLine& line : LinesOf(text)) {
    auto ranges = ParseAll(
        absl::StrSplit(WithoutComment(line.text), absl::ByAnyChar(" \t,"), absl::SkipEmpty()));
    if (!ranges.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(origin, ":", line.number, ": ", ranges.status().message()));
    }
    if (!ranges->empty()) communicators.push_back({line.number, *std::move(ranges)});
  }
  if (!communicators.empty()) return communicators;
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": no communicators; write the ranks of one on each line"));
}

}  // namespace coppice
