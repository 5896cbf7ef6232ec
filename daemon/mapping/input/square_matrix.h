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

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"
#include "daemon/mapping/places.h"

namespace coppice {

// A pattern from a dense text matrix: row u, column v is what rank u sends to rank v, in bytes.
// INVALID_ARGUMENT, naming `origin`, the line, and row and column from 1: empty, not square, too
// many rows, a hole (a value that is missing or no number), a value that ParseWeight refuses,
// weights that overflow together.
absl::StatusOr<PatternPointer> ReadDensePattern(absl::string_view text, absl::string_view origin);

// Measured distances between places: row a, column b is how far b is from a, in any unit. Both
// directions are given and may differ; every pair must be.
// INVALID_ARGUMENT as ReadDensePattern, with at most PlaceDistances::kMaxMatrixPlaces rows.
absl::StatusOr<DistancesPointer> ReadDistanceMatrix(absl::string_view text,
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
