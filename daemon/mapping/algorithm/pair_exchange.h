// Pair exchange (Wang 2015, 4.4.3 and 5.1.3; Brandfass, Alrutz and Gerhold 2013).
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_PAIR_EXCHANGE_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_PAIR_EXCHANGE_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// "pair-exchange": exchanges any two positions that gain by it, any start, with or without a
// fabric.
const MappingAlgorithm& PairExchangeAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_PAIR_EXCHANGE_H_
