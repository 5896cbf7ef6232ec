// The independent verifier of every mapping: what must hold whoever made it.
#ifndef COPPICE_DAEMON_MAPPING_MAPPING_CHECK_H_
#define COPPICE_DAEMON_MAPPING_MAPPING_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/mapping/places.h"

namespace coppice {

// INTERNAL, naming rank or place: not one place for each of `rank_count` ranks, a place that does
// not exist, one with more ranks than its capacity. O(ranks + places).
absl::Status CheckMapping(const Places& places, uint32_t rank_count,
                          absl::Span<const PlaceIndex> mapping);

// INTERNAL, naming rank or slot: a slot that does not exist or holds two ranks. O(slots).
absl::Status CheckSlots(const Places& places, absl::Span<const uint32_t> slot_of_rank);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_MAPPING_CHECK_H_
