// A pattern from a Matrix Market file (Boisvert, Pozo, Remington 1996, "The Matrix Market Exchange
// Formats"): the entry in row u, column v is what rank u - 1 sends to rank v - 1, in bytes.
//
//   %%MatrixMarket matrix coordinate integer general
//   % a comment
//   3 3 2             rows, columns, entries
//   1 2 4096          rank 0 sends 4096 bytes to rank 1
//   3 1 64
//
// Coordinate files hold the entries; array files all values, column after column. A symmetric file
// holds one of each two directions, and both weigh as much. Values are real or integer; an entry of
// a pattern file weighs 1.
#ifndef COPPICE_DAEMON_MAPPING_INPUT_MATRIX_MARKET_H_
#define COPPICE_DAEMON_MAPPING_INPUT_MATRIX_MARKET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// INVALID_ARGUMENT, naming `origin` and the line: no such header, complex, skew-symmetric or
// Hermitian values, rows and columns that differ, no or more than Pattern::kMaxRanks rows, an entry
// outside of the matrix, a weight that ParseWeight refuses, more or fewer entries than promised,
// weights that overflow together. Entries of one pair are added up. O(entries log entries).
absl::StatusOr<std::shared_ptr<const Pattern>> ReadMatrixMarket(absl::string_view text,
                                                                absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_MATRIX_MARKET_H_
