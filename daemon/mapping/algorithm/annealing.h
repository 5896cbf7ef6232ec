// "annealing": from the better of the start and a multisection, annealed at low temperature with
// proposals near partners (search/sparse_anneal.h), each round with twice the proposals of the one
// before; after each the best is polished by swaps.
//
//     start      multisection
//         \      /
//          better --> swaps --> anneal x1 --> anneal x2 --> anneal x4 ...
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_ANNEALING_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_ANNEALING_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// O(ranks * proposals * 2^rounds * degree).
const MappingAlgorithm& AnnealingAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_ANNEALING_H_
