// What is handed to the store and not answered yet, and the account of deeds beside what the store
// writes with a change: which deeds it is told of besides, and a line of the log for each.
//
//   change -----------> store, with its deed --durable--> Told ----+
//   denial, reload ---> Note --> first of its kind, then one a     +--> one line each, then one
//                                minute with their number --+      |    a minute with their number
//                                                           +------+
//                                                           +--> store
//
// What no change brings is handed to the store without waiting: a daemon that is killed loses those
// of its last moments. Lines are key=value, for journalctl --grep 'deed .*user=ada'.
#ifndef COPPICE_DAEMON_MANAGER_STORE_CALLS_H_
#define COPPICE_DAEMON_MANAGER_STORE_CALLS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "db/store.h"

namespace coppice {

// Thread-safe.
class StoreCalls {
 public:
  using OnDeed = std::function<void(const DeedRecord&)>;
  // `on_deed` may be null; it must not block.
  explicit StoreCalls(Store* store, OnDeed on_deed = nullptr)
      : store_(store), on_deed_(std::move(on_deed)) {}
  ~StoreCalls() { AwaitAll(); }

  // As Store::Submit. Must not be called with a lock held that `done` takes.
  void Submit(Mutation mutation, Store::Done done);
  // Returns when every `done` has returned.
  void AwaitAll();

  Store& store() const { return *store_; }

 private:
  void End();

  Store* const store_;
  const OnDeed on_deed_;
  std::mutex mu_;
  std::condition_variable idle_;
  uint64_t waiting_ = 0;  // guarded by mu_
};

// Who acts: as far as quotas, events and the account of deeds must know. Whoever calls the manager
// fills it in; one that is left as it is stands for the daemon itself, or a test.
struct Actor {
  std::string user;               // for whom: whose rights the call has
  bool is_administrator = false;  // exempt from quotas
  std::string caller;             // who connected
  std::string origin;             // from where
  std::string method;             // "Jobs.EndJob"; empty: no deed is noted
  // A scheduler's decision for its user: the nodes that it places are counted and not limited, and
  // the account that it names is taken at its word.
  bool is_scheduled = false;
};

inline bool MayNameAnyAccount(const Actor& actor) {
  return actor.is_administrator || actor.is_scheduled;
}

// A deed that went well, to go with its change to the store. Null: none is noted.
inline DeedPtr DeedOf(const Actor& actor, std::string object, absl::Time now) {
  if (actor.method.empty()) return nullptr;
  auto deed = std::make_shared<DeedRecord>();
  deed->time = now;
  deed->share = actor.is_administrator ? DeedShare::kAdministrator : DeedShare::kUser;
  deed->caller = actor.caller;
  deed->user = actor.user;
  deed->origin = actor.origin;
  deed->method = actor.method;
  deed->object = std::move(object);
  deed->outcome = "OK";
  return deed;
}

// How events name it.
inline std::string NameOf(const Actor& actor) {
  if (actor.caller.empty() || actor.caller == actor.user) return actor.user;
  return actor.caller + " for " + actor.user;
}

// Deeds that differ in their objects only and come close together, as few. Not thread-safe.
class FoldedDeeds {
 public:
  static constexpr absl::Duration kPeriod = absl::Minutes(1);
  // Kinds that are told apart at once. Beyond them only methods and outcomes are: somebody may
  // invent users.
  static constexpr size_t kMaxKinds = 1024;

  // In each period so many of a kind are told singly.
  explicit FoldedDeeds(int singly) : singly_(singly) {}

  // Adds what is to be told now to `told`: this one, or none as it only counts.
  void Add(DeedRecord deed, std::vector<DeedRecord>& told);
  // What has been counted in periods that are over by `now`.
  void TakeDue(absl::Time now, std::vector<DeedRecord>& told);
  void TakeAll(std::vector<DeedRecord>& told) { TakeDue(absl::InfiniteFuture(), told); }

 private:
  // Caller, user, host of origin, method, outcome.
  using Kind = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  struct Period {
    absl::Time begin;
    int told = 0;
    DeedRecord counted;  // the last, with the number; without a method: none
  };
  Period& PeriodOf(DeedRecord& deed, std::vector<DeedRecord>& told);

  const int singly_;
  std::map<Kind, Period> periods_;
};

// "user=ada caller=tls:agent-n1 ... count=1"
std::string LineOf(const DeedRecord& deed);

// Thread-safe.
class DeedLog final {
 public:
  // Both outlive it.
  DeedLog(StoreCalls* calls, const Clock* clock) : calls_(calls), clock_(clock) {}
  ~DeedLog() { FlushDue(absl::InfiniteFuture()); }

  // `deed` is durable with its change.
  void Told(const DeedRecord& deed) ABSL_LOCKS_EXCLUDED(mutex_);
  // What no change brings. `actor` with its method.
  void Note(const Actor& actor, absl::string_view object, absl::StatusCode code)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells what has been counted long enough; to be called every few seconds.
  void FlushDue() { FlushDue(clock_->Now()); }
  // Returns when all that was noted is in the store. Blocks for it.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr int kLinesSingly = 10;

  void FlushDue(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Keep(std::vector<DeedRecord> deeds);
  void Log(const std::vector<DeedRecord>& lines);

  StoreCalls* const calls_;
  const Clock* const clock_;
  absl::Mutex mutex_;
  FoldedDeeds noted_ ABSL_GUARDED_BY(mutex_){1};
  FoldedDeeds lines_ ABSL_GUARDED_BY(mutex_){kLinesSingly};
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_STORE_CALLS_H_
