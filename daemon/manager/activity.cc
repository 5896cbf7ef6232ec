#include "daemon/manager/activity.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/manager/event_kinds.h"

namespace coppice {

void Activity::Refused(absl::Span<const RefusedSwitch> switches) {
  ++now_.refused;
  for (const RefusedSwitch& full : switches) {
    if (full.entries_total == 0) continue;  // it cannot aggregate at all: no entry went
    Refusals& refusals = by_switch_[full.guid];
    refusals.entries_total = full.entries_total;
    ++refusals.count;
  }
}

std::vector<EventRecord> Activity::Take(absl::Time now) {
  std::vector<EventRecord> events;
  const uint64_t granted = now_.granted - before_.granted;
  const uint64_t released = now_.released - before_.released;
  const uint64_t refused = now_.refused - before_.refused;
  if (granted + released + refused > 0) {
    events.push_back(
        EventOf("trees.changed", now, "trees",
                absl::StrCat("since the last such event ", granted, " trees were granted, ",
                             released, " released, ", refused, " refused for want of entries")));
  }
  size_t named = 0;
  for (const auto& [guid, refusals] : by_switch_) {
    if (++named > kMaxSwitches) {
      events.push_back(
          EventOf("entries.exhausted", now, "fabric",
                  absl::StrCat(by_switch_.size() - kMaxSwitches,
                               " more switches had no entry left; see `coppicectl entries`")));
      break;
    }
    events.push_back(
        EventOf("entries.exhausted", now, absl::StrCat("switch:", ToString(guid)),
                absl::StrCat("none of its ", refusals.entries_total, " entries was free for ",
                             refusals.count, " trees that asked for one")));
  }
  before_ = now_;
  by_switch_.clear();
  return events;
}

}  // namespace coppice
