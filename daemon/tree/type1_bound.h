// The least time of a type I tree, found without walking a route: what a planner that compares many
// trees of one communicator asks first. Allocates once, whatever it is asked.
//
// The exact evaluation (tree_metrics.h), each edge taken at its least: the hops between its
// switches, the load on the two ports' own links, and the slower port. So the result never exceeds
// EvaluateMix(), to the last bit (the same sums in the same order, and rounding is monotone), and
// equals it where hops say everything: shortest paths, no load, links between switches all alike.
// Must not know which builder is being judged.
#ifndef COPPICE_DAEMON_TREE_TYPE1_BOUND_H_
#define COPPICE_DAEMON_TREE_TYPE1_BOUND_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/member_places.h"
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
  bool is_exact() const { return is_exact_; }
  double between_gbps() const { return between_gbps_; }  // of all links between switches, if exact

  // At least total_us of the tree; one that exceeds `cutoff` may be less than it could be.
  // O(P * sizes), and a logarithm where packets do not arrive in order. width >= 2.
  // [rank] parent, -1 for the root; a tree.
  double Of(absl::Span<const int32_t> parents, double cutoff);

 private:
  struct Place {  // of a rank
    BundleIndex bundle;
    uint32_t leaf = UINT32_MAX;  // in MemberPlaces::leaf_switches; none: nobody's place
    double gbps = 0;             // of its port's link; 0 = unknown
    bool IsLike(const Place& other) const { return leaf == other.leaf && gbps == other.gbps; }
  };
  struct Waits {  // w(u) of a rank's link, from the port and to it
    double up_us = 0, down_us = 0;
  };

  void FindPlaces(const MemberPlaces& places);
  bool PortsAreAlike() const;
  float TimeOf(uint32_t links, uint32_t from, uint32_t to) const;
  EdgeCost EdgeOf(uint32_t child, uint32_t parent);
  EdgeCost EdgeBetween(uint32_t child, uint32_t parent) const;

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  absl::Span<const SwitchIndex> leaf_switches_;
  const bool all_on_switches_;
  bool is_exact_ = false;
  bool bundles_are_shared_ = false;  // two ranks on one
  double between_gbps_ = 0;          // of all links between switches, if they are alike

  std::vector<Place> places_;  // [rank]
  std::vector<Waits> waits_;   // [rank]; empty without load, or if some are on no switch

  // [leaf * leaves + leaf] of different bundles, no links until asked; empty if many or unlike.
  std::vector<EdgeCost> between_leaves_;
  Place last_child_, last_parent_;  // of the edge between bundles asked last, without those
  EdgeCost last_edge_;

  AggregationTree tree_;         // at hand: its parents alone
  std::vector<EdgeCost> edges_;  // [rank]
  TreeEvaluator evaluator_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_BOUND_H_
