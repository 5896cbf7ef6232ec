#include "daemon/config/config.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/toml_text.h"
#include "daemon/config/config_sections.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

constexpr double kMaxWeight = 1e9;

void CheckLease(TomlSection& lease, Config& config) {
  const ManagerOptions& options = config.manager;
  if (options.min_lease > options.max_lease) lease.Fail("min", "is longer than lease.max");
  if (options.default_lease < options.min_lease || options.default_lease > options.max_lease) {
    lease.Fail("default", "must lie between lease.min and lease.max");
  }
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

void ReadSweep(TomlSection& sweep, Config& config) {
  SweepPeriods& periods = config.manager.sweep_periods;
  ReadPeriod(sweep, "period", absl::Seconds(1), "at start and on request only", periods.full);
  ReadPeriod(sweep, "light_period", absl::Milliseconds(100), "none", periods.light);
  ReadPeriod(sweep, "counter_period", absl::Seconds(1), "none", periods.counters);
}

void ReadLimitsOf(TomlSection& limits, Config& config) {
  for (const absl::string_view whose : {"caller", "administrator"}) {
    limits.Within(whose, [&](TomlSection& section) { ReadNumbers(section, config); });
  }
}

// 0 is "no limit". Shares are of what there is a whole of.
void ReadQuotas(TomlSection& quotas, Config& config) {
  QuotaOptions& options = config.manager.quotas;
  const auto none_of_zero = [](int64_t& value) {
    if (value == 0) value = QuotaLimit::kNone;
  };
  for (const QuotaWords& words : kQuotaWords) {
    if (words.quota == Quota::kWeight) continue;  // a tenant's alone
    QuotaLimit& limit = options[words.quota];
    if (words.quota == Quota::kLeaseSeconds) {
      absl::Duration longest = absl::Seconds(limit.value);
      quotas.Read("lease", kMinLease, kMaxLease, longest);
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
  none_of_zero(options.all_tree_ranks);
  none_of_zero(options.all_jobs);
  none_of_zero(options.all_kept_bytes);
}

void CheckMapping(TomlSection& section, Config& config) {
  const MapperOptions& mapper = config.mapping.mapper;
  if (mapper.default_budget > mapper.max_budget) {
    section.Fail("budget", "is longer than mapping.max_budget");
  }
}

void ReadPlacementWeights(TomlSection& placement, Config& config) {
  placement.Within("weights", [&](TomlSection& weights) {
    for (const PlacementTerm& term : kPlacementTerms) {
      weights.Read(term.name, 0.0, kMaxWeight, config.manager.placement.weights.*term.weight);
    }
  });
}

// An empty address is "none".
void ReadMetrics(TomlSection& metrics, Config& config) {
  const toml::node* const listen = metrics.Take("listen");
  if (listen == nullptr) return;
  if (!listen->is_string()) metrics.Fail("listen", "must be a text in quotes");
  config.metrics_listen = listen->value_or(std::string());
  config.places["metrics.listen"] = metrics.PlaceOf("listen");
}

// The tables, and what they hold and have to be beside their numbers and times.
struct ConfigTable {
  absl::string_view name;
  void (*read_more)(TomlSection& section, Config& config);  // or null
};
constexpr ConfigTable kTables[] = {
    {"lease", CheckLease},    {"sweep", ReadSweep},      {"load", nullptr},
    {"planning", nullptr},    {"mapping", CheckMapping}, {"placement", ReadPlacementWeights},
    {"limits", ReadLimitsOf}, {"quotas", ReadQuotas},    {"metrics", ReadMetrics},
};

absl::Status ReadAll(const toml::table& table, absl::string_view origin,
                     absl::string_view directory, Config& config) {
  TomlSection file(table, "", origin);
  file.Read("fabric", config.fabric);
  if (const absl::Status bad = CheckFabricSource(config.fabric); !bad.ok()) {
    file.Fail("fabric", bad.message());
  }
  file.Read("database", config.database);
  file.Read("listen", config.listen);
  ReadAccessKeys(file, directory, config);
  file.Read("log_level", config.log_level);
  if (const absl::Status bad = CheckLogLevel(config.log_level); !bad.ok()) {
    file.Fail("log_level", bad.message());
  }
  for (const char* const key : {"fabric", "listen", "socket_group", "admin_group"}) {
    if (file.Has(key)) config.places[key] = file.PlaceOf(key);
  }
  ReadProfileKey(file, directory, config.manager.profile);
  for (const auto& [name, read_more] : kTables) {
    file.Within(name, [&, read_more = read_more](TomlSection& section) {
      ReadNumbers(section, config);
      if (read_more != nullptr) read_more(section, config);
    });
  }
  ReadSwitchRules(file, config.manager.capability_rules);
  return file.Finish();
}

}  // namespace

Config DefaultConfig() {
  Config config;
  config.access.socket_group = "coppice";  // need not exist
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
  quotas[Quota::kLeaseSeconds] = {absl::ToInt64Seconds(kMaxLease)};
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
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        absl::StrCat("configuration file ", path, ": ", std::strerror(ENOENT)));
  }
  if (!text.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("configuration file ", path, ": cannot be read; check its permissions"));
  }
  const size_t slash = path.rfind('/');
  return ParseConfig(*text, path, slash == std::string::npos ? "." : path.substr(0, slash + 1));
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
