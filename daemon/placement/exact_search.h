// The best set of hosts by branch and bound, or the end of its patience.
#ifndef COPPICE_DAEMON_PLACEMENT_EXACT_SEARCH_H_
#define COPPICE_DAEMON_PLACEMENT_EXACT_SEARCH_H_

#include <cstdint>

#include "daemon/placement/placement_question.h"

namespace coppice {

// Looks through all answers within `scopes`, which hold all there are, and keeps in `best`
// whichever costs less than what is there (an empty choice: the first). True: nothing is cheaper.
// False: given up after `patience` units of work, about 1 us each; `best` is still an answer or
// what it was. O(2^open hosts) without the bound; gives up at once on more than 64 leaf switches.
bool SearchExactly(const PlacementQuestion& question, absl::Span<const OpenScope> scopes,
                   uint64_t patience, Choice& best);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_EXACT_SEARCH_H_
