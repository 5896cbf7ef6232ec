#include "daemon/manager/event_log.h"

#include <utility>

#include "daemon/base/log.h"

namespace coppice {

void EventLog::Append(absl::string_view severity, absl::string_view kind, std::string object,
                      std::string message) {
  std::vector<EventRecord> events;
  events.push_back({0, clock_->Now(), std::string(severity), std::string(kind), std::move(object),
                    std::move(message)});
  Append(std::move(events));
}

void EventLog::Append(std::vector<EventRecord> events) {
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
