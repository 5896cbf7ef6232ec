// What the daemon is told: one file in TOML, checked whole before anything is opened. Every key is
// documented in deploy/coppiced.toml, which gives the defaults. Opens no device and no database.
#ifndef COPPICE_DAEMON_CONFIG_CONFIG_H_
#define COPPICE_DAEMON_CONFIG_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/config/config_sections.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/manager/options.h"

namespace coppice {

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
  AccessConfig access;
  std::string log_level = "info";
  int max_request_bytes = 32 << 20;
  AdmissionBounds admission;  // of callers
  ConnectionBounds connections;
  int worker_threads = 4;
  absl::Duration shutdown_grace = absl::Seconds(5);
  std::string metrics_listen;  // ADDRESS:PORT; empty: no metrics
  ManagerOptions manager;      // profile, switches, leases, sweeps, limits
  MappingConfig mapping;

  // "FILE:LINE: KEY: " of values that only their users can judge to the end; empty where the value
  // is not from a file.
  std::string fabric_place, listen_place, metrics_listen_place;
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_CONFIG_CONFIG_H_
