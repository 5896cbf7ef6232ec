#include "daemon/mapping/places.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace coppice {
namespace {

absl::Status CheckSlots(uint64_t places, uint64_t slots_each) {
  if (places == 0) return absl::InvalidArgumentError("no places to map to; name at least one host");
  if (slots_each == 0) return absl::InvalidArgumentError("0 ranks per host; give 1 or more");
  if (places > Places::kMaxSlots || slots_each > Places::kMaxSlots / places) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d hosts of %d ranks each are more than %d ranks in all; give fewer",
                        places, slots_each, Places::kMaxSlots));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Places>> Places::OfEndpoints(
    const Fabric& fabric, absl::Span<const EndpointIndex> slot_endpoints,
    uint32_t ranks_per_endpoint) {
  if (absl::Status status = CheckSlots(slot_endpoints.size(), ranks_per_endpoint); !status.ok()) {
    return status;
  }
  std::shared_ptr<Places> made(new Places);
  absl::flat_hash_map<EndpointIndex, PlaceIndex> place_of;
  for (const EndpointIndex e : slot_endpoints) {
    if (e.value() >= fabric.endpoint_count()) {
      return absl::InvalidArgumentError(absl::StrFormat("endpoint %d is not one of the fabric's %d",
                                                        e.value(), fabric.endpoint_count()));
    }
    const auto [place, is_new] =
        place_of.try_emplace(e, PlaceIndex(static_cast<uint32_t>(made->endpoints_.size())));
    if (is_new) made->endpoints_.push_back(e);
    made->place_of_slot_.insert(made->place_of_slot_.end(), ranks_per_endpoint, place->second);
  }
  made->IndexSlots(static_cast<uint32_t>(made->endpoints_.size()));
  return made;
}

absl::StatusOr<std::shared_ptr<const Places>> Places::Numbered(uint32_t count, uint32_t capacity) {
  if (absl::Status status = CheckSlots(count, capacity); !status.ok()) return status;
  std::shared_ptr<Places> made(new Places);
  made->place_of_slot_.reserve(static_cast<size_t>(count) * capacity);
  for (uint32_t p = 0; p < count; ++p) {
    made->place_of_slot_.insert(made->place_of_slot_.end(), capacity, PlaceIndex(p));
  }
  made->IndexSlots(count);
  return made;
}

absl::StatusOr<std::shared_ptr<const Places>> Places::OfSlots(
    absl::Span<const uint32_t> place_of_slot) {
  if (absl::Status status = CheckSlots(place_of_slot.size(), 1); !status.ok()) return status;
  std::shared_ptr<Places> made(new Places);
  made->place_of_slot_.reserve(place_of_slot.size());
  uint32_t count = 0;
  for (const uint32_t place : place_of_slot) {
    if (place > count) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "slot %d is on place %d, but the slots before it name only %d; number places by their "
          "first slot",
          made->place_of_slot_.size(), place, count));
    }
    if (place == count) ++count;
    made->place_of_slot_.emplace_back(place);
  }
  made->IndexSlots(count);
  return made;
}

void Places::IndexSlots(uint32_t place_count) {
  slots_begin_.assign(place_count + 1, 0);
  for (const PlaceIndex p : place_of_slot_) ++slots_begin_[p.value() + 1];
  for (uint32_t p = 0; p < place_count; ++p) slots_begin_[p + 1] += slots_begin_[p];
  slots_.resize(place_of_slot_.size());
  std::vector<uint32_t> next(slots_begin_.begin(), slots_begin_.end() - 1);
  for (uint32_t s = 0; s < place_of_slot_.size(); ++s)
    slots_[next[place_of_slot_[s].value()]++] = s;
}

Mapping Places::PresentOrder(uint32_t rank_count) const {
  return Mapping(place_of_slot_.begin(), place_of_slot_.begin() + rank_count);
}

std::vector<uint32_t> AssignSlots(const Places& places, const Mapping& mapping) {
  constexpr uint32_t kNone = 0xffffffff;
  std::vector<uint32_t> slot_of(mapping.size(), kNone);
  std::vector<bool> taken(places.slot_count(), false);
  for (uint32_t rank = 0; rank < mapping.size(); ++rank) {
    if (places.place_of_slot(rank) != mapping[rank]) continue;
    slot_of[rank] = rank;
    taken[rank] = true;
  }
  std::vector<uint32_t> next(places.count(), 0);  // [place] the first of its slots to look at
  for (uint32_t rank = 0; rank < mapping.size(); ++rank) {
    if (slot_of[rank] != kNone) continue;
    const absl::Span<const uint32_t> slots = places.slots(mapping[rank]);
    uint32_t& i = next[mapping[rank].value()];
    while (taken[slots[i]]) ++i;
    slot_of[rank] = slots[i++];
  }
  return slot_of;
}

}  // namespace coppice
