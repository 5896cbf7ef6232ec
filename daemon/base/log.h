// The log: spdlog on stderr, one line an event whatever it names, errors logged once where they are
// handled.
// A library never calls SetUpLog; only a program's main.cc does.
#ifndef COPPICE_DAEMON_BASE_LOG_H_
#define COPPICE_DAEMON_BASE_LOG_H_

#include <spdlog/spdlog.h>

#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace coppice {

enum class LogFormat {
  kTime,     // "TIME LEVEL MESSAGE"
  kJournal,  // "<PRIORITY>MESSAGE", as sd-daemon(3) has it: the journal keeps the time itself
};

// Sends the log to stderr from `level` (trace, debug, info, warning, error, critical, off) on.
// INVALID_ARGUMENT: no such level.
absl::Status SetUpLog(const std::string& level, LogFormat format);

// From now on from another level, which is one of those.
void SetLogLevel(const std::string& level);

// A warning that somebody may cause as often as he likes: it is said every ten seconds at most,
// with how many were not. Thread-safe.
class RareWarning final {
 public:
  void Say(const std::string& what);

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  absl::Time next_ = absl::InfinitePast();
  uint64_t untold_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_LOG_H_
