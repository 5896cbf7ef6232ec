// The least time of a type I tree, found without walking a route: what a planner that compares many
// trees of one communicator asks first. Allocates once, whatever it is asked.
//
// The recurrence is that of tree_metrics.h, each edge taken at its least: the hops between its
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
#include "daemon/tree/pipelining.h"
#include "daemon/tree/tree.h"
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
  // O(P * sizes), and a logarithm where packets arrive at many different times. width >= 2.
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
  struct Edge {
    float time_us = 0;
    float gbps = 0;  // the slower port's, or of what lies between; 0 in one bundle
    bool same_bundle = false;
  };
  struct Packet {
    double arrival_us = 0;
    uint32_t rank = 0;
    bool same_bundle = false;
  };

  void FindPlaces(const MemberPlaces& places);
  void FindWaits();
  bool BundlesAreShared() const;
  bool PortsAreAlike() const;
  uint32_t Hops(uint32_t leaf, uint32_t other) const;
  float TimeOf(uint32_t links, uint32_t from, uint32_t to);
  Edge EdgeOf(uint32_t from, uint32_t to);
  Edge EdgeBetween(uint32_t from, uint32_t to);
  void FindEdges();
  Edge EdgeUp(uint32_t c, uint32_t rank);
  Edge EdgeDown(uint32_t c, uint32_t rank);
  double TransferUs(double gbps);
  double EdgeUs(const Edge& edge, double forward_us);
  void SetPhase(uint64_t bytes);
  void SortPackets();
  double LastStart(double match_us, double port_us);
  Stages SlowestStages(const Payload& packet);
  double Total(double cutoff);
  double Aggregate(const Payload& payload);
  double Distribute(const Payload& payload);

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  absl::Span<const SwitchIndex> leaf_switches_;
  const bool all_on_switches_;
  bool bundles_are_shared_ = false;     // two ranks on one
  std::optional<double> between_gbps_;  // see EvenTrunkGbps
  double total_weight_ = 0;

  std::vector<Place> places_;         // [rank]
  std::vector<Waits> waits_;          // [rank]; empty without load, or if some are on no switch
  std::vector<float> time_of_links_;  // without load
  double links_us_ = 0;               // of as many links as time_of_links_ ends with

  // [leaf * leaves + leaf] of different bundles, time_us < 0 until asked; empty if many or unlike.
  std::vector<Edge> between_leaves_;
  Place last_from_, last_to_;  // of the edge between bundles asked last, without those
  Edge last_edge_;
  uint64_t bytes_ = 0;                         // of a packet of the phase at hand
  double last_gbps_ = -1, last_transfer_ = 0;  // the rate asked last
  std::vector<double> us_;                     // [rank] done upwards, received downwards
  std::vector<Packet> packets_;                // of the node at hand
  std::vector<Packet> sorted_;
  bool in_order_ = true;

  uint32_t root_ = 0;  // of the tree at hand
  absl::Span<const int32_t> parents_;
  std::vector<uint32_t> begin_, children_, order_;
  std::vector<Edge> edges_;  // of children_, to their parents; empty with load
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_BOUND_H_
