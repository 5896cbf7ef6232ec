// The places of a job as a tree of groups whose members are near each other, from all of them at
// the root down to the single place: what multisection cuts along, and what a search looks at when
// it asks which places are near another.
//
//     order    0   1   2   3   4   5   6   7         places, so that every group is a range
//              |___|   |___|   |___|   |___|         nodes
//              |_______|       |___________|         switches
//              |___________________________|         root
//
// Where distances are those of nested groups (a uniform hierarchy, a fat tree), the tree says all
// that they say. Elsewhere (torus, dragonfly, irregular fabrics, measurements) it is a good guess:
// whoever optimises must count with the distances themselves.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_GROUPS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/places.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

struct PlaceGroups {
  struct Node {
    uint32_t parent = 0;          // the root's is itself
    uint32_t first_child = 0;     // children are numbered in a row
    uint32_t child_count = 0;     // 0: a single place; never 1
    uint32_t begin = 0, end = 0;  // of `order`
    uint32_t capacity = 0;        // slots of its places
  };
  std::vector<Node> nodes;      // parents before children; [0] is the root
  std::vector<uint32_t> order;  // every place once
  std::vector<uint32_t> leaf;   // [place] its node
  // Places of one group are nearer to each other than to any outside it, all equally near to those
  // of another group of the same parent.
  bool exact = false;

  absl::Span<const uint32_t> places(const Node& node) const {
    return absl::MakeConstSpan(order).subspan(node.begin, node.end - node.begin);
  }
};

// From the distances; where these are no nested groups, with the help of `hierarchy` (may be null)
// and of bisections of who is nearest to whom, found along the cables of `fabric` (may be null)
// where there are many. Deterministic as long as it is not stopped; then coarser. O(places log
// places) for levels; for classes and a matrix O(n^2) up to kAllPairs of them, and beyond O(n log
// n), or O(n * groups) where distances are those of nested groups.
inline constexpr uint32_t kAllPairs = 2048;
PlaceGroups MakePlaceGroups(const Places& places, const PlaceDistances& distances,
                            const Hierarchy* hierarchy, const Fabric* fabric = nullptr,
                            const SearchControl& control = SearchControl());
// The same from distances alone, which are classes or a matrix (groups_linkage.cc).
PlaceGroups LinkPlaces(const Places& places, const PlaceDistances& distances,
                       const Hierarchy* hierarchy, const Fabric* fabric,
                       const SearchControl& control);

// A tree of these levels: [level][place] a label, the widest groups first; nested.
PlaceGroups GroupsOfLabels(const Places& places, absl::Span<const std::vector<uint32_t>> labels);

// The places of a fabric as a tree of groups that are joined by many gigabits inside and by few to
// the outside.
//
//     [ leaf == spines == leaf ]       one group: trunks of 288 Gb/s
//          |             |
//          | 32          | 32          what joins it to the others
//       [ leaf ]       [ leaf ]
//
// Distances do not tell: all four leaf switches may be equally far from each other.
//
// Switches are joined two groups at a time, those first that have the widest trunks between them;
// trunks to one group add up. A group is one of the tree's where the trunk that joined it last is
// wider, by a quarter at least, than the one that joins it to others. Below are the leaf switches.
// Groups of one parent are numbered from the roomiest. `problem` has a fabric. O(cables * log
// (switches)), about.
PlaceGroups GroupByCapacity(const MappingProblem& problem);

// The groups of GroupByCapacity alone, before the leaf switches: [level][switch] a label, the
// widest groups first. Empty where all trunks are alike (fat trees, tori).
std::vector<std::vector<uint32_t>> CapacityLevels(const MappingProblem& problem);

// Which leaf switches of a job are near which, found by walking the fabric's cables: what asking
// for all distances costs the square of, this costs the same for every leaf switch.
//
//          ring 0   ring 1   ring 2
//            A ------ s ------ B        from A: A, then B and C; switches without places are passed
//                      \------ C
//
// Keeps scratch space. Not thread-safe.
class LeafRings final {
 public:
  static constexpr uint32_t kNobody = 0xffffffff;

  // `fabric` must outlive it and be that of `places`.
  LeafRings(const Fabric& fabric, const Places& places);

  // Leaf switches with places, numbered by their first place; kNobody: the place has none.
  uint32_t count() const { return static_cast<uint32_t>(switch_of_.size()); }
  uint32_t unit_of(uint32_t place) const { return unit_of_place_[place]; }
  // Every place has a leaf switch.
  bool complete() const { return complete_; }

  // `unit` itself and others by rings, until their `weights` come to `wanted` at the end of a ring,
  // or so many cables have been looked at that more are not worth it. [unit] weights. O(1).
  const std::vector<uint32_t>& Around(uint32_t unit, absl::Span<const uint32_t> weights,
                                      uint64_t wanted);

 private:
  const Fabric& fabric_;
  bool complete_ = true;
  std::vector<uint32_t> unit_of_place_;
  std::vector<uint32_t> switch_of_;  // [unit]
  std::vector<uint32_t> unit_of_;    // [switch], or kNobody
  std::vector<uint32_t> seen_;       // [switch] the turn that has met it
  uint32_t turn_ = 0;
  std::vector<uint32_t> ring_, next_, found_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_GROUPS_H_
