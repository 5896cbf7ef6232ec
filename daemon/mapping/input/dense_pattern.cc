#include "daemon/mapping/input/dense_pattern.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/square_matrix.h"

namespace coppice {

absl::StatusOr<std::shared_ptr<const Pattern>> ReadDensePattern(absl::string_view text,
                                                                absl::string_view origin) {
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

}  // namespace coppice
