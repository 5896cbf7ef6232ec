// An order of ranks as the files that launchers read:
//
//   permutation   line r: the position in the present order that rank r moves to
//   rankfile      Open MPI, mpirun --rankfile: "rank 0=node17 slot=3", the core counted by host
//   hostfile      Open MPI, mpirun --hostfile FILE --map-by seq: line r is rank r's host. Without
//                 the sequential mapper the lines of one host are added up and the order is lost
//   machinefile   MPICH and its kin (Hydra), mpiexec -f: "node17:2" for each run of ranks on one
//                 host; Hydra joins lines of one host only where they follow each other
//   slurm         SLURM_HOSTFILE for srun --distribution=arbitrary: line r is rank r's host
//
// Texts only; who writes them where is the caller's business.
#ifndef COPPICE_DAEMON_MAPPING_OUTPUT_LAUNCH_FILE_H_
#define COPPICE_DAEMON_MAPPING_OUTPUT_LAUNCH_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coppice {

// In the order of LaunchFormatNames (proto/text/option_words.h).
enum class LaunchFormat : uint8_t { kPermutation, kRankfile, kHostfile, kMachinefile, kSlurm };

// "permutation", "rankfile", "hostfile", "machinefile", "slurm"; nullopt: none of them.
std::optional<LaunchFormat> ParseLaunchFormat(absl::string_view name);

// `slot_of_rank` as MappingAnswer::slots, `host_of_slot` the name of the host that each slot is on;
// empty: places without names. FAILED_PRECONDITION: every format but the permutation needs names;
// a name that the format cannot hold.
absl::StatusOr<std::string> LaunchText(LaunchFormat format,
                                       absl::Span<const absl::string_view> host_of_slot,
                                       absl::Span<const uint32_t> slot_of_rank);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_OUTPUT_LAUNCH_FILE_H_
