#include "daemon/manager/load/direction_states.h"

namespace coppice {

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
  const PortCounters& counts = state.reading.values;
  record.node = node;
  record.port = state.reading.port.value();
  record.sent_bytes = counts.sent_bytes;
  record.received_bytes = counts.received_bytes;
  record.sent_packets = counts.sent_packets;
  record.received_packets = counts.received_packets;
  record.sent_wait_ticks = counts.sent_wait_ticks;
  record.symbol_errors = counts.symbol_errors;
  record.link_recoveries = counts.link_recoveries;
  record.link_downed = counts.link_downed;
  record.receive_errors = counts.receive_errors;
  record.remote_physical_errors = counts.remote_physical_errors;
  record.relay_errors = counts.relay_errors;
  record.send_discards = counts.send_discards;
  record.send_constraint_errors = counts.send_constraint_errors;
  record.receive_constraint_errors = counts.receive_constraint_errors;
  record.integrity_errors = counts.integrity_errors;
  record.buffer_overruns = counts.buffer_overruns;
  record.vl15_dropped = counts.vl15_dropped;
  record.is_extended = state.reading.is_extended;
  record.sent_bytes_per_second = state.sent_rate;
  record.received_bytes_per_second = state.received_rate;
  record.read = state.read;
  return record;
}

}  // namespace coppice
