#include "daemon/manager/event_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/log.h"

namespace coppice {
namespace {

constexpr absl::Duration kToldEvery = absl::Minutes(1);

}  // namespace

void EventLog::Append(absl::string_view severity, absl::string_view kind, std::string object,
                      std::string message, const EventSource& source) {
  std::vector<EventRecord> events;
  events.push_back({0, clock_->Now(), std::string(severity), std::string(kind), std::move(object),
                    std::move(message), source.actor});
  Append(std::move(events), source.user);
}

void EventLog::Fold(const std::string& user, std::vector<EventRecord>& events) {
  const double most = static_cast<double>(options_->events_per_user);
  const absl::Duration now = clock_->Monotonic();
  std::lock_guard lock(mu_);
  const auto [found, is_new] = budgets_.try_emplace(user);
  Budget& budget = found->second;
  if (is_new) {
    budget.left = most;
    budget.told = now;
  } else {
    budget.left += absl::FDivDuration(now - budget.filled, absl::Hours(1)) * most;
    budget.left = std::min(budget.left, most);
  }
  budget.filled = now;
  std::erase_if(events, [&](const EventRecord& event) {
    if (budget.left >= 1) return budget.left -= 1, false;
    ++budget.folded[event.kind];
    return true;
  });
}

void EventLog::Flush() {
  std::vector<EventRecord> events;
  const absl::Duration now = clock_->Monotonic();
  {
    std::lock_guard lock(mu_);
    for (auto it = budgets_.begin(); it != budgets_.end();) {
      Budget& budget = it->second;
      if (!budget.folded.empty() && now - budget.told >= kToldEvery) {
        budget.told = now;
        std::vector<std::string> numbers;
        for (const auto& [kind, count] : std::exchange(budget.folded, {})) {
          numbers.push_back(absl::StrCat(count, " ", kind));
        }
        events.push_back({0, clock_->Now(), "info", "events.folded",
                          absl::StrCat("user:", it->first),
                          absl::StrCat("more than limits.events_per_user in an hour; not told one "
                                       "by one: ",
                                       absl::StrJoin(numbers, ", ")),
                          ""});
      }
      const bool is_idle = budget.folded.empty() && now - budget.filled >= absl::Hours(1);
      it = is_idle ? budgets_.erase(it) : std::next(it);
    }
  }
  Append(std::move(events));
}

void EventLog::Append(std::vector<EventRecord> events, const std::string& user) {
  if (!user.empty()) Fold(user, events);
  if (events.empty()) return;
  const std::string kind = events.front().kind;
  const size_t count = events.size();
  calls_->Submit(AppendEvents{std::move(events), options_->kept_events}, [this, kind, count](
                                                                             absl::Status status) {
    if (status.ok()) return on_kept_();
    spdlog::warn("{} events from {} on are lost: {}", count, kind, status.ToString());
  });
}

}  // namespace coppice
