// A pattern from a file of any kind that the project reads, told apart by what it says:
//
//   %%MatrixMarket ...                     graph_files.h
//   coppice-trace ...                      pattern_file.h
//   one number, then rows of as many       square_matrix.h
//   a first line of five numbers or more   square_matrix.h, without its size
//   RANKS EDGES [FORMAT [WEIGHTS]]         graph_files.h
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
absl::StatusOr<std::shared_ptr<const Pattern>> ReadPattern(absl::string_view text,
                                                           absl::string_view origin);

// `bytes` with the messages of `counts`: those that it counts, as a trace does, else its weights.
// INVALID_ARGUMENT: another number of ranks.
absl::StatusOr<std::shared_ptr<const Pattern>> WithMessages(const Pattern& bytes,
                                                            const Pattern& counts);

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
absl::StatusOr<std::shared_ptr<const Pattern>> ReadTraceFile(absl::string_view text,
                                                             absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_PATTERN_FILE_H_
