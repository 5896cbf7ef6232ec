// Stage two: which of the sets of hosts suits a pattern best, and the order of its ranks there.
#ifndef COPPICE_DAEMON_PLACEMENT_RANK_ORDER_H_
#define COPPICE_DAEMON_PLACEMENT_RANK_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/mapping/search_control.h"
#include "daemon/placement/pattern_search.h"
#include "daemon/placement/placement_question.h"
#include "daemon/placement/placement_search.h"

namespace coppice {

struct RankOrder {
  std::vector<HostIndex> hosts;
  std::vector<uint32_t> permutation;  // [rank] position in hosts * ranks_per_host
  double max_congestion = 0;
  double traffic = 0;       // placement_request.h
  bool is_optimal = false;  // no hosts with any order cost less, proven
  std::string reason;
};

// Judges each of `found.choices` (the best without traffic first) by a quick order of the pattern's
// ranks, and searches the best one's for a better one until `control` ends it; where hosts and
// ranks are few, all sets of hosts and all orders on them. Errors as those of the mapping engine:
// NOT_FOUND: hosts that exchange bytes have no route between them.
absl::StatusOr<RankOrder> OrderRanks(const PlacementQuestion& question, const SearchResult& found,
                                     const PatternLimits& limits, const SearchControl& control);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_RANK_ORDER_H_
