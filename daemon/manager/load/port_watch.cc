#include "daemon/manager/load/port_watch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/event_kinds.h"
#include "daemon/manager/load/channel_states.h"
#include "db/store.h"

namespace coppice {

bool IsRising(const PortInterval& interval, double threshold) {
  if (interval.error(ErrorCount::kLinkDowned) > 0) return true;
  if (interval.error(ErrorCount::kLinkRecoveries) > 0) return true;
  const uint64_t errors = interval.error(ErrorCount::kSymbolErrors) +
                          interval.error(ErrorCount::kReceiveErrors) +
                          interval.error(ErrorCount::kSendDiscards);
  const double minutes = absl::ToDoubleMinutes(interval.length);
  return errors > 0 && minutes > 0 && static_cast<double>(errors) >= threshold * minutes;
}

std::optional<ErrorWatch::Told> ErrorWatch::Take(const PortInterval& interval, bool is_rising,
                                                 absl::Duration now) {
  const bool begins = is_rising && !rising_;
  if (begins) {
    rising_ = true;
    told_ = now - interval.length;
  }
  if (!rising_) return std::nullopt;
  for (size_t i = 0; i < kErrorCounts; ++i) errors_[i] += interval.errors[i];
  if (is_rising) last_rise_ = now;
  const bool is_over = now - last_rise_ >= kErrorsAreOver;
  const bool is_due = is_rising && now - told_ >= kTellErrorsEvery;
  if (!begins && !is_over && !is_due) return std::nullopt;
  Told told{is_over, std::exchange(errors_, {}), now - told_};
  told_ = now;
  rising_ = !is_over;
  return told;
}

std::string ErrorsInWords(const std::array<uint64_t, kErrorCounts>& errors) {
  std::string words;
  for (size_t i = 0; i < kErrorCounts; ++i) {
    if (errors[i] == 0) continue;
    absl::StrAppend(&words, words.empty() ? "" : ", ", NameOf(static_cast<ErrorCount>(i)), " +",
                    errors[i]);
  }
  return words.empty() ? "none" : words;
}

namespace {

// The events about counters, in words. Knows nothing of when they are told.

std::string EndName(const Fabric& fabric, ChannelIndex c) {
  const VertexIndex v = fabric.channel_from(c);
  std::string name = fabric.IsSwitch(v)
                         ? fabric.switch_info(fabric.AsSwitch(v)).description
                         : std::string(fabric.host_name(fabric.host(fabric.AsEndpoint(v))));
  if (name.empty()) name = ToString(BeginOf(fabric, c).first);
  return absl::StrCat(name, "/", fabric.channel_from_port(c).value());
}

// `link.errors`: errors rise on the link, or no more.
EventRecord ErrorsEvent(const Fabric& fabric, LinkIndex link, const ErrorWatch::Told& told,
                        absl::Time wall) {
  const ChannelIndex ab(2 * link.value()), ba = Fabric::Reverse(ab);
  const auto ends = std::minmax({BeginOf(fabric, ab), BeginOf(fabric, ba)});
  std::string object =
      absl::StrCat("link:", ToString(ends.first.first), "/", ends.first.second.value(), "-",
                   ToString(ends.second.first), "/", ends.second.second.value());
  std::string message = absl::StrCat(
      "link ", EndName(fabric, ab), " - ", EndName(fabric, ba),
      told.is_over ? ": errors rise no more; " : ": errors rise: ", ErrorsInWords(told.errors),
      " in ", absl::FormatDuration(absl::Trunc(told.since, absl::Milliseconds(1))));
  EventRecord event = EventOf("link.errors", wall, std::move(object), std::move(message));
  if (told.is_over) event.severity = "info";
  return event;
}

// `port.counters`: a count of data stands at its end at the switch port that `channel` leaves.
EventRecord StoppedEvent(const Fabric& fabric, ChannelIndex channel, absl::Time wall) {
  const auto [node, port] = BeginOf(fabric, channel);
  return EventOf(
      "port.counters", wall, absl::StrCat("port:", ToString(node), "/", port.value()),
      absl::StrCat("port ", EndName(fabric, channel),
                   ": its 32-bit counts of data stand at their greatest value, and its load stays "
                   "what it was: clear its counters (perfquery -R), regularly if it has none of 64 "
                   "bits"));
}

}  // namespace

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

namespace {

// What a sweep did not read of one switch.
struct Missing {
  std::string first;  // in words, which begin with the switch's name
  size_t count = 0;
  bool is_silent = true;  // all of it
};

using Told = std::vector<std::pair<Guid, std::string>>;  // switch, message

void Append(bool is_read_again, Told told, absl::Time wall, std::vector<EventRecord>& events) {
  const auto event = [&](std::string object, std::string message) {
    events.push_back(EventOf("switch.counters", wall, std::move(object), std::move(message)));
    if (is_read_again) events.back().severity = "info";
  };
  if (told.size() <= UnreadWatch::kMaxTold) {
    for (auto& [guid, message] : told) {
      event(absl::StrCat("switch:", ToString(guid)), std::move(message));
    }
    return;
  }
  std::string summary = absl::StrCat(told.size(), " of these in one sweep");
  for (size_t i = 0; i < 3; ++i) absl::StrAppend(&summary, "; ", told[i].second);
  event("fabric", absl::StrCat(summary, "; ..."));
}

}  // namespace

void UnreadWatch::Take(const CounterSweep& sweep, absl::Time wall,
                       std::vector<EventRecord>& events) {
  if (sweep.readings.empty() && sweep.unanswered.empty()) return;
  absl::btree_map<Guid, Missing> missing;  // told in this order
  for (const UnansweredNode& entry : sweep.unanswered) {
    if (entry.node == Guid()) continue;
    Missing& of_switch = missing[entry.node];
    // What is refused says more than what is not answered.
    if (++of_switch.count == 1 || (of_switch.is_silent && !entry.is_silent)) {
      of_switch.first = entry.what;
    }
    of_switch.is_silent = of_switch.is_silent && entry.is_silent;
  }
  absl::flat_hash_set<Guid> read;
  for (const auto& reading : sweep.readings) read.insert(reading.node);
  Told unread, read_again;
  for (auto it = switches_.begin(); it != switches_.end();) {
    if (missing.contains(it->first)) {
      ++it;
      continue;
    }
    if (it->second.is_told && read.contains(it->first)) {  // else it has left the fabric
      read_again.emplace_back(
          it->first, absl::StrCat("switch ", ToString(it->first), ": its counters are read again"));
    }
    it = switches_.erase(it);
  }
  for (const auto& [guid, what] : missing) {
    Unread& state = switches_[guid];
    if (++state.sweeps < kSilentSweeps && what.is_silent) continue;
    if (std::exchange(state.is_told, true)) continue;
    unread.emplace_back(
        guid, absl::StrCat("counters are not read, and load is not known there: ", what.first,
                           what.count > 1 ? absl::StrCat(", and ", what.count - 1, " more") : ""));
  }
  Append(false, std::move(unread), wall, events);
  Append(true, std::move(read_again), wall, events);
}

}  // namespace coppice
