// What a request for a mapping gets: the order that an algorithm found, verified and measured
// beside the present one, with the reason for it. The present order is the answer where there is
// nothing to find, and where "auto", which promises never to be worse, found nothing better.
#ifndef COPPICE_DAEMON_MAPPING_OUTPUT_MAPPING_ANSWER_H_
#define COPPICE_DAEMON_MAPPING_OUTPUT_MAPPING_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/mapping_problem.h"

namespace coppice {

struct MappingAnswer {
  std::string algorithm;
  Mapping mapping;                // [rank] place
  std::vector<uint32_t> slots;    // [rank] the slot of the present order that it moves to
  MappingMeasures before, after;  // of the present order and of `mapping`
  double score = 1;               // of `mapping` as mapping_metrics.h has it; lower is better
  std::string reason;             // one sentence and the algorithm's note
};

// The default: a portfolio that is never worse than the present order.
inline constexpr absl::string_view kAutoAlgorithm = "auto";

// Runs `algorithm` from `start`, the present order if that is empty, and measures what comes out;
// `before` is what Measure says of the present order, so that its time is not the search's. A
// pattern of one rank or without any bytes is not searched. Any algorithm but "auto" is taken at
// its word: what it returns is the answer, even if it is worse. Errors as CheckProblem, Measure and
// RunAlgorithm.
absl::StatusOr<MappingAnswer> AnswerMapping(const MappingProblem& problem,
                                            const MappingMeasures& before,
                                            const MappingAlgorithm& algorithm, const Mapping& start,
                                            const AlgorithmOptions& options,
                                            const SearchControl& control);

// One direction of a link, and what the ranks send over it.
struct BusyLink {
  std::string from, to;  // "switch 0002c9020040b0e0 \"leaf3\"", "endpoint node17/1"
  double bytes = 0;
  double capacity_gbps = 0;  // ChannelCapacities: what load leaves of it
  double congestion = 0;     // bytes / capacity_gbps
  double share = 0;          // of the greatest congestion: 1 for the first
};

// Directions that carry anything under `mapping`, by congestion, then by channel number; at most
// `most` of them. `problem` has a fabric. Errors as CountLinkTraffic.
absl::StatusOr<std::vector<BusyLink>> FindBusyLinks(const MappingProblem& problem,
                                                    absl::Span<const PlaceIndex> mapping,
                                                    size_t most);

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

#endif  // COPPICE_DAEMON_MAPPING_OUTPUT_MAPPING_ANSWER_H_
