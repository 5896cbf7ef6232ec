// Square matrices as plain text: what dense patterns and measured distances are written in.
//
//   3                 rows and columns; may be missing
//   0 12.5 7
//   12.5 0 1e3
//   7, 1e3, 0         commas between values are fine, too
//
// One row a line; blank lines and lines that begin with # or % are skipped. Knows nothing of what
// the values mean.
#ifndef COPPICE_DAEMON_MAPPING_INPUT_SQUARE_MATRIX_H_
#define COPPICE_DAEMON_MAPPING_INPUT_SQUARE_MATRIX_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

// Calls visit(row, column, value), from 0 and row after row, and returns the number of rows.
// `value` is what an error calls a value, such as "distance". INVALID_ARGUMENT, naming `origin`,
// the line, and row and column from 1: empty, not square, more than `most` rows, a hole (a value
// that is missing or no number), a value that ParseWeight refuses. Time and calls: those of the
// text.
absl::StatusOr<uint32_t> ReadSquareMatrix(
    absl::string_view text, absl::string_view origin, absl::string_view value, uint32_t most,
    absl::FunctionRef<void(uint32_t row, uint32_t column, double value)> visit);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_SQUARE_MATRIX_H_
