// From place to place over the fabric, asked millions of times: which channels, and what share of
// the bytes goes over each. Tables fill up as they are asked, within a fixed bound of memory;
// beyond it every question is walked anew, slower and equally right.
//
//     routes        next[to place][switch] -> channel     routes to one place are a tree
//     even shares   lists[from leaf][to leaf] -> (channel, share)
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_LINKS_TRAFFIC_ROUTES_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_LINKS_TRAFFIC_ROUTES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "daemon/fabric/distances.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/mapping_problem.h"

namespace coppice {

// Flows to a switch over all shortest paths in equal shares (Hoefler 2011, section 2.5; the picture
// is in traffic_routes.cc). Keeps scratch space of the size of the switches from call to call. Not
// thread-safe.
class EvenPaths final {
 public:
  // `distances` must outlive this.
  explicit EvenPaths(const SwitchDistances& distances);

  // Calls visit(channel, bytes), once a channel, for what the flows to `t` put on every channel
  // between switches. The links of the longest path; nullopt, without any call, if a flow has no
  // path. O(channels of the switches on shortest paths).
  std::optional<uint32_t> Spread(SwitchIndex t, absl::Span<const SwitchFlow> flows,
                                 absl::FunctionRef<void(ChannelIndex channel, double bytes)> visit);

 private:
  void Reach(SwitchIndex s, uint32_t distance);
  void FindShortestPaths(SwitchIndex t, uint32_t farthest);
  void CountPaths(SwitchIndex t, uint32_t farthest);
  void SendDown(SwitchIndex t, uint32_t farthest,
                absl::FunctionRef<void(ChannelIndex channel, double bytes)> visit);

  const SwitchDistances& distances_;
  std::vector<double> paths_, flows_;             // [switch], all 0 between calls
  std::vector<std::vector<SwitchIndex>> layers_;  // [distance to the destination]
};

// For one search in one thread: answering fills the tables. The problem must outlive it and have a
// fabric.
class TrafficRoutes final {
 public:
  static constexpr size_t kMaxTableBytes = size_t{1} << 28;
  static constexpr uint32_t kNoSwitch = 0xffffffff;

  // kApproximate depends on the order of all pairs and has no share of a pair: it counts as even
  // shares, whose average it approximates.
  explicit TrafficRoutes(const MappingProblem& problem, size_t max_table_bytes = kMaxTableBytes);

  // Calls visit(channel number, share) along the way from one place to another, uplink and downlink
  // included; nothing for two whose bytes stay within their host. False: there is no route, and
  // what was visited is its beginning, the same at every call.
  template <class Visit>
  bool ForEachChannel(uint32_t from, uint32_t to, const Visit& visit) {
    const Site &a = sites_[from], &b = sites_[to];
    if (StayWithinHost(from, to)) return true;
    if (a.leaf == kNoSwitch || b.leaf == kNoSwitch) {
      const bool found = FindCable(from, to);
      for (const ChannelIndex c : cable_) visit(c.value(), 1.0);
      return found;
    }
    visit(a.uplink, 1.0);
    visit(b.uplink ^ 1, 1.0);
    return ForEachSwitchChannel(a.leaf, to, visit);
  }

  // The part between switches: from leaf switch `leaf` to the place's own; nothing if it is that.
  template <class Visit>
  bool ForEachSwitchChannel(uint32_t leaf, uint32_t to, const Visit& visit) {
    const Site& b = sites_[to];
    if (even_) {
      if (leaf == b.leaf) return true;
      bool found = false;
      for (const Share& share : Shares(leaf, b.leaf, found)) visit(share.channel, share.share);
      return found;
    }
    uint32_t here = leaf;
    for (uint32_t links = 0; links <= switches_; ++links) {
      const uint32_t c = Next(to, here);
      if (c == (b.uplink ^ 1)) return true;
      if (c == kNoChannel.value()) return false;
      visit(c, 1.0);
      here = channel_to_[c];
      if (here >= switches_) return false;
    }
    return false;  // a loop
  }

  // Bytes between the two places cross no link (Fabric::StayWithinHost).
  bool StayWithinHost(uint32_t a, uint32_t b) const {
    return sites_[a].bundle == sites_[b].bundle || (in_parts_ && OnPartsOfOneHost(a, b));
  }
  // Every place is cabled to a switch.
  bool all_have_leaves() const { return all_have_leaves_; }
  // Of the place's endpoint: the switch that it is cabled to, and the channel to it.
  uint32_t leaf(uint32_t place) const { return sites_[place].leaf; }
  uint32_t uplink(uint32_t place) const { return sites_[place].uplink; }

 private:
  struct Site {  // of a place
    uint32_t bundle, leaf, uplink;
  };
  struct Share {
    uint32_t channel;
    double share;
  };
  struct List {
    uint32_t begin = kUnknown, size = 0;
  };
  static constexpr uint32_t kUnknown = 0xfffffffe;  // neither a channel nor kNoChannel

  uint32_t Next(uint32_t to, uint32_t at) {
    if (next_.empty()) return Step(to, at);
    uint32_t& known = next_[static_cast<size_t>(to) * switches_ + at];
    if (known == kUnknown) known = Step(to, at);
    return known;
  }
  bool OnPartsOfOneHost(uint32_t a, uint32_t b) const;
  uint32_t Step(uint32_t to, uint32_t at) const;
  bool FindCable(uint32_t from, uint32_t to);
  absl::Span<const Share> Shares(uint32_t from_leaf, uint32_t to_leaf, bool& found);

  const MappingProblem& problem_;
  bool even_;
  bool in_parts_;  // the fabric: no cable joins all
  uint32_t switches_;
  size_t max_table_bytes_;
  bool all_have_leaves_ = true;
  std::vector<Site> sites_;           // [place]
  std::vector<uint32_t> channel_to_;  // [channel] vertex
  std::vector<uint32_t> next_;        // [to place][switch], or empty: over the bound
  std::vector<ChannelIndex> cable_;   // of endpoints back to back

  std::unique_ptr<EvenPaths> paths_;
  std::vector<uint32_t> leaf_number_;  // [switch] among the leaves of places
  uint32_t leaves_ = 0;
  std::vector<List> lists_;    // [from leaf][to leaf], or empty: over the bound
  std::vector<Share> shares_;  // of all lists
  std::vector<Share> walked_;  // the list that there was no room for
};

// A number for the endpoints that bytes may reach from `e` without a link, and on from there: those
// in its bundle, or on all of its host if the host is in several components. Searches for what must
// cross links at least take such a set as a whole. O(ports of the host).
uint32_t LinklessSet(const Fabric& fabric, EndpointIndex e);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_LINKS_TRAFFIC_ROUTES_H_
