// Ranks of a job as people write them: numbers and ranges, and a file of communicators of such.
#ifndef COPPICE_PROTO_TEXT_RANK_RANGES_H_
#define COPPICE_PROTO_TEXT_RANK_RANGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

// first, first + stride, ... up to `last`; first <= last, stride > 0, and the count fits 32 bits.
struct RankRange {
  uint32_t first = 0, last = 0, stride = 1;
  uint32_t count() const { return (last - first) / stride + 1; }
};

// "0-15,32-62:2,7": A-B:S counts from A to B by S. INVALID_ARGUMENT names the part.
absl::StatusOr<std::vector<RankRange>> ParseRankRanges(absl::string_view text);

struct CommunicatorLine {
  uint32_t number = 0;  // of the line, from 1
  std::vector<RankRange> ranges;
};
// One communicator a line (text_file.h): ranges between blanks or commas. INVALID_ARGUMENT names
// `origin` and the line; there is one communicator at least.
absl::StatusOr<std::vector<CommunicatorLine>> ParseCommunicators(absl::string_view text,
                                                                 absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_RANK_RANGES_H_
