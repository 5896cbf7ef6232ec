#include "daemon/rpc/event_stream.h"

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/manager/event_feed.h"
#include "daemon/rpc/events_conversion.h"

namespace coppice {
namespace {

// Events that a stream fetches at once: enough to spare the feed's lock and the store, few enough
// to hold for each of thousands of slow watchers.
constexpr uint32_t kFetched = 64;

class EventSource final : public MessageSource<v1::Event> {
 public:
  explicit EventSource(std::unique_ptr<EventWatch> watch) : watch_(std::move(watch)) {}

  absl::StatusOr<bool> Next(v1::Event& message) override {
    if (waiting_.empty()) {
      ASSIGN_OR_RETURN(const std::vector<EventWatch::Event> events, watch_->Next(kFetched));
      waiting_.assign(events.begin(), events.end());
    }
    if (waiting_.empty()) return false;
    ToProto(*waiting_.front(), message);
    waiting_.pop_front();
    return true;
  }

 private:
  const std::unique_ptr<EventWatch> watch_;
  std::deque<EventWatch::Event> waiting_;
};

}  // namespace

grpc::ServerWriteReactor<v1::Event>* OpenEventStream(EventStreams& streams, Manager* manager,
                                                     const v1::WatchEventsRequest& request) {
  std::optional<int64_t> after;
  if (request.has_after_id()) after = request.after_id();
  return streams.Open(
      "events", [&](std::function<void()> wake) -> absl::StatusOr<EventStreams::Source> {
        ASSIGN_OR_RETURN(std::unique_ptr<EventWatch> watch,
                         manager->WatchEvents(FromProto(request), after, std::move(wake)));
        return std::make_unique<EventSource>(std::move(watch));
      });
}

}  // namespace coppice
