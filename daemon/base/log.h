// The log: spdlog on stderr, one line an event whatever it names, errors logged once where they are
// handled.
// A library never calls SetUpLog; only a program's main.cc does.
#ifndef COPPICE_DAEMON_BASE_LOG_H_
#define COPPICE_DAEMON_BASE_LOG_H_

#include <spdlog/spdlog.h>

#include <string>

#include "absl/status/status.h"

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_LOG_H_
