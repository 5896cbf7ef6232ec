// Square matrices of numbers as text, alone or in a QAPLIB file.
//
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
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"
#include "daemon/mapping/places.h"

namespace coppice {

// Calls visit(row, column, value), from 0 and row after row, and returns the number of rows.
// `value` is what an error calls a value, such as "distance". INVALID_ARGUMENT, naming `origin`,
// the line, and row and column from 1: empty, not square, more than `most` rows, a hole (a value
// that is missing or no number), a value that ParseWeight refuses. Time and calls: those of the
// text.
absl::StatusOr<uint32_t> ReadSquareMatrix(
    absl::string_view text, absl::string_view origin, absl::string_view value, uint32_t most,
    absl::FunctionRef<void(uint32_t row, uint32_t column, double value)> visit);

// A pattern from a dense text matrix: row u, column v is what rank u sends to rank v, in bytes,
// which is what tracing of a whole run prints.

// INVALID_ARGUMENT as ReadSquareMatrix, or weights that overflow together. Keeps the pairs that
// exchange something only.
absl::StatusOr<std::shared_ptr<const Pattern>> ReadDensePattern(absl::string_view text,
                                                                absl::string_view origin);

// Measured distances between places from a dense text matrix: row a, column b is
// how far b is from a, in any unit. Both directions are given and may differ; every pair must be.

// INVALID_ARGUMENT as ReadSquareMatrix, with at most PlaceDistances::kMaxMatrixPlaces rows.
absl::StatusOr<std::shared_ptr<const PlaceDistances>> ReadDistanceMatrix(absl::string_view text,
                                                                         absl::string_view origin);

// A quadratic assignment problem from a file as QAPLIB keeps it (Burkard, Karisch, Rendl 1997):
// numbers in free format, n, then n x n distances between locations, then n x n flows between
// facilities.
//
//   min over permutations p of   sum over i, j of   flow[i][j] * distance[p(i)][p(j)]
//
// Facilities are ranks and locations places of one rank each: p(i) is the place of rank i. Both
// matrices may be asymmetric and may have diagonals.

struct QapInstance {
  std::shared_ptr<const Pattern> flows;  // neither is null
  std::shared_ptr<const PlaceDistances> distances;
};

// INVALID_ARGUMENT, naming `origin`, the line and which number it is: empty, n of 0 or more than
// PlaceDistances::kMaxMatrixPlaces, a number that ParseWeight refuses, more or fewer than 1 + 2 n^2
// numbers, flows that overflow together. O(n^2).
absl::StatusOr<QapInstance> ReadQaplib(absl::string_view text, absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_SQUARE_MATRIX_H_
