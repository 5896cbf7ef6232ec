// Stage one: a set of hosts that costs little, with proof that none costs less where there is one.
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_SEARCH_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_SEARCH_H_

#include <cstdint>
#include <vector>

#include "daemon/placement/placement_question.h"

namespace coppice {

// How much work a search may do; the same for every placement, so that answers are repeatable.
struct SearchLimits {
  uint64_t exact_patience = 60'000;   // exact_search.h; 0: no exact search
  uint64_t count_patience = 200'000;  // count_improvement.h, for all starts together
  uint64_t host_patience = 60'000;    // host_set.h, for all starts together
  uint64_t ball_patience = 400'000;   // leaf switches looked at by balls
  uint32_t measured = 6;              // sets whose cost is counted in full, ...
  uint64_t routes = 8192;             // ... as long as their routes are no more; at least one
};

struct SearchResult {
  std::vector<Choice> choices;  // different ones, by cost; at least one
  bool is_optimal = false;      // the first one is, proven
};

// `question.open` meets its constraints (FindOpenHosts). Traffic of a pattern is not looked at.
SearchResult SearchPlacement(const PlacementQuestion& question, const SearchLimits& limits);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_SEARCH_H_
