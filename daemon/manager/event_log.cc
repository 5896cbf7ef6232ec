#include "daemon/manager/event_log.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/event_kinds.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

constexpr absl::Duration kToldEvery = absl::Minutes(1);

// Events read from the store at once.
constexpr uint32_t kPage = 256;
// After the store failed.
constexpr std::chrono::seconds kTryAgain(1);

absl::Status Gone(int64_t after, const EventRange& kept) {
  return absl::OutOfRangeError(absl::StrCat("after_id: events after ", after,
                                            " are kept no more, the oldest is ", kept.oldest,
                                            "; list the events, then watch after the last one"));
}

}  // namespace

void EventLog::Append(absl::string_view kind, std::string object, std::string message,
                      const EventSource& source) {
  std::vector<EventRecord> events = {
      EventOf(kind, clock_->Now(), std::move(object), std::move(message))};
  events.back().actor = source.actor;
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
        events.push_back(EventOf("events.folded", clock_->Now(), absl::StrCat("user:", it->first),
                                 absl::StrCat("more than limits.events_per_user in an hour; not "
                                              "told one by one: ",
                                              absl::StrJoin(numbers, ", "))));
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

EventFeed::EventFeed(Store* store, size_t kept)
    : store_(store), kept_(std::max<size_t>(kept, 1)), thread_([this] { Run(); }) {}

EventFeed::~EventFeed() {
  {
    std::lock_guard lock(looking_);
    stopping_ = true;
  }
  looked_.notify_all();
  thread_.join();
}

void EventFeed::Look() {
  std::lock_guard lock(looking_);
  is_new_ = true;
  looked_.notify_all();
}

void EventFeed::Run() {
  std::unique_lock lock(looking_);
  while (true) {
    looked_.wait(lock, [this] { return stopping_ || is_new_; });
    if (stopping_) return;
    is_new_ = false;
    lock.unlock();
    const absl::Status status = CatchUp();
    lock.lock();
    if (status.ok()) continue;
    spdlog::warn("events cannot be read for who watches them: {}", status.ToString());
    looked_.wait_for(lock, kTryAgain, [this] { return stopping_ || is_new_; });
    is_new_ = true;
  }
}

absl::Status EventFeed::CatchUp() {
  std::lock_guard reading(reading_);
  EventFilter next;
  next.limit = kPage;
  while (true) {
    {
      std::lock_guard lock(mu_);
      if (is_idle_) return absl::OkStatus();
      next.after_id = end_;
    }
    ASSIGN_OR_RETURN(std::vector<EventRecord> events, store_->Events(next));
    const bool is_last = events.size() < kPage;
    Push(std::move(events));
    if (is_last) return absl::OkStatus();
  }
}

void EventFeed::Push(std::vector<EventRecord> events) {
  if (events.empty()) return;
  std::vector<Event> added, dropped;  // memory is taken and freed without the lock
  for (EventRecord& event : events) {
    added.push_back(std::make_shared<const EventRecord>(std::move(event)));
  }
  std::lock_guard lock(mu_);
  end_ = added.back()->id;
  recent_.insert(recent_.end(), added.begin(), added.end());
  WakeSleepers(added.size());
  while (recent_.size() > kept_) {
    before_ = recent_.front()->id;
    dropped.push_back(std::move(recent_.front()));
    recent_.pop_front();
  }
}

// Sleepers have seen all before the `added` last events, those that just came perhaps more.
void EventFeed::WakeSleepers(size_t added) {
  const auto first = recent_.end() - static_cast<std::ptrdiff_t>(added);
  std::erase_if(sleepers_, [&](EventWatch* watch) {
    const auto found = std::find_if(first, recent_.end(), [&](const Event& event) {
      return event->id > watch->filter_.after_id && Matches(watch->filter_, *event);
    });
    if (found == recent_.end()) {
      watch->filter_.after_id = std::max(watch->filter_.after_id, end_);
      return false;
    }
    watch->filter_.after_id = (*found)->id - 1;
    watch->sleeps_ = false;
    watch->wake_();
    return true;
  });
}

size_t EventFeed::watches() const {
  std::lock_guard lock(mu_);
  return watches_;
}

absl::StatusOr<std::unique_ptr<EventWatch>> EventFeed::Watch(EventFilter filter,
                                                             std::optional<int64_t> after,
                                                             std::function<void()> wake) {
  RETURN_IF_ERROR(CheckFilter(filter));
  // Counted before the store is read, so that the thread reads what comes from then on.
  auto watch = std::make_unique<EventWatch>(this, std::move(filter), after == 0, std::move(wake));
  ASSIGN_OR_RETURN(watch->filter_.after_id, Start(after));
  return watch;
}

absl::StatusOr<int64_t> EventFeed::Start(std::optional<int64_t> after) {
  if (after && *after < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "after_id: ", *after, " is no event's id; give that of the last one that came, or 0"));
  }
  std::lock_guard reading(reading_);
  ASSIGN_OR_RETURN(const EventRange kept, store_->KeptEvents());
  {
    std::lock_guard lock(mu_);
    if (std::exchange(is_idle_, false)) {
      recent_.clear();
      before_ = end_ = kept.newest;
    }
  }
  if (!after) return kept.newest;
  if (*after == 0) return kept.oldest - 1;
  if (*after < kept.oldest - 1) return Gone(*after, kept);
  if (*after > kept.newest) {
    return absl::OutOfRangeError(absl::StrCat("after_id: the newest event is ", kept.newest,
                                              ", not ", *after,
                                              "; is it of another daemon? List the events"));
  }
  return *after;
}

