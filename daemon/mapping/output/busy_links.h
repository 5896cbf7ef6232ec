// What a mapping puts on every link, the busiest first: for whoever asks where its greatest
// congestion is.
#ifndef COPPICE_DAEMON_MAPPING_OUTPUT_BUSY_LINKS_H_
#define COPPICE_DAEMON_MAPPING_OUTPUT_BUSY_LINKS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_OUTPUT_BUSY_LINKS_H_
