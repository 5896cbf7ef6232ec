#include "daemon/tree/batch/state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

BatchState::BatchState(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
                       size_t communicators, uint32_t packets_at_full_load)
    : served_(capacity.size()), loads_(snapshot, packets_at_full_load), trees_(communicators) {
  constexpr uint32_t kMax = std::numeric_limits<int32_t>::max();
  for (const SwitchCapacity& c : capacity) {
    const uint32_t free = c.degree_limit >= 2 ? std::min(c.entries_free, kMax) : 0;
    free_.push_back(static_cast<int32_t>(free));
    limits_.push_back(free > 0 ? c.degree_limit : 0);
  }
  degrees_ = limits_;
}

void BatchState::Take(SwitchIndex s, int32_t entries) {
  int32_t& free = free_[s.value()];
  free -= entries;
  degrees_[s.value()] = free > 0 ? limits_[s.value()] : 0;
}

std::optional<BatchTree> BatchState::Exchange(uint32_t communicator,
                                              std::optional<BatchTree> tree) {
  std::optional<BatchTree>& mine = trees_[communicator];
  if (mine) {
    loads_.Remove(*mine);
    --placed_;
    farther_ -= mine->extra_hops > 0 ? 1 : 0;
    entries_ -= mine->serving.size();
    for (const uint32_t v : mine->serving) {
      const SwitchIndex s = mine->physical.switches[v];
      Take(s, -1);
      std::vector<uint32_t>& served = served_[s.value()];
      served.erase(std::find(served.begin(), served.end(), communicator));
    }
  }
  std::swap(mine, tree);
  if (mine) {
    loads_.Add(*mine);
    ++placed_;
    farther_ += mine->extra_hops > 0 ? 1 : 0;
    entries_ += mine->serving.size();
    for (const uint32_t v : mine->serving) {
      const SwitchIndex s = mine->physical.switches[v];
      Take(s, 1);
      served_[s.value()].push_back(communicator);
    }
  }
  return tree;
}

void BatchState::Replace(uint32_t communicator, std::optional<BatchTree> tree) {
  journal_.push_back({communicator, Exchange(communicator, std::move(tree))});
}

void BatchState::RevertTo(size_t mark) {
  while (journal_.size() > mark) {
    Change change = std::move(journal_.back());
    journal_.pop_back();
    Exchange(change.communicator, std::move(change.before));
  }
}

}  // namespace coppice
