// Which switches may be the root of a type II tree, and in what order to try them (Chen 2024, 4.1).
#ifndef COPPICE_DAEMON_TREE_ROOT_CHOICE_H_
#define COPPICE_DAEMON_TREE_ROOT_CHOICE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

// The switches whose greatest hop count to any of `leaf_switches` is least, by index (that is, by
// GUID). Empty if no switch reaches them all. `leaf_switches` are distinct and not empty.
//
// Works on classes of twin switches. Up to 64 classes of leaf switches: their cached distance rows,
// O(leaf classes * classes) bytes. More: all breadth-first searches at once, one bit per leaf
// class, stopped at the first level at which some switch has seen all: O(radius * channels * leaf
// classes / 64), never a search per leaf.
std::vector<SwitchIndex> NearestSwitches(const Snapshot& snapshot,
                                         absl::Span<const SwitchIndex> leaf_switches);

// [switch] hops to the farthest of `leaf_switches`, SwitchDistances::kUnreachable if one is out of
// reach. From cached distance rows: O(leaf classes * classes) bytes, for callers who ask for many
// communicators on the same leaf switches.
std::vector<uint8_t> FarthestHops(const Snapshot& snapshot,
                                  absl::Span<const SwitchIndex> leaf_switches);

// Puts the least loaded first (mean utilisation of the channels that leave and enter the switch),
// then the one with most free entries, then the lowest GUID. O(channels of the roots).
void SortRoots(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
               std::vector<SwitchIndex>& roots);

// The least that a type II tree can take, from how far its topmost switch is from the ranks: what
// lets the search for a root stop without building a tree below every switch.
//
//   ranks by hops:  hops 1  r r r            r r r arrive first and are matched while
//                   hops 3  r r r r r r      the others are still under way
//
// Load, shared links and forwarding tables only add to it.
class RootBound final {
 public:
  static constexpr uint32_t kUnreachable = SwitchDistances::kUnreachable;

  // Every place is on a switch. O(ranks). Holds references to all of them.
  RootBound(const Snapshot& snapshot, const CostProfile& profile, const TreeRequest& request,
            const MemberPlaces& places);

  uint32_t ranks_on(SwitchIndex s) const;
  // Hops to the farthest member's switch; kUnreachable. O(classes of leaf switches).
  uint32_t Farthest(SwitchIndex s);
  // Any tree whose topmost serving switch is `top` and in which at most `entries` serve takes that
  // long at least, but for rounding. O(classes of leaf switches + hops).
  double LeastUs(SwitchIndex top, uint32_t entries);
  // The same, whatever switch is the topmost one, if every switch is `hops` or more from some rank.
  double LeastUsAnywhere(uint32_t hops, uint32_t entries) const;

  size_t leaf_class_count() const { return classes_.size(); }

 private:
  struct LeafClass {
    uint32_t twin_class = 0;
    uint32_t ranks = 0;
  };

  // Fills ranks_at_hops_; the farthest.
  uint32_t Count(SwitchIndex s);
  // `port_gbps` is of the topmost switch's fastest port; 0: not known.
  double LeastUs(absl::Span<const uint32_t> ranks_at_hops, uint32_t entries,
                 double port_gbps) const;
  double SerialUs(uint64_t bytes) const;

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  const MemberPlaces& places_;
  std::vector<uint32_t> ranks_on_leaf_;  // [leaf switch of places]
  bool wires_matter_ = false;
  double member_gbps_ = 0;               // of the fastest member's link
  std::vector<LeafClass> classes_;       // of twin leaf switches
  std::vector<uint32_t> ranks_at_hops_;  // scratch
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_ROOT_CHOICE_H_
