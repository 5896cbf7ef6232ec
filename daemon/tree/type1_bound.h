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
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/tree_plan.h"

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_BOUND_H_
