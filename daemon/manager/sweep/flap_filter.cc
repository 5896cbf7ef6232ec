#include "daemon/manager/sweep/flap_filter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/manager/event_kinds.h"

namespace coppice {
namespace {

bool IsLoss(absl::string_view kind) {
  return absl::EndsWith(kind, ".down") || absl::EndsWith(kind, ".gone") ||
         absl::EndsWith(kind, ".unreachable");
}

bool IsChange(absl::string_view kind) {
  return IsLoss(kind) || absl::EndsWith(kind, ".up") || absl::EndsWith(kind, ".new") ||
         absl::EndsWith(kind, ".reachable");
}

absl::string_view FamilyOf(absl::string_view kind) { return kind.substr(0, kind.find('.')); }

}  // namespace

std::vector<EventRecord> FlapFilter::Pass(std::vector<EventRecord> events, absl::Duration now) {
  std::vector<EventRecord> told;
  absl::flat_hash_set<std::string> seen;  // a host's adapters share an object
  for (EventRecord& event : events) {
    if (!IsChange(event.kind) || event.object == "fabric") {
      told.push_back(std::move(event));
      continue;
    }
    Object& object = objects_[event.object];
    object.last = now;
    object.last_kind = event.kind;
    const bool is_first = seen.insert(event.object).second;
    if (object.flaps) {
      if (is_first) ++object.count;
      continue;
    }
    if (!is_first) {
      told.push_back(std::move(event));
      continue;
    }
    object.changes.push_back(now);
    object.changes.erase(std::remove_if(object.changes.begin(), object.changes.end(),
                                        [&](absl::Duration at) { return now - at > kWithin; }),
                         object.changes.end());
    if (object.changes.size() >= kFlaps) {
      object.flaps = true;
      object.count = object.changes.size();
      object.changes.clear();
      event.message = absl::StrCat(event.message, "; ", object.count, " changes within ",
                                   absl::FormatDuration(kWithin),
                                   ": further ones are only counted until it is steady");
      event.kind = absl::StrCat(FamilyOf(event.kind), ".flapping");
      event.severity = std::string(EventKindOf(event.kind).severity);
    }
    told.push_back(std::move(event));
  }
  return told;
}

std::vector<EventRecord> FlapFilter::End(absl::Time when, absl::Duration now) {
  std::vector<EventRecord> told;
  for (auto it = objects_.begin(); it != objects_.end();) {
    const Object& object = it->second;
    if (now - object.last <= kWithin) {
      ++it;
      continue;
    }
    if (object.flaps) {
      told.push_back(
          EventOf(absl::StrCat(FamilyOf(object.last_kind), ".steady"), when, it->first,
                  absl::StrCat("no change for ", absl::FormatDuration(kWithin), ", after ",
                               object.count, " of them; the last was ", object.last_kind)));
      if (IsLoss(object.last_kind)) told.back().severity = "warning";
    }
    it = objects_.erase(it);
  }
  return told;
}

void CableDamper::Move(End& end, State state, absl::Duration now) {
  if (end.state == state) return;
  end.state = state;
  end.moves.push_back(now);
  if (end.moves.size() > FlapFilter::kFlaps) end.moves.erase(end.moves.begin());
}

bool CableDamper::IsWorthASweep(absl::Span<const LinkChange> changes, absl::Duration now) {
  std::set<std::pair<Guid, PortNum>> seen;
  bool is_worth = false;
  for (const LinkChange& change : changes) {
    const std::pair<Guid, PortNum> place(change.node, change.port);
    seen.insert(place);
    End& end = ends_[place];
    Move(end, change.is_up ? State::kUp : State::kDown, now);
    const bool flaps =
        end.moves.size() >= FlapFilter::kFlaps && now - end.moves.front() <= FlapFilter::kWithin;
    if (!flaps || now - end.moves.back() >= kRest) is_worth = true;
  }
  for (auto it = ends_.begin(); it != ends_.end();) {
    if (!seen.contains(it->first)) Move(it->second, State::kAsRead, now);
    const bool is_past = now - it->second.moves.back() > FlapFilter::kWithin;
    it = is_past && it->second.state == State::kAsRead ? ends_.erase(it) : std::next(it);
  }
  return is_worth;
}

void CableDamper::ReadAll() {
  for (auto& [place, end] : ends_) end.state = State::kAsRead;
}

}  // namespace coppice
