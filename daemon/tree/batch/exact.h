// The best plan of a small batch, proven by search: there a single wrong choice is a large part of
// the whole, and chains of moves find only what one communicator after the other can reach.
#ifndef COPPICE_DAEMON_TREE_BATCH_EXACT_H_
#define COPPICE_DAEMON_TREE_BATCH_EXACT_H_

#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/state.h"

namespace coppice {

// Replaces the plan in `state` by one that admits more, or as many with fewer farther roots (where
// `reach` counts them), or with fewer entries, if there is one; the most loaded link is not looked
// at. Leaves `state` alone if the batch is not small: more than 12 communicators to plan, more than
// 64 switches that can serve, or too many trees or assignments to look at.
void SearchSmallBatch(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
                      BatchState& state);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_EXACT_H_
