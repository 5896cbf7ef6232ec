// Unloads the most loaded links of a planned batch further than moves by entries do: trees are
// planned anew for their links, over roots at every distance, with as many entries as before or a
// few more.
#ifndef COPPICE_DAEMON_TREE_BATCH_UNLOAD_H_
#define COPPICE_DAEMON_TREE_BATCH_UNLOAD_H_

#include <cstdint>

#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/offers.h"
#include "daemon/tree/batch/shapes.h"
#include "daemon/tree/batch/state.h"

namespace coppice {

// Nobody loses a tree, the batch takes at most `most_entries` in all (or what it takes already),
// the greatest load does not grow, and roots do not go farther where `reach` counts that. Ends when
// no tree over a most loaded link can leave it, or `offers` is exhausted.
void UnloadLinks(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
                 uint64_t most_entries, BatchState& state, BatchOffers& offers);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_UNLOAD_H_
