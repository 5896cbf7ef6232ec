// A pattern from a file of any kind that the project reads, told apart by what it says:
//
//   %%MatrixMarket ...
//   coppice-trace ...                      the project's own
//   one number, then rows of as many       square_matrix.h
//   a first line of five numbers or more   square_matrix.h, without its size
//   RANKS EDGES [FORMAT [WEIGHTS]]         METIS
#ifndef COPPICE_DAEMON_MAPPING_INPUT_PATTERN_FILE_H_
#define COPPICE_DAEMON_MAPPING_INPUT_PATTERN_FILE_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// Errors are those of the reader whose file it is; INVALID_ARGUMENT, too: the text is empty. A
// matrix of 2 to 4 ranks without its size is taken for one unless it is a graph as well, of at
// least 2 ranks and without edges of a rank to itself.
absl::StatusOr<PatternPointer> ReadPattern(absl::string_view text, absl::string_view origin);

// `bytes` with the messages of `counts`: those that it counts, as a trace does, else its weights.
// INVALID_ARGUMENT: another number of ranks.
absl::StatusOr<PatternPointer> WithMessages(const Pattern& bytes, const Pattern& counts);

// How much memory it takes to make a pattern of so many entries (Pattern::Entry) and ranks, from
// above, and to keep it beside another of which it is to have the messages.
size_t MakingBytes(size_t entries, size_t ranks);
// The same for ReadPattern, beside the text. One pass over it.
size_t ReadingBytes(absl::string_view text);

// The project's own trace file: who sent how much to whom in a run of an MPI program, as the
// preloaded library writes it (agents/mpi/trace).
//
//   coppice-trace 1             format and version; another version is refused
//   application lmp             any number of lines "WORD ..." that this version does not know may
//   ranks 64                    stand before "ranks", which says how many there are
//   0 1 100 1024000 8 100 512   rank 0 sent rank 1 100 messages of 1,024,000 bytes together, and
//   1 0 100 1024000             rank 8 100 of 512 bytes; a rank that sent nothing has no line
//   end 3                       how many pairs there are; without it the file was cut off
//
// Text, because a trace is looked at; some 15 bytes for a pair. Bytes may be 0, messages may not.
// Lines may come in any order of ranks, and what is said of a pair several times is added up.
// INVALID_ARGUMENT, with the line: another version, a rank that there is not, a number that is none
// or has no two beside it, no end or another number of pairs than it says, text after it.
absl::StatusOr<PatternPointer> ReadTraceFile(absl::string_view text, absl::string_view origin);

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
// a pattern file weighs 1. Entries of one pair are added up.
//
// INVALID_ARGUMENT, naming `origin` and the line: no such header, complex, skew-symmetric or
// Hermitian values, not square, no or too many rows, an entry outside of the matrix, a weight that
// ParseWeight refuses, more or fewer entries than promised, weights that overflow together.
absl::StatusOr<PatternPointer> ReadMatrixMarket(absl::string_view text, absl::string_view origin);

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
//
// INVALID_ARGUMENT, naming `origin` and the line: no such header, no or too many ranks, a neighbour
// that does not exist, a weight that ParseWeight refuses, an edge whose two lines do not agree,
// other numbers of lines or edges than promised. Edges that are named several times are added up; a
// loop counts once.
absl::StatusOr<PatternPointer> ReadMetisGraph(absl::string_view text, absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_PATTERN_FILE_H_