EventWatch::EventWatch(EventFeed* feed, EventFilter filter, bool from_oldest,
                       std::function<void()> wake)
    : feed_(feed), wake_(std::move(wake)), from_oldest_(from_oldest), filter_(std::move(filter)) {
  std::lock_guard lock(feed_->mu_);
  ++feed_->watches_;
}

EventWatch::~EventWatch() {
  std::deque<Event> unused;  // goes after the lock
  std::lock_guard lock(feed_->mu_);
  if (sleeps_) std::erase(feed_->sleepers_, this);
  if (--feed_->watches_ == 0) {
    unused.swap(feed_->recent_);
    feed_->is_idle_ = true;
  }
}

absl::StatusOr<std::vector<EventWatch::Event>> EventWatch::Next(uint32_t limit) {
  std::vector<Event> events;
  while (!TakeRecent(limit, events)) {
    RETURN_IF_ERROR(TakeStored(limit, events));
    if (!events.empty()) break;
  }
  return events;
}

bool EventWatch::TakeRecent(uint32_t limit, std::vector<Event>& events) {
  std::lock_guard lock(feed_->mu_);
  if (std::exchange(sleeps_, false)) std::erase(feed_->sleepers_, this);
  if (filter_.after_id < feed_->before_) return false;
  auto event =
      std::partition_point(feed_->recent_.begin(), feed_->recent_.end(),
                           [this](const Event& recent) { return recent->id <= filter_.after_id; });
  for (; event != feed_->recent_.end() && events.size() < limit; ++event) {
    if (Matches(filter_, **event)) events.push_back(*event);
    filter_.after_id = (*event)->id;
  }
  from_oldest_ = false;
  if (!events.empty()) return true;
  sleeps_ = true;
  feed_->sleepers_.push_back(this);
  return true;
}

absl::Status EventWatch::TakeStored(uint32_t limit, std::vector<Event>& events) {
  int64_t seen = 0;  // all up to it is durable by now, so a page that is not full has looked at it
  {
    std::lock_guard lock(feed_->mu_);
    seen = feed_->end_;
  }
  EventFilter page = filter_;
  page.limit = limit;
  ASSIGN_OR_RETURN(std::vector<EventRecord> found, feed_->store_->Events(page));
  // After the page: what was dropped before it was read shows here.
  ASSIGN_OR_RETURN(const EventRange kept, feed_->store_->KeptEvents());
  if (filter_.after_id < kept.oldest - 1 && !from_oldest_) return Gone(filter_.after_id, kept);
  from_oldest_ = false;
  const bool is_full = found.size() >= limit;
  if (!found.empty()) filter_.after_id = found.back().id;
  if (!is_full) filter_.after_id = std::max(filter_.after_id, seen);
  for (EventRecord& event : found) {
    events.push_back(std::make_shared<const EventRecord>(std::move(event)));
  }
  return absl::OkStatus();
}

}  // namespace coppice
