// Which leaf switches of a job are near which, found by walking the fabric's cables: what asking
// for all distances costs the square of, this costs the same for every leaf switch.
//
//          ring 0   ring 1   ring 2
//            A ------ s ------ B        from A: A, then B and C; switches without places are passed
//                      \------ C
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_LEAF_RINGS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_LEAF_RINGS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/mapping/places.h"

namespace coppice {

// Keeps scratch space. Not thread-safe.
class LeafRings final {
 public:
  // `seats`: [unit] a place of it; the places of one leaf switch are one unit. `fabric` must
  // outlive it and be that of `places`.
  LeafRings(const Fabric& fabric, const Places& places, absl::Span<const uint32_t> seats);

  // Every place has a leaf switch: else nobody may ask.
  bool complete() const { return complete_; }

  // `unit` itself and others by rings, until their `weights` come to `wanted` at the end of a ring,
  // or so many cables have been looked at that more are not worth it. [unit] weights. O(1).
  const std::vector<uint32_t>& Around(uint32_t unit, absl::Span<const uint32_t> weights,
                                      uint64_t wanted);

 private:
  static constexpr uint32_t kNobody = 0xffffffff;

  const Fabric& fabric_;
  bool complete_ = true;
  std::vector<uint32_t> switch_of_;  // [unit]
  std::vector<uint32_t> unit_of_;    // [switch], or kNobody
  std::vector<uint32_t> seen_;       // [switch] the turn that has met it
  uint32_t turn_ = 0;
  std::vector<uint32_t> ring_, next_, found_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_LEAF_RINGS_H_
