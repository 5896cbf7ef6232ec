// What edges cost where it does not matter which of the shortest routes a packet takes: on a fabric
// without load whose links between switches are all of one capacity. Then hops say everything, and
// both directions are alike:
//
//     child --(its own link)-- switch --(hops links of one capacity)-- switch --(its own)-- parent
//
// The sums are taken in the order of the walk, so that the result is the same to the last bit as
// that of walking the route.
#ifndef COPPICE_DAEMON_TREE_EVEN_ROUTES_H_
#define COPPICE_DAEMON_TREE_EVEN_ROUTES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {

// Gbit/s of a channel; the profile's port where the fabric does not know it.
double KnownCapacity(const Snapshot& snapshot, const CostProfile& profile, ChannelIndex channel);

// The lower of two capacities, 0 = unknown.
double LeastKnown(double a, double b);

// Gbit/s of every link between switches, 0 = unknown, where it does not matter which of the
// shortest routes a packet takes; nullopt where it does, or where routes are not the shortest.
std::optional<double> EvenTrunkGbps(const Snapshot& snapshot, const CostProfile& profile);

// w(u): the mean wait for others' packets before a channel; 0 where its rate is unknown.
double WaitUs(const CostProfile& profile, double gbps, double utilisation);
double WaitUs(const Snapshot& snapshot, const CostProfile& profile, ChannelIndex channel);

// Holds references to what it is made of.
class EvenRoutes final {
 public:
  EvenRoutes(const Snapshot& snapshot, const CostProfile& profile);

  // O(1), and least where one edge is as the one asked before it. False: the route has to be
  // walked, to know its cost or why there is none.
  bool Find(VertexIndex child, VertexIndex parent, EdgeCost& edge);

 private:
  // Where a vertex meets the switches; an endpoint has one link there, a switch none.
  struct Place {
    bool known = false;
    SwitchIndex at;
    uint32_t links = 0;
    double gbps = 0;
    bool operator==(const Place&) const = default;
  };

  bool StayWithinHost(VertexIndex a, VertexIndex b) const;
  Place PlaceOf(VertexIndex v) const;
  bool Cost(const Place& from, const Place& to, EdgeCost& edge) const;

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const CostProfile& profile_;
  const std::optional<double> trunk_gbps_;

  VertexIndex last_parent_ = VertexIndex(UINT32_MAX);  // none yet
  Place last_from_, last_to_;
  EdgeCost last_;
  bool has_last_ = false;  // last_ is what an edge between these places costs
};

// The routes of a tree's edges link by link, and which of them share links: what every evaluation
// with links' queues reads and never changes.
struct TreeRoutes {
  enum class Sharing : uint8_t { kNone, kSiblings, kOthers };
  struct Link {
    double us_per_byte = 0;     // 0: no limit known
    double pass_us = 0;         // l + w(u)
    uint32_t up = 0, down = 0;  // edges whose packets cross it
  };
  struct Hop {
    uint32_t link = 0;                 // in `links`
    Sharing sharing = Sharing::kNone;  // with edges of the same direction
  };
  std::vector<Link> links;
  std::vector<Hop> hops;
  std::vector<uint32_t>
      begin;            // [2 * node] of the way up, [2 * node + 1] down; one more at the end
  bool shares = false;  // some link is shared, but by siblings at their parent's port
};

// Walks the route of every edge both ways. NOT_FOUND: an edge without a route (names both ends).
absl::StatusOr<TreeRoutes> FindRoutes(const Snapshot& snapshot, const CostProfile& profile,
                                      const AggregationTree& tree);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_EVEN_ROUTES_H_
