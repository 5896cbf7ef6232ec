// What the ranks of one host send to others at least, whoever they are: the set of ranks around
// one of them that sends the least outside, found by branch and bound.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_LINKS_LEAST_LEAVING_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_LINKS_LEAST_LEAVING_H_

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "daemon/mapping/pattern.h"

namespace coppice {

enum class TrafficDirection : uint8_t { kOut, kIn };

// The bytes over the border of a set S of ranks, from inside if `direction` is kOut, else into it:
//
//     f(S) = sum of w(u,v), u in S, v not in S
//
// The pattern must outlive it.
class LeastLeaving final {
 public:
  // Sets of at most `room` ranks, room >= 1.
  LeastLeaving(const Pattern& pattern, TrafficDirection direction, uint32_t room);

  // What `rank` itself sends to all but the room - 1 peers that it sends most: f(S) is no less.
  double AloneAtLeast(uint32_t rank) const { return own_[rank]; }

  // A number that no f(S) with `rank` in S is below: the least f(S) itself, unless `nodes`, which
  // it counts down, run out first, or a set of at most `enough` has been seen.
  double AtLeast(uint32_t rank, double enough, uint32_t& nodes);

 private:
  struct Node {
    double bound = 0;
    bool complete = false;         // f of the set is the bound
    std::vector<uint32_t> inside;  // of every set of this node
    std::vector<uint32_t> outside;
    uint32_t next = 0;  // the rank to tell sets apart by
    bool operator<(const Node& o) const { return bound > o.bound; }  // the least on top
  };

  double Bytes(const Exchange& e) const {
    return direction_ == TrafficDirection::kOut ? e.out_bytes : e.in_bytes;
  }
  double BytesBack(const Exchange& e) const {
    return direction_ == TrafficDirection::kOut ? e.in_bytes : e.out_bytes;
  }
  // Fills in bound, complete and next; f of what is inside.
  double Look(Node& node);

  const Pattern& pattern_;
  const TrafficDirection direction_;
  const uint32_t room_;
  std::vector<double> own_;                       // [rank] AloneAtLeast
  std::vector<double> from_inside_, to_outside_;  // [rank] scratch, 0
  std::vector<uint32_t> met_;                     // ranks of from_inside_
  std::vector<uint8_t> fixed_;                    // [rank] scratch: inside or outside
  std::vector<std::pair<double, uint32_t>> saved_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_LINKS_LEAST_LEAVING_H_
