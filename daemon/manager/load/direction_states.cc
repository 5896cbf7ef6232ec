#include "daemon/manager/load/direction_states.h"

#include <algorithm>

namespace coppice {
namespace {

double Share(double rate, double capacity) {
  return capacity > 0 ? std::clamp(rate / capacity, 0.0, 1.0) : 0;
}

}  // namespace

void ChannelLoad::Restore(const LinkLoadRecord& record, absl::Duration until) {
  restored_ = std::clamp(record.average, 0.0, 1.0);
  peak_ = std::clamp(record.peak, 0.0, 1.0);
  peaked_ = record.peaked;
  read_ = record.updated;
  measured_ = until;
}

void ChannelLoad::Take(const Growth& bytes, absl::Duration length, double capacity,
                       absl::Duration now, absl::Time wall, absl::Duration time_constant) {
  const double seconds = absl::ToDoubleSeconds(length);
  if (seconds <= 0) return;
  certainty_ = bytes.certainty;
  if (bytes.is_stopped) {
    measured_ = now;
    return;
  }
  const double constant = std::max(absl::ToDoubleSeconds(time_constant), 1e-3);
  const double rate = static_cast<double>(bytes.count) / seconds;
  const bool counts = bytes.certainty == Certainty::kExact ||
                      (bytes.certainty == Certainty::kAtLeast && rate > average_.value());
  if (!counts) {
    average_.Skip(seconds, constant);
    return;
  }
  average_.Add(rate, seconds, constant);
  restored_ = -1;
  measured_ = now;
  life_ = std::max(kLoadLife, 3 * length);
  read_ = wall;
  if (const double share = Share(rate, capacity);
      share > peak_ || peaked_ == absl::InfinitePast()) {
    peak_ = share;
    peaked_ = wall;
  }
}

double ChannelLoad::Average(double capacity, absl::Duration now) const {
  if (read_ == absl::InfinitePast() || now - measured_ > life_) return 0;
  return restored_ >= 0 ? restored_ : Share(average_.value(), capacity);
}

std::pair<Guid, PortNum> BeginOf(const Fabric& fabric, ChannelIndex channel) {
  const VertexIndex v = fabric.channel_from(channel);
  const Guid node = fabric.IsSwitch(v) ? fabric.switch_info(fabric.AsSwitch(v)).guid
                                       : fabric.adapter(fabric.AsEndpoint(v)).guid;
  return {node, fabric.channel_from_port(channel)};
}

bool FromB(const Fabric& fabric, ChannelIndex channel) {
  return BeginOf(fabric, Fabric::Reverse(channel)) < BeginOf(fabric, channel);
}

std::optional<ChannelIndex> FindSame(const Fabric& from, ChannelIndex channel, const Fabric& in) {
  if (!from.IsSwitch(from.channel_from(channel))) {
    if (!from.IsSwitch(from.channel_to(channel))) return std::nullopt;
    const auto back = FindSame(from, Fabric::Reverse(channel), in);
    return back ? std::optional(Fabric::Reverse(*back)) : std::nullopt;
  }
  const auto [node, port] = BeginOf(from, channel);
  const std::optional<SwitchIndex> found = in.FindSwitch(node);
  if (!found) return std::nullopt;
  const ChannelIndex same = in.channel_at(*found, port);
  if (same == kNoChannel) return std::nullopt;
  const auto far_end = BeginOf(from, Fabric::Reverse(channel));
  if (BeginOf(in, Fabric::Reverse(same)) != far_end) return std::nullopt;
  return same;
}

std::vector<DirectionState> CarryOver(const Fabric& from, std::vector<DirectionState> states,
                                      const Fabric& to) {
  std::vector<DirectionState> carried(to.channel_count());
  for (uint32_t c = 0; c < to.channel_count(); ++c) {
    const auto same = FindSame(to, ChannelIndex(c), from);
    if (same) carried[c] = std::move(states[same->value()]);
  }
  return carried;
}

PortCounterRecord RecordOf(Guid node, const DirectionState& state) {
  PortCounterRecord record;
  static_cast<PortCounters&>(record) = state.reading.values;
  record.node = node;
  record.port = state.reading.port.value();
  record.is_extended = state.reading.is_extended;
  record.sent_bytes_per_second = state.sent_rate;
  record.received_bytes_per_second = state.received_rate;
  record.read = state.read;
  return record;
}

}  // namespace coppice
