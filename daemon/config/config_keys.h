// Every key of the configuration, and what differs between two of them.
//
// The keys of the configuration: where each one's value is, from when a new one holds, and the
// bounds of numbers and times. A new key needs a member of Config, a line here, and its words in
// deploy/coppiced.toml; one of another kind also a reader in config.cc.
#ifndef COPPICE_DAEMON_CONFIG_CONFIG_KEYS_H_
#define COPPICE_DAEMON_CONFIG_CONFIG_KEYS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/config/config.h"
#include "daemon/config/config_sections.h"
#include "proto/text/limits.h"

namespace coppice {

// Of leases and quotas, some of which have readers of their own.
inline constexpr absl::Duration kShortestLease = absl::Seconds(1);  // proto/coppice/v1/jobs.proto
inline constexpr absl::Duration kLongestLease = absl::Hours(24);
inline constexpr auto kMaxQuota = static_cast<int64_t>(kMaxByteSize);

struct ConfigKey {
  enum class Holds : bool { kFromStart, kAtOnce };

  std::string name;  // with its table, "limits.calls"
  Holds holds;
  std::function<bool(const Config&, const Config&)> is_same;
  std::function<void(const Config& from, Config& to)> take;
  // Reads a number or a time within its bounds, as `key` of `section`. Null: the value is of
  // another kind, and the reader of its table knows how.
  std::function<void(TomlSection& section, absl::string_view key, Config& config)> read;
};

// In the order of the sample configuration.
const std::vector<ConfigKey>& ConfigKeys();

// Reads the numbers and times of the table that `path` names, "limits.".
void ReadNumbers(absl::string_view path, TomlSection& section, Config& config);

// What a configuration that was read anew changes in a daemon that runs: which keys differ, and
// which of them hold at once and which from the next start only.

struct ConfigChange {
  std::vector<std::string> changed;        // keys that may change while the daemon runs
  std::vector<std::string> needs_restart;  // keys that may not
  Config next;  // what is to be in force: `running`, with the new values of `changed`
};

// Keys in the order of the sample configuration.
ConfigChange Compare(const Config& running, const Config& read);

}  // namespace coppice

#endif  // COPPICE_DAEMON_CONFIG_CONFIG_KEYS_H_
