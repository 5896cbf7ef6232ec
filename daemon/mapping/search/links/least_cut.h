// What any k ranks exchange with all others at least, where k lies in a range: the least cut of a
// pattern by sizes, from below, by branch and bound. Knows no places: a caller who knows that k
// ranks must sit behind some cables divides by what these carry.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_LINKS_LEAST_CUT_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_LINKS_LEAST_CUT_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/mapping/pattern.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// The sum of all but the `count` greatest of `values`, which it puts into another order. O(values).
double AllButGreatest(std::vector<double>& values, size_t count);

// For one thread. The value of a set S of ranks:
//
//     f(S) = max( per_out * bytes from S to others, per_in * bytes from others to S )
//
// The pattern must outlive it.
class LeastCut final {
 public:
  // Sets of `least` to `most` ranks, 1 <= least <= most < rank_count.
  LeastCut(const Pattern& pattern, uint32_t least, uint32_t most, double per_out, double per_in);

  // A number that f of no such set is below: the least f itself if that is at most `enough`, or
  // `enough` or more if none is below it; unless it is stopped, or `nodes`, which it counts down,
  // run out first. O(ranks + exchanges of a rank) a node.
  double AtLeast(double enough, uint64_t& nodes, const SearchControl& control = SearchControl());

 private:
  using Bytes = std::array<double, 2>;  // out and in: exact where sums of weights are
  // Bounds are by either, and by the mean of their values, which one set must have at once.
  static constexpr uint32_t kMeasures = 3;

  double Of(const Bytes& bytes, uint32_t measure) const {
    return measure < 2 ? bytes[measure] : (per_out_ * bytes[0] + per_in_ * bytes[1]) / 2;
  }
  void FindOwn();
  void Put(uint32_t rank, bool inside, double sign);
  double Bound(bool& complete);
  uint32_t Choose() const;
  double Explore(double enough, uint64_t& nodes, const SearchControl& control);

  const Pattern& pattern_;
  const uint32_t least_, most_;
  const double per_out_, per_in_;
  const bool exact_;
  uint32_t measures_ = kMeasures;  // 1 where all are the same
  // [rank] by each measure, what it exchanges with others at least, in any such set
  std::vector<std::array<double, kMeasures>> own_;
  std::vector<Bytes> if_outside_;    // [rank] between it and those inside
  std::vector<Bytes> if_inside_;     // [rank] between it and those outside
  std::vector<uint32_t> free_, at_;  // ranks that are neither; [rank] where in free_
  uint32_t inside_ = 0;
  Bytes cut_{};                 // between those inside and those outside
  double best_ = 0;             // of the sets seen
  std::vector<double> change_;  // scratch
};

enum class TrafficDirection : uint8_t { kOut, kIn };

// What the ranks of one host send to others at least, whoever they are. Of the sets S of ranks
// around one of them, the bytes over the border, from inside if `direction` is kOut, else into it:
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

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_LINKS_LEAST_CUT_H_
