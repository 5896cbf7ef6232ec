// Why a placement is as it is, in words.
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_REASON_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_REASON_H_

#include <string>

#include "daemon/placement/placement_question.h"
#include "daemon/placement/placement_search.h"

namespace coppice {

// What was chosen, what decided between it and the next best set that the search met, what stood in
// the way of fewer leaf switches, links of its own or entries, and whether it is proven.
std::string ReasonFor(const PlacementQuestion& question, const PlacementMeasures& measures,
                      const SearchResult& found, bool is_optimal);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_REASON_H_
