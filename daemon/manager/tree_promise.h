// What one granted tree puts on the channels of one published fabric: what it promises there, and
// its busiest link. Found with the plan when it is granted, and from its record for every fabric
// that is published afterwards and after a restart; both ways give the same.
#ifndef COPPICE_DAEMON_MANAGER_TREE_PROMISE_H_
#define COPPICE_DAEMON_MANAGER_TREE_PROMISE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/promised_load.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/link_use.h"
#include "db/store.h"

namespace coppice {

struct TreePromise {
  uint64_t fabric_version = 0;  // whose channels these are; 0: not found yet
  std::vector<ChannelPromise> channels;
  BusiestLink busiest;
};

// From the channels that the plan's messages cross. `record` has operation, sizes and total_us.
TreePromise PromiseOfPlan(const Snapshot& snapshot, const CostProfile& profile, double duty,
                          const TreeRecord& record, absl::Span<const ChannelUse> uses);

// From the record alone. Edges of which an end or the route is gone promise nothing. `link_ids` is
// [link]; it tells which of several cables a tree over shortest paths takes. O(nodes + links on the
// edges' routes).
TreePromise PromiseOfRecord(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                            const CostProfile& profile, double duty, const JobRecord& job,
                            const TreeRecord& record, LinkUseCounter& counter);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_PROMISE_H_
