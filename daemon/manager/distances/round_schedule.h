// Who measures with whom, and when: rounds in each of which every node is in at most one pair, so
// that all pairs of a round can run at once (Wang 2015, 4.2, "single-circle-match": n rounds, n/2
// pairs each).
//
// Complete: the circle method. Node n-1 (of an even number; of an odd one an empty chair) stands
// still, the others go around; in round r whoever faces each other is a pair:
//
//        round 0            round 1
//      0  1  2  | 7       6  0  1  | 7          i and j meet in the round r with i + j = 2r
//      6  5  4  3         5  4  3  2            (mod n-1), i meets n-1 in round i
//
// So every pair meets exactly once: n-1 rounds of n/2 pairs for an even n, n rounds for an odd one
// in each of which another node rests. That is the least that there can be.
//
// Sampled: for many nodes every level of the fabric (how many links two nodes are apart) has a few
// rounds to itself, each a maximal matching of pairs of just that level; nodes that no level paired
// have a partner of any level in the end.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_ROUND_SCHEDULE_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_ROUND_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace coppice {

using NodePair = std::pair<uint32_t, uint32_t>;  // the lower number first
using Rounds = std::vector<std::vector<NodePair>>;

// Every pair of nodes 0..n-1 once. None for n < 2. O(n^2).
Rounds CompleteRounds(uint32_t n);

// Groups of nodes that are equally far from all others, and how far groups are from each other.
struct NodeLevels {
  std::vector<uint32_t> group;  // [node] from 0
  uint32_t group_count = 0;
  // Of two nodes of these groups, also of one group; symmetric.
  std::function<uint32_t(uint32_t a, uint32_t b)> level;
};

struct SampleOptions {
  uint32_t rounds_per_level = 4;
  uint64_t seed = 1;
};

// Some pairs of each level, at least min(rounds_per_level, those that there are) of each, and at
// least one for each node, each pair once; as long as there are at most 1024 groups: beyond that
// the search for a partner gives up after so many, and rare levels may be missed. At most
// rounds_per_level * levels + 2 rounds. O(rounds * groups * min(groups, 1024) + nodes * rounds).
Rounds SampledRounds(const NodeLevels& nodes, const SampleOptions& options);

// The verifier: INTERNAL, naming the round, if a node is not one of the n, is in two pairs of a
// round, a pair comes twice, or a round is empty; with `complete` also if a pair is missing or
// there are more rounds than the least.
absl::Status CheckRounds(uint32_t n, const Rounds& rounds, bool complete);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_ROUND_SCHEDULE_H_
