// Where the search for counts of hosts begins: regions of the fabric in which an answer may lie,
// and counts within them.
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_STARTS_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_STARTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/placement/count_state.h"
#include "daemon/placement/placement_question.h"

namespace coppice {

// Positions in OpenHosts::leaves, ascending; all within one scope, with room for all hosts.
using Region = std::vector<uint32_t>;

// Pods that are large enough, and the fullest unions of pods: the ones that promise the fewest leaf
// switches first, the smallest of them first. At most `most` of each kind. O(leaf switches log).
std::vector<Region> PodRegions(const PlacementQuestion& question, const OpenScope& scope,
                               uint32_t most);

// What is nearest to a leaf switch: rings of leaf switches around it, pod by pod, those with most
// room first, until there is room for all hosts and half as many again.
struct Ball {
  Region region;
  LeafCounts counts;   // nearest first until all hosts are placed; may break least numbers
  double promise = 0;  // roughly its cost, for choosing among balls
};

// Around up to `most` leaf switches, spread evenly, or around the first to be included; the most
// promising `kept` of them, best first. O(most * leaf switches).
std::vector<Ball> Balls(const PlacementQuestion& question, const OpenScope& scope, uint32_t most,
                        uint32_t kept);

// Which leaf switches of a region to fill, where all of them are equally far from each other: the
// answer within a pod, and a bound everywhere.

struct LeafFill {
  LeafCounts counts;
  double cost = 0;  // of leaf switches, fragmentation, penalties and distance, pods left out
};

// The counts of `hosts` on leaf switches of the field with the least cost if hosts of different
// leaf switches are `hops` apart, whatever the field's distances are; counts of leaf switches,
// pods and hosts_per_leaf are not heeded. nullopt: too little room, or more than kMaxFillHosts.
// O(hosts * kinds of leaf switches * (log + most hosts of one)).
inline constexpr uint32_t kMaxFillHosts = 4096;
std::optional<LeafFill> FillLeaves(const LeafField& field, uint32_t hosts, double hops);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_STARTS_H_
