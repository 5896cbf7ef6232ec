#include "daemon/manager/sweep/cable_damper.h"

#include <algorithm>
#include <set>

#include "daemon/manager/sweep/flap_filter.h"

namespace coppice {

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
