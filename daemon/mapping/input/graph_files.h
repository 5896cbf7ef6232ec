// Patterns from the two common files of sparse graphs: MatrixMarket and METIS.
#ifndef COPPICE_DAEMON_MAPPING_INPUT_GRAPH_FILES_H_
#define COPPICE_DAEMON_MAPPING_INPUT_GRAPH_FILES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

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

// INVALID_ARGUMENT, naming `origin` and the line: no such header, complex, skew-symmetric or
// Hermitian values, rows and columns that differ, no or more than Pattern::kMaxRanks rows, an entry
// outside of the matrix, a weight that ParseWeight refuses, more or fewer entries than promised,
// weights that overflow together. Entries of one pair are added up. O(entries log entries).
absl::StatusOr<std::shared_ptr<const Pattern>> ReadMatrixMarket(absl::string_view text,
                                                                absl::string_view origin);

// A pattern from a graph file as METIS reads it (METIS manual 5.1.0, section 4.1.1).
//
//   3 2 001           ranks, edges, what lines hold: vertex sizes, vertex weights, edge weights
//   2 4096 3 64       rank 0 exchanges 4096 bytes with rank 1 and 64 with rank 2 (counted from 1)
//   1 4096
//   1 64
//
// The graph has no directions: the weight of an edge is the bytes of both together, half each way;
// it stands in both ranks' lines. Without edge weights each weighs 1. Sizes and weights of vertices
// say nothing of communication and are passed over. A blank line is a rank that talks to nobody;
// lines that begin with % or # are comments.

// INVALID_ARGUMENT, naming `origin` and the line: no such header, no or more than
// Pattern::kMaxRanks ranks, a neighbour that does not exist, a weight that ParseWeight refuses, an
// edge whose two lines do not agree, other numbers of lines or edges than promised. Edges that are
// named several times are added up; a loop counts once. O(edges log edges).
absl::StatusOr<std::shared_ptr<const Pattern>> ReadMetisGraph(absl::string_view text,
                                                              absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_GRAPH_FILES_H_
