// Unloads the most loaded links of a planned batch, without taking more entries, or farther roots
// where these count.
#ifndef COPPICE_DAEMON_TREE_BATCH_BALANCE_H_
#define COPPICE_DAEMON_TREE_BATCH_BALANCE_H_

#include "daemon/tree/batch/offers.h"
#include "daemon/tree/batch/shapes.h"
#include "daemon/tree/batch/state.h"

namespace coppice {

// Until no single communicator that crosses a most loaded link can be moved so that the greatest
// load falls, or fewer links carry it; or until `offers` is exhausted.
void BalanceLinks(const BatchShapes& shapes, RootReach reach, BatchState& state,
                  BatchOffers& offers);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_BALANCE_H_
