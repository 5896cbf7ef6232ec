// What the daemon is told: one file in TOML, checked whole before anything is opened. Every key is
// documented in deploy/coppiced.toml, which gives the defaults. Opens no device and no database.
#ifndef COPPICE_DAEMON_CONFIG_CONFIG_H_
#define COPPICE_DAEMON_CONFIG_CONFIG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/manager/options.h"
#include "proto/text/limits.h"

namespace coppice {

class TomlSection;

// Searches for orders of ranks.
struct MappingConfig {
  MapperOptions mapper;
  int searches = 1;  // at once
  int64_t stored_pattern_bytes = int64_t{256} << 20;
};

struct Config {
  std::string fabric = "umad";  // "umad", "umad:ADAPTER:PORT", "file:PATH", "model:NAME(ARGS)"
  std::string database = "/var/lib/coppice/coppice.db";
  std::vector<std::string> listen = {"unix:/run/coppice/coppiced.sock"};
  AccessOptions access;
  std::string log_level = "info";
  int max_request_bytes = 32 << 20;
  AdmissionBounds admission;  // of callers
  ConnectionBounds connections;
  int worker_threads = 4;
  absl::Duration shutdown_grace = absl::Seconds(5);
  std::string metrics_listen;  // ADDRESS:PORT; empty: no metrics
  ManagerOptions manager;      // profile, switches, leases, sweeps, limits
  MappingConfig mapping;

  // "FILE:LINE: KEY: " of keys whose values only their users can judge to the end. Empty: the value
  // is not from a file.
  std::string PlaceOf(const std::string& key) const {
    const auto found = places.find(key);
    return found == places.end() ? "" : found->second;
  }
  std::map<std::string, std::string> places;
};

// The configuration of a daemon that is given no file. The profile is "hdr"; full sweeps come every
// five minutes, light ones every five seconds, counters every ten.
Config DefaultConfig();

// From TOML text. Profile files are found relative to `directory`. INVALID_ARGUMENT: not TOML, a
// character beyond ASCII outside comments, an unknown key, a wrong type or a value out of range;
// the message is "ORIGIN:LINE: KEY: what is wrong". NOT_FOUND: a profile that does not exist.
absl::StatusOr<Config> ParseConfig(absl::string_view text, absl::string_view origin,
                                   absl::string_view directory);

// ParseConfig of a file. NOT_FOUND: no such file; FAILED_PRECONDITION: it cannot be read.
absl::StatusOr<Config> LoadConfig(const std::string& path);

// INVALID_ARGUMENT, without a place, unless `source` begins as a fabric's source does; the same for
// a level of the log. For values from the command line.
absl::Status CheckFabricSource(absl::string_view source);
absl::Status CheckLogLevel(absl::string_view level);

// The keys of the configuration: where each one's value is, from when a new one holds, and the
// bounds of numbers and times. A new key needs a member of Config, a line in config_keys.cc, and
// its words in deploy/coppiced.toml, which coppiced.toml(5) is made from: nowhere else, because one
// comment there is about several keys. One of another kind also needs a reader in config.cc.

// Of quotas, which have a reader of their own.
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

// Reads the numbers and times of that table.
void ReadNumbers(TomlSection& section, Config& config);

// What a configuration that was read anew changes in a daemon that runs.
struct ConfigChange {
  std::vector<std::string> changed;        // keys that may change while the daemon runs
  std::vector<std::string> needs_restart;  // keys that may not
  Config next;  // what is to be in force: `running`, with the new values of `changed`
};

// Keys in the order of the sample configuration.
ConfigChange Compare(const Config& running, const Config& read);

}  // namespace coppice

#endif  // COPPICE_DAEMON_CONFIG_CONFIG_H_
