#include "daemon/tree/batch/loads.h"

#include <algorithm>
#include <cmath>

namespace coppice {

LinkLoads::LinkLoads(const Snapshot& snapshot, uint32_t packets_at_full_load)
    : measured_(snapshot.fabric->channel_count(), 0),
      through_(snapshot.fabric->switch_count(), 0),
      channels_at_(1, 0) {
  const Fabric& fabric = *snapshot.fabric;
  for (uint32_t c = 0; c < fabric.channel_count(); ++c) {
    const LinkInfo& link = fabric.link(Fabric::link_of(ChannelIndex(c)));
    if (!fabric.IsSwitch(link.a) || !fabric.IsSwitch(link.b)) continue;
    const double u = std::clamp<double>(snapshot.utilisation(ChannelIndex(c)), 0, 1);
    measured_[c] = static_cast<uint32_t>(std::lround(u * packets_at_full_load));
    squares_ += uint64_t{measured_[c]} * measured_[c];
  }
  loads_ = measured_;
}

void LinkLoads::Move(ChannelIndex c, uint32_t to) {
  uint32_t& load = loads_[c.value()];
  if (to >= channels_at_.size()) channels_at_.resize(size_t{to} + 1, 0);
  if (IsUsed(c.value())) --channels_at_[load];
  squares_ += uint64_t{to} * to;
  squares_ -= uint64_t{load} * load;
  load = to;
  if (IsUsed(c.value())) {
    ++channels_at_[to];
    most_ = std::max(most_, to);
  }
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
    if (loads_[c] == most_ && IsUsed(c)) return ChannelIndex(c);
  }
  return kNoChannel;
}

}  // namespace coppice
