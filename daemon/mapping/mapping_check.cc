#include "daemon/mapping/mapping_check.h"

#include <vector>

#include "absl/strings/str_format.h"

namespace coppice {

absl::Status CheckMapping(const Places& places, uint32_t rank_count,
                          absl::Span<const PlaceIndex> mapping) {
  if (mapping.size() != rank_count) {
    return absl::InternalError(
        absl::StrFormat("a mapping of %d ranks for %d", mapping.size(), rank_count));
  }
  std::vector<uint32_t> taken(places.count(), 0);
  for (uint32_t rank = 0; rank < rank_count; ++rank) {
    const PlaceIndex p = mapping[rank];
    if (p.value() >= places.count()) {
      return absl::InternalError(
          absl::StrFormat("rank %d is on place %d of %d", rank, p.value(), places.count()));
    }
    if (++taken[p.value()] > places.capacity(p)) {
      return absl::InternalError(
          absl::StrFormat("place %d takes %d ranks and has more, rank %d "
                          "among them",
                          p.value(), places.capacity(p), rank));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSlots(const Places& places, absl::Span<const uint32_t> slot_of_rank) {
  std::vector<bool> taken(places.slot_count(), false);
  for (uint32_t rank = 0; rank < slot_of_rank.size(); ++rank) {
    const uint32_t slot = slot_of_rank[rank];
    if (slot >= places.slot_count()) {
      return absl::InternalError(
          absl::StrFormat("rank %d is in slot %d of %d", rank, slot, places.slot_count()));
    }
    if (taken[slot]) {
      return absl::InternalError(absl::StrFormat("slot %d holds two ranks, one is %d", slot, rank));
    }
    taken[slot] = true;
  }
  return absl::OkStatus();
}

}  // namespace coppice
