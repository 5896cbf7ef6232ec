#include "daemon/config/config.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/toml_text.h"
#include "daemon/config/config_sections.h"
#include "daemon/config/toml_section.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

constexpr absl::Duration kShortestLease = absl::Seconds(1);  // proto/coppice/v1/jobs.proto
constexpr absl::Duration kLongestLease = absl::Hours(24);
constexpr absl::Duration kLongestGrace = absl::Hours(1);
constexpr int64_t kMinRequestBytes = 4096;
constexpr int64_t kMaxJobRanks = 1 << 24;
constexpr int64_t kMaxTreesPerJob = 100'000'000;
constexpr int64_t kMaxWorkers = 256;
constexpr int64_t kMaxEvents = 1'000'000'000;
constexpr absl::Duration kShortestEventAge = absl::Hours(1);
constexpr absl::Duration kLongestEventAge = absl::Hours(24 * 36'500);
constexpr int64_t kMaxEndedJobs = 100'000'000;
constexpr absl::Duration kShortestJobAge = absl::Hours(1);
constexpr absl::Duration kLongestJobAge = absl::Hours(24 * 36'500);
constexpr absl::Duration kShortestAverage = absl::Seconds(1);
constexpr absl::Duration kLongestAverage = absl::Hours(24);
constexpr double kMaxErrors = 1e9;
constexpr absl::Duration kShortestSearch = absl::Milliseconds(1);
constexpr absl::Duration kLongestSearch = absl::Hours(24);
constexpr int64_t kMaxPlacements = 1'000'000;
constexpr double kMaxWeight = 1e9;
constexpr int64_t kMinMappingBytes = 1 << 20;
constexpr int64_t kMaxMappingBytes = int64_t{1} << 40;
constexpr auto kMaxQuota = static_cast<int64_t>(kMaxByteSize);
constexpr int64_t kMaxAtOnce = 1'000'000;  // calls, streams, connections
constexpr int64_t kMinMemory = 1 << 20;
constexpr int64_t kMaxMemory = int64_t{1} << 40;
constexpr absl::Duration kLongestReading = absl::Hours(1);

absl::Status ReadLease(const toml::table& table, absl::string_view origin,
                       ManagerOptions& options) {
  TomlSection lease(table, "lease.", origin);
  lease.Read("min", kShortestLease, kLongestLease, options.min_lease);
  lease.Read("max", kShortestLease, kLongestLease, options.max_lease);
  lease.Read("default", kShortestLease, kLongestLease, options.default_lease);
  if (options.min_lease > options.max_lease) lease.Fail("min", "is longer than lease.max");
  if (options.default_lease < options.min_lease || options.default_lease > options.max_lease) {
    lease.Fail("default", "must lie between lease.min and lease.max");
  }
  return lease.Finish();
}

// A period of 0 is "never".
void ReadPeriod(TomlSection& section, absl::string_view key, absl::Duration shortest,
                absl::string_view without, absl::Duration& to) {
  absl::Duration period = to == absl::InfiniteDuration() ? absl::ZeroDuration() : to;
  section.Read(key, absl::ZeroDuration(), kMaxPeriod, period);
  if (period > absl::ZeroDuration() && period < shortest) {
    section.Fail(key, absl::StrCat("must be 0s (", without, ") or at least ",
                                   absl::FormatDuration(shortest)));
  }
  to = period == absl::ZeroDuration() ? absl::InfiniteDuration() : period;
}

absl::Status ReadSweep(const toml::table& table, absl::string_view origin,
                       ManagerOptions& options) {
  TomlSection sweep(table, "sweep.", origin);
  SweepPeriods& periods = options.sweep_periods;
  ReadPeriod(sweep, "period", absl::Seconds(1), "at start and on request only", periods.full);
  ReadPeriod(sweep, "light_period", absl::Milliseconds(100), "none", periods.light);
  ReadPeriod(sweep, "counter_period", absl::Seconds(1), "none", periods.counters);
  return sweep.Finish();
}

absl::Status ReadLoad(const toml::table& table, absl::string_view origin, LoadOptions& options) {
  TomlSection load(table, "load.", origin);
  load.Read("average_over", kShortestAverage, kLongestAverage, options.time_constant);
  load.Read("error_threshold", 0.0, kMaxErrors, options.error_threshold);
  return load.Finish();
}

void ReadCallerBounds(TomlSection& limits, absl::string_view name, absl::string_view path,
                      absl::string_view origin, CallerBounds& bounds) {
  const toml::table* const table = limits.Table(name);
  if (table == nullptr) return;
  TomlSection section(*table, path, origin);
  section.Read("calls", 1, kMaxAtOnce, bounds.calls);
  section.Read("waiting", 1, kMaxAtOnce, bounds.waiting);
  section.Read("streams", 1, kMaxAtOnce, bounds.streams);
  section.Read("calls_per_second", 1, kMaxAtOnce, bounds.calls_per_second);
  section.Read("request_memory", kMinMemory, kMaxMemory, bounds.request_memory);
  section.Read("answer_memory", kMinMemory, kMaxMemory, bounds.answer_memory);
  limits.Absorb(section.Finish());
}

absl::Status ReadLimits(const toml::table& table, absl::string_view origin, Config& config) {
  TomlSection limits(table, "limits.", origin);
  limits.Read("request_bytes", kMinRequestBytes, std::numeric_limits<int>::max(),
              config.max_request_bytes);
  limits.Read("job_ranks", 1, kMaxJobRanks, config.manager.max_job_ranks);
  limits.Read("trees_per_job", 1, kMaxTreesPerJob, config.manager.max_trees_per_job);
  limits.Read("tree_changes", 1, kMaxTreesPerJob, config.manager.kept_tree_changes);
  limits.Read("events", 1, kMaxEvents, config.manager.kept_events);
  limits.Read("events_per_user", 1, kMaxEvents, config.manager.events_per_user);
  limits.Read("event_age", kShortestEventAge, kLongestEventAge, config.manager.kept_event_age);
  limits.Read("ended_jobs", 0, kMaxEndedJobs, config.manager.kept_ended_jobs);
  limits.Read("ended_job_age", kShortestJobAge, kLongestJobAge, config.manager.kept_ended_job_age);
  limits.Read("worker_threads", 1, kMaxWorkers, config.worker_threads);
  limits.Read("shutdown_grace", absl::ZeroDuration(), kLongestGrace, config.shutdown_grace);
  AdmissionBounds& admission = config.admission;
  limits.Read("calls", 1, kMaxAtOnce, admission.calls);
  limits.Read("waiting", 1, kMaxAtOnce, admission.waiting);
  limits.Read("streams", 1, kMaxAtOnce, admission.streams);
  limits.Read("request_memory", kMinMemory, kMaxMemory, admission.request_memory);
  limits.Read("answer_memory", kMinMemory, kMaxMemory, admission.answer_memory);
  limits.Read("longest_reading", absl::Seconds(1), kLongestReading, admission.longest_reading);
  limits.Read("connections", 1, kMaxAtOnce, config.connections.of_all);
  limits.Read("connections_per_user", 1, kMaxAtOnce, config.connections.of_user);
  limits.Read("tcp_connections", 1, kMaxAtOnce, config.connections.tcp_of_all);
  limits.Read("tcp_connections_per_address", 1, kMaxAtOnce, config.connections.tcp_of_address);
  limits.Read("longest_silence", absl::Seconds(1), kLongestReading,
              config.connections.longest_silence);
  ReadCallerBounds(limits, "caller", "limits.caller.", origin, admission.caller);
  ReadCallerBounds(limits, "administrator", "limits.administrator.", origin,
                   admission.administrator);
  return limits.Finish();
}

// 0 is "no limit". Shares are of what there is a whole of.
absl::Status ReadQuotas(const toml::table& table, absl::string_view origin, QuotaOptions& options) {
  TomlSection quotas(table, "quotas.", origin);
  const auto none_of_zero = [](int64_t& value) {
    if (value == 0) value = QuotaLimit::kNone;
  };
  for (const QuotaWords& words : kQuotaWords) {
    QuotaLimit& limit = options[words.quota];
    if (words.quota == Quota::kLeaseSeconds) {
      absl::Duration longest = absl::Seconds(limit.value);
      quotas.Read("lease", kShortestLease, kLongestLease, longest);
      limit.value = absl::ToInt64Seconds(longest);
      continue;
    }
    quotas.ReadShare(words.name, kMaxQuota, limit.value, limit.is_percent);
    const bool has_whole = words.quota == Quota::kEntries || words.quota == Quota::kNodes ||
                           words.quota == Quota::kPatternBytes || words.quota == Quota::kJobs ||
                           words.quota == Quota::kTreeRanks;
    if (limit.is_percent && !has_whole) quotas.Fail(words.name, "must be a whole number");
    none_of_zero(limit.value);
  }
  quotas.Read("left_to_administrators", 0, 100, options.left_to_administrators);
  quotas.Read("all_tree_ranks", 0, kMaxQuota, options.all_tree_ranks);
  quotas.Read("all_jobs", 0, kMaxQuota, options.all_jobs);
  quotas.Read("all_kept_bytes", 0, kMaxQuota, options.all_kept_bytes);
  none_of_zero(options.all_tree_ranks);
  none_of_zero(options.all_jobs);
  none_of_zero(options.all_kept_bytes);
  return quotas.Finish();
}

absl::Status ReadPlanning(const toml::table& table, absl::string_view origin,
                          ManagerOptions& options) {
  TomlSection planning(table, "planning.", origin);
  planning.Read("promised_duty", 0.0, 1.0, options.promised_duty);
  return planning.Finish();
}

absl::Status ReadMapping(const toml::table& table, absl::string_view origin,
                         MappingConfig& mapping) {
  TomlSection section(table, "mapping.", origin);
  section.Read("budget", kShortestSearch, kLongestSearch, mapping.mapper.default_budget);
  section.Read("max_budget", kShortestSearch, kLongestSearch, mapping.mapper.max_budget);
  section.Read("searches", 1, kMaxWorkers, mapping.searches);
  section.Read("threads", 1, kMaxWorkers, mapping.mapper.threads);
  section.Read("memory_bytes", kMinMappingBytes, kMaxMappingBytes, mapping.mapper.memory_bytes);
  section.Read("stored_pattern_bytes", kMinMappingBytes, kMaxMappingBytes,
               mapping.stored_pattern_bytes);
  if (mapping.mapper.default_budget > mapping.mapper.max_budget) {
    section.Fail("budget", "is longer than mapping.max_budget");
  }
  return section.Finish();
}

absl::Status ReadPlacement(const toml::table& table, absl::string_view origin,
                           PlacementOptions& options) {
  TomlSection placement(table, "placement.", origin);
  placement.Read("term", kShortestTerm, kLongestTerm, options.default_term);
  placement.Read("held", 1, kMaxPlacements, options.most_held);
  placement.Read("held_per_owner", 1, kMaxPlacements, options.most_held_per_owner);
  if (const toml::table* const table_of_weights = placement.Table("weights")) {
    TomlSection weights(*table_of_weights, "placement.weights.", origin);
    PlacementObjective& o = options.weights;
    weights.Read("leaf_switches", 0.0, kMaxWeight, o.leaf_switches);
    weights.Read("pods", 0.0, kMaxWeight, o.pods);
    weights.Read("distance", 0.0, kMaxWeight, o.distance);
    weights.Read("shared_links", 0.0, kMaxWeight, o.shared_links);
    weights.Read("load", 0.0, kMaxWeight, o.load);
    weights.Read("entries", 0.0, kMaxWeight, o.entries);
    weights.Read("fragmentation", 0.0, kMaxWeight, o.fragmentation);
    weights.Read("traffic", 0.0, kMaxWeight, o.traffic);
    placement.Absorb(weights.Finish());
  }
  return placement.Finish();
}

// An empty address is "none".
absl::Status ReadMetrics(const toml::table& table, absl::string_view origin, Config& config) {
  TomlSection metrics(table, "metrics.", origin);
  if (const toml::node* const listen = metrics.Take("listen"); listen != nullptr) {
    if (!listen->is_string()) metrics.Fail("listen", "must be a text in quotes");
    config.metrics_listen = listen->value_or(std::string());
    config.metrics_listen_place = metrics.PlaceOf("listen");
  }
  return metrics.Finish();
}

absl::Status ReadAll(const toml::table& table, absl::string_view origin,
                     absl::string_view directory, Config& config) {
  TomlSection file(table, "", origin);
  file.Read("fabric", config.fabric);
  if (const absl::Status bad = CheckFabricSource(config.fabric); !bad.ok()) {
    file.Fail("fabric", bad.message());
  }
  if (file.Has("fabric")) config.fabric_place = file.PlaceOf("fabric");
  file.Read("database", config.database);
  file.Read("listen", config.listen);
  if (file.Has("listen")) config.listen_place = file.PlaceOf("listen");
  ReadAccessKeys(file, origin, directory, config.access);
  file.Read("log_level", config.log_level);
  if (const absl::Status bad = CheckLogLevel(config.log_level); !bad.ok()) {
    file.Fail("log_level", bad.message());
  }
  ReadProfileKey(file, origin, directory, config.manager.profile);
  if (const toml::table* lease = file.Table("lease")) {
    file.Absorb(ReadLease(*lease, origin, config.manager));
  }
  if (const toml::table* sweep = file.Table("sweep")) {
    file.Absorb(ReadSweep(*sweep, origin, config.manager));
  }
  if (const toml::table* load = file.Table("load")) {
    file.Absorb(ReadLoad(*load, origin, config.manager.load));
  }
  if (const toml::table* planning = file.Table("planning")) {
    file.Absorb(ReadPlanning(*planning, origin, config.manager));
  }
  if (const toml::table* mapping = file.Table("mapping")) {
    file.Absorb(ReadMapping(*mapping, origin, config.mapping));
  }
  if (const toml::table* placement = file.Table("placement")) {
    file.Absorb(ReadPlacement(*placement, origin, config.manager.placement));
  }
  if (const toml::table* limits = file.Table("limits")) {
    file.Absorb(ReadLimits(*limits, origin, config));
  }
  if (const toml::table* quotas = file.Table("quotas")) {
    file.Absorb(ReadQuotas(*quotas, origin, config.manager.quotas));
  }
  if (const toml::table* metrics = file.Table("metrics")) {
    file.Absorb(ReadMetrics(*metrics, origin, config));
  }
  ReadSwitchRules(file, origin, config.manager.capability_rules);
  return file.Finish();
}

}  // namespace

Config DefaultConfig() {
  Config config;
  config.manager.profile = *BuiltInProfile("hdr");
  config.manager.sweep_periods = {absl::Minutes(5), absl::Seconds(5), absl::Seconds(10)};
  QuotaOptions& quotas = config.manager.quotas;
  quotas[Quota::kEntries] = {50, true};
  quotas[Quota::kTrees] = {20'000};
  quotas[Quota::kTreeRanks] = {4'194'304};
  quotas[Quota::kJobs] = {1'000};
  quotas[Quota::kRanks] = {4'194'304};
  quotas[Quota::kNodes] = {75, true};
  quotas[Quota::kPatternBytes] = {25, true};
  quotas[Quota::kKeptBytes] = {64 << 20};
  quotas[Quota::kLeaseSeconds] = {24 * 3600};
  quotas.left_to_administrators = 5;
  quotas.all_tree_ranks = 16'777'216;
  quotas.all_jobs = 20'000;
  quotas.all_kept_bytes = 512 << 20;
  return config;
}

absl::StatusOr<Config> ParseConfig(absl::string_view text, absl::string_view origin,
                                   absl::string_view directory) {
  RETURN_IF_ERROR(CheckAsciiInToml(text, origin));
  Config config = DefaultConfig();
  // The library reports by exception; it must not leave this function.
  try {
    const toml::table document = toml::parse(std::string_view(text.data(), text.size()));
    RETURN_IF_ERROR(ReadAll(document, origin, directory, config));
  } catch (const toml::parse_error& error) {
    const std::string_view what = error.description();
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ":", error.source().begin.line,
                     ": not TOML: ", absl::string_view(what.data(), what.size())));
  }
  return config;
}

absl::StatusOr<Config> LoadConfig(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(
        absl::StrCat("configuration file ", path, ": ", std::strerror(errno)));
  }
  std::ifstream file(path);
  std::ostringstream text;
  if (!S_ISREG(info.st_mode) || !file || !(text << file.rdbuf())) {
    // An empty file sets the failbit of `text` too, and is a fine configuration.
    if (!S_ISREG(info.st_mode) || info.st_size != 0 || !file) {
      return absl::FailedPreconditionError(
          absl::StrCat("configuration file ", path, ": cannot be read; check its permissions"));
    }
  }
  const size_t slash = path.rfind('/');
  return ParseConfig(text.str(), path,
                     slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

absl::Status CheckFabricSource(absl::string_view source) {
  if (source == "umad" || absl::StartsWith(source, "umad:") || absl::StartsWith(source, "file:") ||
      absl::StartsWith(source, "model:")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", source,
                   "\" is no source of a fabric: give umad, umad:ADAPTER:PORT, file:PATH or "
                   "model:NAME(ARGS)"));
}

absl::Status CheckLogLevel(absl::string_view level) {
  for (const absl::string_view known :
       {"trace", "debug", "info", "warning", "error", "critical", "off"}) {
    if (level == known) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", level, "\" is no log level: give trace, debug, info, warning, error, critical or off"));
}

}  // namespace coppice
