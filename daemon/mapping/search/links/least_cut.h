// What any k ranks exchange with all others at least, where k lies in a range: the least cut of a
// pattern by sizes, from below, by branch and bound. Knows no places: a caller who knows that k
// ranks must sit behind some cables divides by what these carry.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_LINKS_LEAST_CUT_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_LINKS_LEAST_CUT_H_

#include <array>
#include <cstdint>
#include <vector>

#include "daemon/mapping/pattern.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_LINKS_LEAST_CUT_H_
