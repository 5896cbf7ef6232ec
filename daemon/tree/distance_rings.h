// How far two ranks are apart, where nested groups say it: all pairs that meet in the same
// innermost level of groups are equally far.
//
//   one leaf switch   0 hops      a b | c d || e f | g h      a-b: 0, a-c: 2, a-e: 4
//   one pod           2 hops      --leaf---pod----------
//   anywhere          4 hops
//
// So it is in fat trees, whole or with cables missing, but not in a torus. There the rings are one
// leaf switch and everywhere else, with the least hops; then they only bound a distance from below.
//
// Levels are found from the distances themselves: an ultrametric's balls of one radius are disjoint
// or the same. Leaf switches with the same neighbours (daemon/fabric/distances.h) are treated as
// one, so that the pairs to be compared are few.
#ifndef COPPICE_DAEMON_TREE_DISTANCE_RINGS_H_
#define COPPICE_DAEMON_TREE_DISTANCE_RINGS_H_

#include <cstdint>
#include <vector>

#include "daemon/fabric/snapshot.h"
#include "daemon/tree/member_places.h"

namespace coppice {

// Shortest distances between ranks in different bundles (daemon/fabric); nothing of those on one.
struct DistanceRings {
  // Ranks that belong together, ascending in every group.
  struct Level {
    std::vector<uint32_t> group;  // [rank]
    std::vector<uint32_t> begin;  // [group + 1] into `ranks`
    std::vector<uint32_t> ranks;
  };
  std::vector<Level> levels;   // inner before outer; the last ring, all ranks, is no level
  std::vector<uint32_t> hops;  // [ring = level, or levels.size()] between the two leaf switches
  bool is_exact = true;        // false: `hops` are the least in a ring

  // The innermost ring that holds both ranks. O(levels).
  uint32_t RingOf(uint32_t a, uint32_t b) const {
    uint32_t ring = 0;
    while (ring < levels.size() && levels[ring].group[a] != levels[ring].group[b]) ++ring;
    return ring;
  }
};

// Every endpoint is on a switch. O(ranks * levels + distinct twin classes squared).
DistanceRings FindDistanceRings(const Snapshot& snapshot, const MemberPlaces& places);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_DISTANCE_RINGS_H_
