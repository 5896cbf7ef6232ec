#include "daemon/manager/load/port_watch.h"

#include <utility>

#include "daemon/manager/load/load_events.h"

namespace coppice {

void PortWatch::Adopt(const Fabric& old, const Fabric& now) {
  absl::flat_hash_map<uint32_t, ErrorWatch> watches;
  for (auto& [link, watch] : watches_) {
    const auto same = FindSame(old, ChannelIndex(2 * link), now);
    if (same) watches[same->value() / 2] = std::move(watch);
  }
  watches_ = std::move(watches);
}

void PortWatch::Take(ChannelStates& ports, double error_threshold, absl::Time wall,
                     std::vector<EventRecord>& events) {
  WatchErrors(ports, error_threshold, wall, events);
  WatchStops(ports, wall, events);
}

void PortWatch::WatchErrors(ChannelStates& ports, double error_threshold, absl::Time wall,
                            std::vector<EventRecord>& events) {
  const Fabric& fabric = *ports.fabric();
  for (uint32_t i = 0; i < fabric.channel_count(); ++i) {
    const ChannelIndex c(i);
    if (!ports.IsFresh(c)) continue;
    const PortInterval& interval = ports.state(c).interval;
    const bool is_rising = IsRising(interval, error_threshold);
    const auto it = watches_.find(i / 2);
    if (!is_rising && it == watches_.end()) continue;
    ErrorWatch& watch = it == watches_.end() ? watches_[i / 2] : it->second;
    const auto told = watch.Take(interval, is_rising, ports.now());
    if (told) events.push_back(ErrorsEvent(fabric, LinkIndex(i / 2), *told, wall));
    if (watch.is_quiet()) watches_.erase(i / 2);
  }
}

// Once for each port, until its counts move again.
void PortWatch::WatchStops(ChannelStates& ports, absl::Time wall,
                           std::vector<EventRecord>& events) {
  const Fabric& fabric = *ports.fabric();
  ports.ForEachPort([&](Guid node, DirectionState& state) {
    if (state.sweep != ports.sweep() || state.interval.length <= absl::ZeroDuration()) return;
    const bool stopped =
        state.interval.sent_bytes.is_stopped || state.interval.received_bytes.is_stopped;
    if (std::exchange(state.stop_is_told, stopped) || !stopped) return;
    const SwitchIndex at = *fabric.FindSwitch(node);
    events.push_back(StoppedEvent(fabric, fabric.channel_at(at, state.reading.port), wall));
  });
}

}  // namespace coppice
