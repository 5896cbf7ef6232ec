// Stage one: a set of hosts that costs little, with proof that none costs less where there is one.
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_SEARCH_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/placement/placement_constraints.h"
#include "daemon/placement/placement_question.h"

namespace coppice {

// How much work a search may do; the same for every placement, so that answers are repeatable.
struct SearchLimits {
  uint64_t exact_patience = 60'000;   // of SearchExactly; 0: no exact search
  uint64_t count_patience = 200'000;  // of ImproveCounts, for all starts together
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

// The best set of hosts by branch and bound, or the end of its patience: exact_search.cc.

// Looks through all answers within `scopes`, which hold all there are, and keeps in `best`
// whichever costs less than what is there (an empty choice: the first). True: nothing is cheaper.
// False: given up after `patience` units of work, about 1 us each; `best` is still an answer or
// what it was. O(2^open hosts) without the bound; gives up at once on more than 64 leaf switches.
bool SearchExactly(const PlacementQuestion& question, absl::Span<const OpenScope> scopes,
                   uint64_t patience, Choice& best);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_SEARCH_H_
