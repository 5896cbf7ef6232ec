// Deeds that no change to the store brings with it: what was denied, and what changes the daemon
// but not its database (a sweep, a reload). Denials that are the same but for their objects are
// told at once the first time and then, while they go on, as one with their number a minute: so
// nobody washes out others' by repeating his own.
//
// They are handed to the store without waiting: a daemon that is killed loses those of its last
// moments, where a change and its deed are written together (db/deed_records.h).
#ifndef COPPICE_DAEMON_RPC_DEED_LOG_H_
#define COPPICE_DAEMON_RPC_DEED_LOG_H_

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/manager/actor.h"
#include "db/store.h"

namespace coppice {

// Thread-safe.
class DeedLog final {
 public:
  using Keep = std::function<void(std::vector<DeedRecord>)>;
  // `keep` takes deeds to the store; it must not block.
  explicit DeedLog(Keep keep) : keep_(std::move(keep)) {}
  ~DeedLog() { Flush(); }

  // Whether a call of that method that ended so is told here.
  static bool IsToldOf(absl::string_view method, absl::StatusCode code);
  // `actor` with its method.
  void Add(const Actor& actor, absl::string_view object, absl::StatusCode code)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Hands over what has been counted and not told.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kMostKinds = 1024;
  using Kind = std::tuple<std::string, std::string, std::string, std::string>;
  struct Repeated {
    absl::Time told;
    DeedRecord pending;  // without a method: none
  };
  void TakePending(std::vector<DeedRecord>& deeds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Keep keep_;
  absl::Mutex mutex_;
  std::map<Kind, Repeated> denials_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_DEED_LOG_H_
