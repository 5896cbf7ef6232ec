// A pattern from a dense text matrix (square_matrix.h): row u, column v is what rank u sends to
// rank v, in bytes, which is what tracing of a whole run prints.
#ifndef COPPICE_DAEMON_MAPPING_INPUT_DENSE_PATTERN_H_
#define COPPICE_DAEMON_MAPPING_INPUT_DENSE_PATTERN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// INVALID_ARGUMENT as ReadSquareMatrix, or weights that overflow together. Keeps the pairs that
// exchange something only.
absl::StatusOr<std::shared_ptr<const Pattern>> ReadDensePattern(absl::string_view text,
                                                                absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_DENSE_PATTERN_H_
