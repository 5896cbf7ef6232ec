// Bytes over every channel under a mapping: what congestion is counted from (Hoefler 2011, eq. 3-5,
// section 2.5 and algorithm 3).
#ifndef COPPICE_DAEMON_MAPPING_LINK_TRAFFIC_H_
#define COPPICE_DAEMON_MAPPING_LINK_TRAFFIC_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"

namespace coppice {

// [channel] capacity in Gb/s, as mapping_metrics.h counts it; with problem.use_load less by the
// measured load, but never below a hundredth of it. `problem` has a fabric.
std::vector<double> ChannelCapacities(const MappingProblem& problem);

struct LinkTraffic {
  std::vector<double> bytes;  // [channel]; their sum is the hop-bytes
  uint32_t longest = 0;       // links of the longest route that carries any
};

// Under `mapping`, by problem.traffic. NOT_FOUND as Routes::Append.
absl::StatusOr<LinkTraffic> CountLinkTraffic(const MappingProblem& problem,
                                             absl::Span<const PlaceIndex> mapping);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_LINK_TRAFFIC_H_
