#include "daemon/manager/load/unread_watch.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/manager/event_kinds.h"

namespace coppice {
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
