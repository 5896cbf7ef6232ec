// What happened, in the words that an administrator reads: every part of the manager tells it here,
// and the store numbers and keeps it, the newest so many as the options say: each event that comes
// drops what is too many with it. Nobody waits for an event; one that a failing disk loses is
// logged and harms nothing else. Knows nothing of what the events mean.
//
// What one user causes is told singly up to a number an hour, and beyond it as one event a minute
// with the numbers of each kind: so nobody washes out what others and the fabric did.
#ifndef COPPICE_DAEMON_MANAGER_EVENT_LOG_H_
#define COPPICE_DAEMON_MANAGER_EVENT_LOG_H_

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/base/clock.h"
#include "daemon/manager/live_options.h"
#include "daemon/manager/store_calls.h"
#include "db/store.h"

namespace coppice {

// Who did it, for the event to name, and whose number it counts in; empty: nobody's.
struct EventSource {
  std::string actor, user;
};

// Thread-safe. Takes no lock but its own and the store's queue; the rule of StoreCalls::Submit
// holds.
class EventLog {
 public:
  // `on_kept` is called on the store's thread after events have become durable; it must be quick.
  EventLog(StoreCalls* calls, const Clock* clock, LiveOptions options,
           std::function<void()> on_kept)
      : calls_(calls), clock_(clock), options_(std::move(options)), on_kept_(std::move(on_kept)) {}

  // Something that happens now. `severity` is "info", "warning" or "error".
  void Append(absl::string_view severity, absl::string_view kind, std::string object,
              std::string message, const EventSource& source = {});
  // All of them in one step. None: does nothing. `user` as in EventSource.
  void Append(std::vector<EventRecord> events, const std::string& user = "");
  // Tells what was not told singly, of users of whom that is due. To be called every few seconds.
  void Flush();

 private:
  // What a user may still tell, and what was not told.
  struct Budget {
    double left = 0;
    absl::Duration filled, told;             // by Clock::Monotonic
    std::map<std::string, uint64_t> folded;  // by kind
  };
  // Takes out what is beyond the user's number.
  void Fold(const std::string& user, std::vector<EventRecord>& events);

  StoreCalls* const calls_;
  const Clock* const clock_;
  const LiveOptions options_;
  const std::function<void()> on_kept_;
  std::mutex mu_;
  std::map<std::string, Budget> budgets_;  // by user; guarded by mu_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_EVENT_LOG_H_
