// What happened, in the words that an administrator reads: every part of the manager tells it here,
// the store numbers and keeps it, and from there it goes to whoever watches. Nobody waits for an
// event; one that a failing disk loses is logged and harms nothing else. What one user causes is
// told singly up to a number an hour (README.md). Knows nothing of what the events mean.
#ifndef COPPICE_DAEMON_MANAGER_EVENT_LOG_H_
#define COPPICE_DAEMON_MANAGER_EVENT_LOG_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/clock.h"
#include "daemon/manager/options.h"
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

  // Something that happens now, of a kind of event_kinds.h, which says how severe it is.
  void Append(absl::string_view kind, std::string object, std::string message,
              const EventSource& source = {});
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

class EventWatch;

// Events as they become durable, for any number of watchers, each at its own pace. The store keeps
// and numbers them, so a watcher's place is an id and outlives the daemon.
//
//   store:   |---|---|---|---|---|---|---|---|---|---|---|---|
//          oldest      ^ A reads pages of the store  |       newest
//   ring:                                        |---|---|---|    the newest, in memory
//                                                ^ B   C sleeps: it has seen all of it
//
// One thread reads what is new into the ring, and wakes the sleepers for whom something came; who
// is behind the ring reads the store on its own thread. Nobody moves past an id before everything
// up to it has been read: no event is missed or told twice. While nobody watches nothing is read.
// Thread-safe. Outlives its watches; `store` outlives it.
class EventFeed final {
 public:
  explicit EventFeed(Store* store, size_t kept = 4096);
  ~EventFeed();

  // Events may have become durable. Quick; from any thread.
  void Look();

  // The events that match `filter` (its after_id and limit mean nothing here) after the one with id
  // `after`, or all that are kept (0), or from now on (unset). `wake` is called under a lock of the
  // feed: it must be quick and call nothing of the feed. Reads the store. INVALID_ARGUMENT: the
  // filter, or a negative id. OUT_OF_RANGE: events after that id are kept no more, or none has had
  // it yet. Errors of Store::Events.
  absl::StatusOr<std::unique_ptr<EventWatch>> Watch(EventFilter filter,
                                                    std::optional<int64_t> after,
                                                    std::function<void()> wake);
  size_t watches() const;

 private:
  friend class EventWatch;
  using Event = std::shared_ptr<const EventRecord>;

  void Run();
  // Reads the store to its end into the ring.
  absl::Status CatchUp();
  void Push(std::vector<EventRecord> events);
  void WakeSleepers(size_t added);
  absl::StatusOr<int64_t> Start(std::optional<int64_t> after);

  Store* const store_;
  const size_t kept_;

  // Its sections are a few instructions: the store's thread takes it.
  std::mutex looking_;
  std::condition_variable looked_;
  // Guarded by looking_.
  bool is_new_ = false;  // Look was called
  bool stopping_ = false;

  std::mutex reading_;  // one reads into the ring at a time; taken before mu_
  mutable std::mutex mu_;
  // Guarded by mu_.
  int64_t before_ = 0;  // all events after this one, up to end_, are in recent_
  int64_t end_ = 0;     // the last that was read
  std::deque<Event> recent_;
  std::vector<EventWatch*> sleepers_;
  size_t watches_ = 0;
  bool is_idle_ = true;  // nobody has watched since the ring was last in use: it begins anew
  std::thread thread_;   // last: it uses the rest
};

// One watcher's place. Methods by one thread at a time.
class EventWatch final {
 public:
  using Event = std::shared_ptr<const EventRecord>;

  EventWatch(EventFeed* feed, EventFilter filter, bool from_oldest, std::function<void()> wake);
  // From here on `wake` is not called.
  ~EventWatch();
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  // The next events, at most `limit`, by id. None: there are none yet, and `wake` will be called
  // once when there are. OUT_OF_RANGE: it was so slow that the store dropped events before it.
  // Errors of Store::Events.
  absl::StatusOr<std::vector<Event>> Next(uint32_t limit);

 private:
  friend class EventFeed;
  // False: the ring does not reach back so far.
  bool TakeRecent(uint32_t limit, std::vector<Event>& events);
  absl::Status TakeStored(uint32_t limit, std::vector<Event>& events);

  EventFeed* const feed_;
  const std::function<void()> wake_;
  bool from_oldest_;     // whatever that is: until something has been read
  EventFilter filter_;   // after_id: all up to it has been looked at; guarded by feed_->mu_ asleep
  bool sleeps_ = false;  // guarded by feed_->mu_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_EVENT_LOG_H_
