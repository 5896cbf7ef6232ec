#include "daemon/manager/load/load_events.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/manager/load/direction_states.h"

namespace coppice {
namespace {

std::string EndName(const Fabric& fabric, ChannelIndex c) {
  const VertexIndex v = fabric.channel_from(c);
  std::string name = fabric.IsSwitch(v)
                         ? fabric.switch_info(fabric.AsSwitch(v)).description
                         : std::string(fabric.host_name(fabric.host(fabric.AsEndpoint(v))));
  if (name.empty()) name = ToString(BeginOf(fabric, c).first);
  return absl::StrCat(name, "/", fabric.channel_from_port(c).value());
}

}  // namespace

EventRecord ErrorsEvent(const Fabric& fabric, LinkIndex link, const ErrorWatch::Told& told,
                        absl::Time wall) {
  const ChannelIndex ab(2 * link.value()), ba = Fabric::Reverse(ab);
  const auto ends = std::minmax({BeginOf(fabric, ab), BeginOf(fabric, ba)});
  EventRecord event;
  event.time = wall;
  event.severity = told.is_over ? "info" : "warning";
  event.kind = "link.errors";
  event.object = absl::StrCat("link:", ToString(ends.first.first), "/", ends.first.second.value(),
                              "-", ToString(ends.second.first), "/", ends.second.second.value());
  event.message = absl::StrCat(
      "link ", EndName(fabric, ab), " - ", EndName(fabric, ba),
      told.is_over ? ": errors rise no more; " : ": errors rise: ", ErrorsInWords(told.errors),
      " in ", absl::FormatDuration(absl::Trunc(told.since, absl::Milliseconds(1))));
  return event;
}

EventRecord StoppedEvent(const Fabric& fabric, ChannelIndex channel, absl::Time wall) {
  const auto [node, port] = BeginOf(fabric, channel);
  EventRecord event;
  event.time = wall;
  event.severity = "warning";
  event.kind = "port.counters";
  event.object = absl::StrCat("port:", ToString(node), "/", port.value());
  event.message = absl::StrCat(
      "port ", EndName(fabric, channel),
      ": its 32-bit counts of data stand at their greatest value, and its load stays what it was: "
      "clear its counters (perfquery -R), regularly if it has none of 64 bits");
  return event;
}

}  // namespace coppice
