// What a forest costs: how long its busiest resource is busy, and how long all of it takes, packet
// by packet on shared channels (contended_metrics.h does so for one tree).
//
//   us >= bytes over a channel / what others leave of it          for every channel
//   us >= packets * (theta + S * gamma)                           for every rank that reduces
#ifndef COPPICE_DAEMON_TREE_FOREST_WALK_H_
#define COPPICE_DAEMON_TREE_FOREST_WALK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/tree/forest/routes.h"
#include "daemon/tree/forest/shapes.h"

namespace coppice {

// The bytes of each tree's share of `bytes`: whole packets, as far as they go.
std::vector<uint64_t> SharesOf(absl::Span<const ShapedTree> trees, uint64_t bytes, uint32_t mtu);

// The routes of every edge, walked once.
struct ForestEdges {
  std::vector<uint32_t> up, down;  // [tree * ranks + rank]; unspecified at roots
};
absl::StatusOr<ForestEdges> FindEdges(absl::Span<const ShapedTree> trees, ForestRoutes& routes);

// Of a message of `bytes`: the longest that some channel, or some rank's reducing, is busy.
// O(hops).
double BusiestUs(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
                 const ForestRoutes& routes, uint64_t bytes);
// What the first packet takes, where nobody keeps it waiting, and its fellows at each node.
double FirstPacketUs(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
                     const ForestRoutes& routes);

// All trees at once, every packet, a queue before each channel and each rank's reducing. Messages
// whose packets cross more than `max_hops` channels in all are followed in part, twice; the rest
// takes as long as the difference. O(min(hops, max_hops) log).
double FollowForest(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
                    const ForestRoutes& routes, uint64_t bytes, uint64_t max_hops);

// The crossings that FollowForest follows.
uint64_t HopsToFollow(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
                      const ForestRoutes& routes, uint64_t bytes, uint64_t max_hops);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_FOREST_WALK_H_
