// A planned batch made better: room for a communicator whose roots are full, and fewer entries.
// Those that are placed already move away, one for another in a chain, until somebody finds a
// switch that is still free; small batches are searched as a whole.
#ifndef COPPICE_DAEMON_TREE_BATCH_REPAIR_H_
#define COPPICE_DAEMON_TREE_BATCH_REPAIR_H_

#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/state.h"
#include "daemon/tree/batch/tree_builder.h"

namespace coppice {

// Admits as many more as it can: first over nearest roots alone, then over what `reach` allows,
// then by giving up one communicator where two others fit in its place.
void AdmitMore(const BatchShapes& shapes, RootReach reach, BatchState& state, BatchOffers& offers);

// Trees with fewer entries or nearer roots, also by moving others away, as long as all together
// take fewer.
void SaveEntries(const BatchShapes& shapes, RootReach reach, BatchState& state,
                 BatchOffers& offers);

// The best plan of a small batch, proven by search: there a single wrong choice is a large part of
// the whole, and chains of moves find only what one communicator after the other can reach.
// Replaces the plan in `state` by one that admits more, or as many with fewer farther roots (where
// `reach` counts them), or with fewer entries, if there is one; the most loaded link is not looked
// at. Leaves `state` alone if the batch is not small: more than 12 communicators to plan, more than
// 64 switches that can serve, or too many trees or assignments to look at.
void SearchSmallBatch(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
                      BatchState& state);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_REPAIR_H_
