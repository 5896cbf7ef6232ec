// The routes of a tree's edges link by link, and which of them share links: what every evaluation
// with links' queues reads and never changes.
#ifndef COPPICE_DAEMON_TREE_TREE_ROUTES_H_
#define COPPICE_DAEMON_TREE_TREE_ROUTES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"

namespace coppice {

// The routes of a tree's edges, and how links are shared.
struct TreeRoutes {
  enum class Sharing : uint8_t { kNone, kSiblings, kOthers };
  struct Link {
    double us_per_byte = 0;     // 0: no limit known
    double pass_us = 0;         // l + w(u)
    uint32_t up = 0, down = 0;  // edges whose packets cross it
  };
  struct Hop {
    uint32_t link = 0;                 // in `links`
    Sharing sharing = Sharing::kNone;  // with edges of the same direction
  };
  std::vector<Link> links;
  std::vector<Hop> hops;
  std::vector<uint32_t>
      begin;            // [2 * node] of the way up, [2 * node + 1] down; one more at the end
  bool shares = false;  // some link is shared, but by siblings at their parent's port
};

// Walks the route of every edge both ways. NOT_FOUND: an edge without a route (names both ends).
absl::StatusOr<TreeRoutes> FindRoutes(const Snapshot& snapshot, const CostProfile& profile,
                                      const AggregationTree& tree);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TREE_ROUTES_H_
