// "local-search": swaps and moves of ranks to places near their partners', with gains from the
// neighbours alone, until none helps (search/sparse_swaps.h, with the picture); where places take
// many ranks, moves from the border first, on all levels (search/sparse_moves.h).
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_LOCAL_SEARCH_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_LOCAL_SEARCH_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// O(degree^2 * near) for each rank that is looked at.
const MappingAlgorithm& LocalSearchAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_LOCAL_SEARCH_H_
