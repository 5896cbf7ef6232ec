// A pattern from a file of any kind that the project reads, told apart by what it says:
//
//   %%MatrixMarket ...                     matrix_market.h
//   coppice-trace ...                      trace_file.h
//   one number, then rows of as many       dense_pattern.h
//   a first line of five numbers or more   dense_pattern.h, without its size
//   RANKS EDGES [FORMAT [WEIGHTS]]         metis_graph.h
#ifndef COPPICE_DAEMON_MAPPING_INPUT_PATTERN_FILE_H_
#define COPPICE_DAEMON_MAPPING_INPUT_PATTERN_FILE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// Errors are those of the reader whose file it is; INVALID_ARGUMENT, too: the text is empty. A
// matrix of 2 to 4 ranks without its size is taken for one where no graph of that size has as many
// lines.
absl::StatusOr<std::shared_ptr<const Pattern>> ReadPattern(absl::string_view text,
                                                           absl::string_view origin);

// `bytes` with the messages that `counts` has for weights. INVALID_ARGUMENT: another number of
// ranks.
absl::StatusOr<std::shared_ptr<const Pattern>> WithMessages(const Pattern& bytes,
                                                            const Pattern& counts);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_PATTERN_FILE_H_
