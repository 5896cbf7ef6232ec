// A pattern from a file of any kind that the project reads, told apart by what it says:
//
//   %%MatrixMarket ...                     matrix_market.h
//   coppice-trace ...                      trace_file.h
//   one number, then rows of as many       dense_pattern.h
//   a first line of five numbers or more   dense_pattern.h, without its size
//   RANKS EDGES [FORMAT [WEIGHTS]]         metis_graph.h
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_PATTERN_FILE_H_
