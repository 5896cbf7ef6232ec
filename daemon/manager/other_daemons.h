// Signs that another daemon, with another database, grants trees on this subnet. Each counts only
// its own grants, so the same entries are given away twice and nobody notices. Daemons only read
// the subnet and leave nothing there that another could find; but agents serve one after the other,
// and say whose they were.
#ifndef COPPICE_DAEMON_MANAGER_OTHER_DAEMONS_H_
#define COPPICE_DAEMON_MANAGER_OTHER_DAEMONS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/manager/event_log.h"

namespace coppice {

// Thread-safe.
class OtherDaemons {
 public:
  // How long a sign is one: a database that was replaced is heard of until every agent has come
  // over.
  static constexpr absl::Duration kKept = absl::Hours(1);

  // `own`: Store::DatabaseId.
  OtherDaemons(uint64_t own, EventLog* events, const Clock* clock)
      : own_(own), events_(events), clock_(clock) {}

  // `from`, "the agent of host n7", was served by the daemon with that database last; 0: by none,
  // or it does not know. The first sign of each is an event.
  void Hear(uint64_t database, absl::string_view from);
  // In words, one for each database; empty: none is known.
  std::vector<std::string> Signs() const;

 private:
  struct Sign {
    std::string words;
    absl::Duration heard;
  };
  const uint64_t own_;
  EventLog* const events_;
  const Clock* const clock_;
  mutable std::mutex mu_;
  std::map<uint64_t, Sign> signs_;  // guarded by mu_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_OTHER_DAEMONS_H_
