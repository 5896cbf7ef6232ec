#include "daemon/mapping/search/groups/leaf_rings.h"

#include <optional>

namespace coppice {
namespace {

constexpr uint32_t kMaxLooks = 4096;  // at cables, for one unit

}  // namespace

LeafRings::LeafRings(const Fabric& fabric, const Places& places, absl::Span<const uint32_t> seats)
    : fabric_(fabric), unit_of_(fabric.switch_count(), kNobody), seen_(fabric.switch_count(), 0) {
  for (uint32_t unit = 0; unit < seats.size(); ++unit) {
    const std::optional<SwitchIndex> leaf =
        fabric.attached_switch(places.endpoint(PlaceIndex(seats[unit])));
    switch_of_.push_back(leaf ? leaf->value() : kNobody);
    if (leaf) unit_of_[leaf->value()] = unit;
    complete_ = complete_ && leaf.has_value();
  }
}

const std::vector<uint32_t>& LeafRings::Around(uint32_t unit, absl::Span<const uint32_t> weights,
                                               uint64_t wanted) {
  ++turn_;
  found_.clear();
  ring_.assign(1, switch_of_[unit]);
  seen_[switch_of_[unit]] = turn_;
  uint32_t looks = 0;
  for (uint64_t weight = 0; !ring_.empty() && weight < wanted && looks < kMaxLooks;) {
    next_.clear();
    for (const uint32_t s : ring_) {
      if (unit_of_[s] != kNobody) {
        found_.push_back(unit_of_[s]);
        weight += weights[unit_of_[s]];
      }
      if (looks >= kMaxLooks) continue;
      for (const Channel& channel : fabric_.switch_channels(SwitchIndex(s))) {
        ++looks;
        uint32_t& seen = seen_[channel.to.value()];
        if (seen == turn_) continue;
        seen = turn_;
        next_.push_back(channel.to.value());
      }
    }
    ring_.swap(next_);
  }
  return found_;
}

}  // namespace coppice
