// The log of programs that serve: spdlog on stderr, one line an event whatever it names, errors
// logged once where they are handled.
// A library never calls SetUpLog; only a program's main.cc does.
#ifndef COPPICE_PROTO_TEXT_LOG_H_
#define COPPICE_PROTO_TEXT_LOG_H_

#include <spdlog/spdlog.h>

#include <string>

#include "absl/status/status.h"

namespace coppice {

// Sends the log to stderr from `level` (trace, debug, info, warning, error, critical, off) on: as
// "TIME LEVEL MESSAGE", or, where stderr is the journal (systemd.exec(5), JOURNAL_STREAM), which
// keeps the time itself, as "<PRIORITY>MESSAGE" (sd-daemon(3)).
// INVALID_ARGUMENT: no such level.
absl::Status SetUpLog(const std::string& level);

// From now on from another level, which is one of those.
void SetLogLevel(const std::string& level);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_LOG_H_
