#include "daemon/tree/batch/loads.h"

#include <algorithm>
#include <cmath>

namespace coppice {

LinkLoads::LinkLoads(const Snapshot& snapshot, uint32_t packets_at_full_load)
    : fabric_(*snapshot.fabric),
      loads_(fabric_.channel_count(), 0),
      through_(fabric_.switch_count(), 0),
      channels_at_(1, 0) {
  for (uint32_t c = 0; c < fabric_.channel_count(); ++c) {
    if (!IsBetweenSwitches(c)) continue;
    ++channels_at_[0];
    const double u = std::clamp<double>(snapshot.utilisation(ChannelIndex(c)), 0, 1);
    const auto start = static_cast<uint32_t>(std::lround(u * packets_at_full_load));
    if (start > 0) Move(ChannelIndex(c), start);
  }
}

bool LinkLoads::IsBetweenSwitches(uint32_t c) const {
  const LinkInfo& link = fabric_.link(Fabric::link_of(ChannelIndex(c)));
  return fabric_.IsSwitch(link.a) && fabric_.IsSwitch(link.b);
}

void LinkLoads::Move(ChannelIndex c, uint32_t to) {
  uint32_t& load = loads_[c.value()];
  if (to >= channels_at_.size()) channels_at_.resize(size_t{to} + 1, 0);
  --channels_at_[load];
  ++channels_at_[to];
  squares_ += uint64_t{to} * to;
  squares_ -= uint64_t{load} * load;
  load = to;
  most_ = std::max(most_, to);
  while (most_ > 0 && channels_at_[most_] == 0) --most_;
}

void LinkLoads::Add(const BatchTree& tree) {
  const SwitchTree& physical = tree.physical;
  for (size_t v = 1; v < physical.switches.size(); ++v) {
    if (tree.packets[v] == 0) continue;
    Move(physical.up[v], on(physical.up[v]) + tree.packets[v]);
    through_[physical.switches[v].value()] += tree.packets[v];
    through_[physical.switches[static_cast<size_t>(physical.parents[v])].value()] +=
        tree.packets[v];
  }
}

void LinkLoads::Remove(const BatchTree& tree) {
  const SwitchTree& physical = tree.physical;
  for (size_t v = 1; v < physical.switches.size(); ++v) {
    if (tree.packets[v] == 0) continue;
    Move(physical.up[v], on(physical.up[v]) - tree.packets[v]);
    through_[physical.switches[v].value()] -= tree.packets[v];
    through_[physical.switches[static_cast<size_t>(physical.parents[v])].value()] -=
        tree.packets[v];
  }
}

ChannelIndex LinkLoads::MostLoaded() const {
  if (most_ == 0) return kNoChannel;
  for (uint32_t c = 0; c < loads_.size(); ++c) {
    if (loads_[c] == most_ && IsBetweenSwitches(c)) return ChannelIndex(c);
  }
  return kNoChannel;
}

}  // namespace coppice
