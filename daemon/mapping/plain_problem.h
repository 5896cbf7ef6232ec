// A mapping problem as plain lists, for those who search elsewhere by the QAP cost alone: what goes
// over the wire to other processes. Knows no wire.
#ifndef COPPICE_DAEMON_MAPPING_PLAIN_PROBLEM_H_
#define COPPICE_DAEMON_MAPPING_PLAIN_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

struct PlainProblem {
  // Distances of all pairs are listed: 128 MiB. As many as a dense search takes.
  static constexpr uint32_t kMaxSlots = 4096;

  uint32_t rank_count = 0;
  std::vector<Pattern::Entry> entries;  // of the pattern
  std::vector<uint32_t> place_of_slot;
  std::vector<double> distances;  // between places, row by row
};

// Without the fabric and what belongs to it. RESOURCE_EXHAUSTED, naming both numbers: more than
// kMaxSlots slots. O(pairs + places^2).
absl::StatusOr<PlainProblem> Flatten(const MappingProblem& problem);

// The same problem for every search by QAP cost, which is its objective. INVALID_ARGUMENT: as
// Pattern::Make, Places::OfSlots, PlaceDistances::Matrix and CheckProblem.
absl::StatusOr<MappingProblem> Unflatten(PlainProblem plain);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_PLAIN_PROBLEM_H_
