// Where the ranks of a job may sit: its places, which are allocated nodes (or cores of a made-up
// hierarchy, or locations of a QAP instance), how many ranks each takes, and the slots of the
// present allocation in rank order. Knows no pattern and no distances.
//
//     slots    0   1   2   3   4   5        (rank r sits in slot r today)
//     place    A   A   B   B   A   A        A: node17, 4 ranks   B: node18, 2 ranks
#ifndef COPPICE_DAEMON_MAPPING_PLACES_H_
#define COPPICE_DAEMON_MAPPING_PLACES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "daemon/fabric/fabric.h"
#include "proto/text/limits.h"

namespace coppice {

using PlaceIndex = StrongId<struct PlaceIndexTag, uint32_t>;

// A place for every rank: [rank].
using Mapping = std::vector<PlaceIndex>;

// Immutable; thread-safe.
class Places final {
 public:
  static constexpr uint32_t kMaxSlots = kMaxJobRanks;

  // `slot_endpoints` in rank order of the present allocation, `ranks_per_endpoint` slots for each;
  // one that is named twice is one place with twice the slots. Places are numbered by their first
  // slot. INVALID_ARGUMENT: none, 0 ranks each, more than kMaxSlots, an endpoint that is not the
  // fabric's.
  static absl::StatusOr<std::shared_ptr<const Places>> OfEndpoints(
      const Fabric& fabric, absl::Span<const EndpointIndex> slot_endpoints,
      uint32_t ranks_per_endpoint);

  // `count` places without a fabric, `capacity` slots each, place by place. INVALID_ARGUMENT: none,
  // or more than kMaxSlots slots.
  static absl::StatusOr<std::shared_ptr<const Places>> Numbered(uint32_t count, uint32_t capacity);

  // Places without a fabric, by the place of every slot: numbered from 0 by their first slot, as
  // OfEndpoints numbers them. INVALID_ARGUMENT: no slots, more than kMaxSlots, or another
  // numbering.
  static absl::StatusOr<std::shared_ptr<const Places>> OfSlots(
      absl::Span<const uint32_t> place_of_slot);

  uint32_t count() const { return static_cast<uint32_t>(slots_begin_.size() - 1); }
  uint32_t slot_count() const { return static_cast<uint32_t>(place_of_slot_.size()); }
  uint32_t capacity(PlaceIndex p) const {
    return slots_begin_[p.value() + 1] - slots_begin_[p.value()];
  }
  // The slots of a place, ascending.
  absl::Span<const uint32_t> slots(PlaceIndex p) const {
    return absl::MakeConstSpan(slots_).subspan(slots_begin_[p.value()], capacity(p));
  }
  PlaceIndex place_of_slot(uint32_t slot) const { return place_of_slot_[slot]; }

  // Only for places of a fabric.
  bool has_endpoints() const { return !endpoints_.empty(); }
  EndpointIndex endpoint(PlaceIndex p) const { return endpoints_[p.value()]; }

  // Ranks 0..rank_count-1 in the slots of the same numbers; rank_count <= slot_count().
  Mapping PresentOrder(uint32_t rank_count) const;

 private:
  Places() = default;
  void IndexSlots(uint32_t place_count);

  std::vector<PlaceIndex> place_of_slot_;
  std::vector<uint32_t> slots_begin_;  // [count + 1] into slots_
  std::vector<uint32_t> slots_;
  std::vector<EndpointIndex> endpoints_;  // [count], or empty
};

// The slot of every rank under `mapping`: a rank whose slot of today is on its place keeps it, the
// others take the free slots of their places, both ascending. `mapping` must be admissible
// (mapping_metrics.h). O(slots).
std::vector<uint32_t> AssignSlots(const Places& places, const Mapping& mapping);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_PLACES_H_
