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
#ifndef COPPICE_DAEMON_MAPPING_INPUT_TRACE_FILE_H_
#define COPPICE_DAEMON_MAPPING_INPUT_TRACE_FILE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// Lines may come in any order of ranks, and what is said of a pair several times is added up.
// INVALID_ARGUMENT, with the line: another version, a rank that there is not, a number that is none
// or has no two beside it, no end or another number of pairs than it says, text after it.
absl::StatusOr<std::shared_ptr<const Pattern>> ReadTraceFile(absl::string_view text,
                                                             absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_TRACE_FILE_H_
