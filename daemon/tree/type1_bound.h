// The least time of a type I tree, found without walking a route: what a planner that compares many
// trees of one communicator asks first.
//
// The evaluation is that of tree_metrics.h, each edge taken at its least: the hops between its
// switches, the load on the two ports' own links, and the slower port. So the result never exceeds
// EvaluateMix(), and equals it where hops say everything: shortest paths, no load, links between
// switches all alike. Must not know which builder is being judged.
#ifndef COPPICE_DAEMON_TREE_TYPE1_BOUND_H_
#define COPPICE_DAEMON_TREE_TYPE1_BOUND_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/tree_plan.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

// Not thread-safe. The arguments must outlive it.
class Type1Bound {
 public:
  Type1Bound(const Snapshot& snapshot, const CostProfile& profile, const TreeRequest& request,
             const MemberPlaces& places);

  // True: a result that does not exceed its cutoff is the tree's predicted total.
  bool is_exact() const { return between_gbps_.has_value(); }
  // Of all links between switches, if exact.
  double between_gbps() const { return between_gbps_.value_or(0); }

  // At least total_us of the tree; one that exceeds `cutoff` may be less than it could be.
  // O(P * sizes), and a logarithm where packets arrive at many different times.
  // `parents` are [rank], -1 for the root; a tree.
  double Of(absl::Span<const int32_t> parents, double cutoff);

 private:
  struct Place {  // of a rank
    BundleIndex bundle;
    SwitchIndex leaf;
    double gbps = 0;                          // of its port's link; 0 = unknown
    double wait_up_us = 0, wait_down_us = 0;  // w(u) of that link, from the port and to it
  };

  void FindPlaces(const MemberPlaces& places);
  bool BundlesAreShared() const;
  EdgeCost EdgeOf(const Place& child, const Place& parent) const;

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  const bool all_on_switches_;
  std::optional<double> between_gbps_;  // see EvenTrunkGbps
  // Children within a host may follow each other faster. The first packet's spacing is free, so
  // that where arrivals are only bounds a later one might pay off: then no port keeps any apart.
  bool ports_space_packets_ = true;
  std::vector<Place> places_;  // [rank]
  AggregationTree tree_;       // at hand
  std::vector<EdgeCost> edges_;
};

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
// or the same. Of ranks in different bundles (daemon/fabric); nothing of those on one.
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

// The time of k-ary and k-nomial trees, counted: packets that arrive together are one product, so
// that a tree of P ranks takes as many steps as it has inner nodes, about P / k.
//
//   v's packets    2 leaves nearby   inner child   5 leaves far away     runs (arrival, packets)
//   v works        ##                    #         #####
//
//   start(run) = max(arrival, start of the packet before + s), its last packet (packets - 1) * s on
//
// Both trees have inner nodes 0 .. (P - 2) / k, in steps of 1 (k-ary) or k (k-nomial), and the
// leaves below one are a range of ranks (a k-nomial tree may have one more that stands alone).
// Leaves have nothing to wait for, so those in one ring around v arrive together; how many they are
// is two binary searches in the ranks of v's group. Ranks on v's own bundle (its host's ports on
// the same switch) are looked at one by one. Downwards only the last leaf to receive matters: they
// are looked at from the last copy on, until even the farthest rank could not be later.
//
// The recurrence is that of tree_metrics.h, each edge at its least: shortest distance, no load, the
// fastest of the members' ports. So the result is a lower bound but for rounding (less than 1e-9 of
// it), and the time itself where is_exact().
//
// Not thread-safe. The arguments must outlive it. Allocates once, whatever it is asked.
class Type1Count {
 public:
  // Every member is on a switch. `even_routes`: hops say everything about a route between switches,
  // whose links are all of `between_gbps` (0 = unknown).
  Type1Count(const Snapshot& snapshot, const CostProfile& profile, const TreeRequest& request,
             const MemberPlaces& places, bool even_routes, double between_gbps);

  // True: a result that does not exceed its cutoff is the tree's predicted total.
  bool is_exact() const { return is_exact_; }

  // At most total_us of the tree; one that exceeds `cutoff` may be less than it could be. width
  // >= 2. O(P / k * (rings * log P) * sizes).
  double Kary(uint32_t width, double cutoff);
  double Knomial(uint32_t width, double cutoff);

 private:
  struct Run {  // packets that arrive together
    double arrival_us;
    double spacing_us;  // from the start of the packet before each
    uint32_t packets;
    uint32_t first_rank;
    bool operator<(const Run& other) const {
      return arrival_us != other.arrival_us ? arrival_us < other.arrival_us
                                            : first_rank < other.first_rank;
    }
  };
  struct Phase {                              // one direction of one size
    double node_us = 0;                       // a node's own time for a packet
    std::vector<double> edge_us, spacing_us;  // [ring] from done to arrival; between packets
    double farthest_us = 0;                   // greatest of edge_us
    double port_us = 0, way_us = 0;  // of a packet on a port's wire, on the slowest wire of all
  };
  struct Size {
    double weight = 0;
    Pipeline pipeline;
    Phase up, down;  // of the first packet
  };
  using Range = std::pair<uint32_t, uint32_t>;  // of ranks, end excluded

  void FindBundles(const Snapshot& snapshot);
  bool FindRates(const Snapshot& snapshot);
  bool OnOneBundle(uint32_t a, uint32_t b) const {
    return bundles_are_shared_ && bundle_.group[a] == bundle_.group[b];
  }
  // The ring of two ranks; `same_bundle_` for those of one bundle.
  uint32_t RingOf(uint32_t a, uint32_t b) const {
    return OnOneBundle(a, b) ? same_bundle_ : rings_.RingOf(a, b);
  }
  Phase PhaseOf(uint64_t bytes, double node_us, double send_us) const;
  void AddLeaves(const Phase& phase, uint32_t rank, Range leaves);
  double LastStart();
  void SendToLeaves(const Phase& phase, uint32_t rank, Range leaves, double& start,
                    double& last) const;
  template <class Shape>
  Stages SlowestStages(const Shape& shape, const Size& size);
  template <class Shape>
  double Total(const Shape& shape, double cutoff);
  template <class Shape>
  double Aggregate(const Shape& shape, const Phase& phase);
  template <class Shape>
  double Distribute(const Shape& shape, const Phase& phase);

  const CostProfile& profile_;
  const TreeRequest& request_;
  const DistanceRings rings_;
  const uint32_t same_bundle_;  // the ring after rings_'
  bool bundles_are_shared_ = false;
  DistanceRings::Level bundle_;     // if they are
  double port_gbps_ = 0;            // of the fastest member; 0 = without limit
  std::vector<double> route_gbps_;  // [ring] slowest link of a route
  bool is_exact_ = false;
  std::vector<Size> sizes_;

  std::vector<double> us_;         // [inner node] done upwards, received downwards
  std::vector<uint8_t> is_far_;    // [inner node] its parent is in another bundle
  std::vector<Run> runs_;          // of the node at hand
  std::vector<uint32_t> packets_;  // [ring]
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_BOUND_H_
