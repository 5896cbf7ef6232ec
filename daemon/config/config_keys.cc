#include "daemon/config/config_keys.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

using Holds = ConfigKey::Holds;

constexpr absl::Duration kLongestGrace = absl::Hours(1);
constexpr int64_t kMinRequestBytes = 4096;
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
constexpr int64_t kMinMappingBytes = 1 << 20;
constexpr int64_t kMaxMappingBytes = int64_t{1} << 40;
constexpr int64_t kMaxAtOnce = 1'000'000;  // calls, streams, connections
constexpr int64_t kMinMemory = 1 << 20;
constexpr int64_t kMaxMemory = int64_t{1} << 40;
constexpr absl::Duration kLongestReading = absl::Hours(1);

template <class T>
bool IsSame(const T& a, const T& b) {
  return a == b;
}
bool IsSame(const CostProfile& a, const CostProfile& b) {
  return ProfileToToml(a) == ProfileToToml(b);
}

// `value`: a function from a configuration, constant or not, to a reference to the key's value.
template <class Value>
ConfigKey KeyOf(std::string name, Holds holds, Value value) {
  return {std::move(name),
          holds,
          [value](const Config& a, const Config& b) { return IsSame(value(a), value(b)); },
          [value](const Config& from, Config& to) { value(to) = value(from); },
          {}};
}

template <class Value, class Bound, class OtherBound>
ConfigKey NumberOf(std::string name, Holds holds, Value value, Bound min, OtherBound max) {
  ConfigKey key = KeyOf(std::move(name), holds, value);
  key.read = [value, min, max](TomlSection& section, absl::string_view in_table, Config& config) {
    section.Read(in_table, min, max, value(config));
  };
  return key;
}

#define COPPICE_VALUE(member) \
  [](auto& config) -> auto& { return config.member; }
#define COPPICE_KEY(name, holds, member) KeyOf(name, Holds::holds, COPPICE_VALUE(member))
#define COPPICE_NUMBER(name, holds, member, min, max) \
  NumberOf(name, Holds::holds, COPPICE_VALUE(member), min, max)

// Where the file lies, who may connect, who is who.
std::vector<ConfigKey> AccessKeys() {
  return {
      COPPICE_KEY("fabric", kFromStart, fabric),
      COPPICE_KEY("database", kFromStart, database),
      COPPICE_KEY("listen", kFromStart, listen),
      COPPICE_KEY("socket_mode", kFromStart, access.socket_mode),
      COPPICE_KEY("socket_group", kFromStart, access.socket_group),
      COPPICE_KEY("admin_group", kAtOnce, access.admin_group),
      COPPICE_KEY("insecure_tcp", kFromStart, access.insecure_tcp),
      COPPICE_KEY("log_level", kAtOnce, log_level),
      COPPICE_KEY("profile", kAtOnce, manager.profile),
      COPPICE_KEY("tls.certificate", kFromStart, access.tls_certificate),
      COPPICE_KEY("tls.key", kFromStart, access.tls_key),
      COPPICE_KEY("tls.client_ca", kFromStart, access.tls_client_ca),
      COPPICE_KEY("tls.administrators", kAtOnce, access.tls_administrators),
      COPPICE_KEY("tls.open_reading", kFromStart, access.tls_open_reading),
      COPPICE_KEY("agents.certificates", kFromStart, access.agent_certificates),
      COPPICE_KEY("agents.users", kFromStart, access.agent_users),
      COPPICE_KEY("agents.trust_root", kFromStart, access.trust_root),
  };
}

std::vector<ConfigKey> PlanningKeys() {
  return {
      COPPICE_NUMBER("lease.default", kAtOnce, manager.default_lease, kShortestLease,
                     kLongestLease),
      COPPICE_NUMBER("lease.min", kAtOnce, manager.min_lease, kShortestLease, kLongestLease),
      COPPICE_NUMBER("lease.max", kAtOnce, manager.max_lease, kShortestLease, kLongestLease),
      COPPICE_KEY("sweep.period", kAtOnce, manager.sweep_periods.full),
      COPPICE_KEY("sweep.light_period", kAtOnce, manager.sweep_periods.light),
      COPPICE_KEY("sweep.counter_period", kAtOnce, manager.sweep_periods.counters),
      COPPICE_NUMBER("load.average_over", kAtOnce, manager.load.time_constant, kShortestAverage,
                     kLongestAverage),
      COPPICE_NUMBER("load.error_threshold", kAtOnce, manager.load.error_threshold, 0.0,
                     kMaxErrors),
      COPPICE_NUMBER("planning.promised_duty", kAtOnce, manager.promised_duty, 0.0, 1.0),
      COPPICE_NUMBER("mapping.budget", kFromStart, mapping.mapper.default_budget, kShortestSearch,
                     kLongestSearch),
      COPPICE_NUMBER("mapping.max_budget", kFromStart, mapping.mapper.max_budget, kShortestSearch,
                     kLongestSearch),
      COPPICE_NUMBER("mapping.searches", kFromStart, mapping.searches, 1, kMaxWorkers),
      COPPICE_NUMBER("mapping.threads", kFromStart, mapping.mapper.threads, 1, kMaxWorkers),
      COPPICE_NUMBER("mapping.memory_bytes", kFromStart, mapping.mapper.memory_bytes,
                     kMinMappingBytes, kMaxMappingBytes),
      COPPICE_NUMBER("mapping.stored_pattern_bytes", kFromStart, mapping.stored_pattern_bytes,
                     kMinMappingBytes, kMaxMappingBytes),
      COPPICE_NUMBER("placement.term", kAtOnce, manager.placement.default_term, kShortestTerm,
                     kLongestTerm),
      COPPICE_NUMBER("placement.held", kAtOnce, manager.placement.most_held, 1, kMaxPlacements),
      COPPICE_NUMBER("placement.held_per_owner", kAtOnce, manager.placement.most_held_per_owner, 1,
                     kMaxPlacements),
      COPPICE_KEY("placement.weights", kAtOnce, manager.placement.weights),
  };
}

std::vector<ConfigKey> LimitKeys() {
  return {
      COPPICE_NUMBER("limits.request_bytes", kFromStart, max_request_bytes, kMinRequestBytes,
                     std::numeric_limits<int>::max()),
      COPPICE_NUMBER("limits.job_ranks", kFromStart, manager.max_job_ranks, 1, kMaxJobRanks),
      COPPICE_NUMBER("limits.trees_per_job", kAtOnce, manager.max_trees_per_job, 1,
                     kMaxTreesPerJob),
      COPPICE_NUMBER("limits.tree_changes", kFromStart, manager.kept_tree_changes, 1,
                     kMaxTreesPerJob),
      COPPICE_NUMBER("limits.events", kAtOnce, manager.kept_events, 1, kMaxEvents),
      COPPICE_NUMBER("limits.events_per_user", kAtOnce, manager.events_per_user, 1, kMaxEvents),
      COPPICE_NUMBER("limits.event_age", kAtOnce, manager.kept_event_age, kShortestEventAge,
                     kLongestEventAge),
      COPPICE_NUMBER("limits.ended_jobs", kAtOnce, manager.kept_ended_jobs, 0, kMaxEndedJobs),
      COPPICE_NUMBER("limits.ended_job_age", kAtOnce, manager.kept_ended_job_age, kShortestJobAge,
                     kLongestJobAge),
      COPPICE_NUMBER("limits.worker_threads", kFromStart, worker_threads, 1, kMaxWorkers),
      COPPICE_NUMBER("limits.shutdown_grace", kAtOnce, shutdown_grace, absl::ZeroDuration(),
                     kLongestGrace),
      COPPICE_NUMBER("limits.calls", kAtOnce, admission.calls, 1, kMaxAtOnce),
      COPPICE_NUMBER("limits.waiting", kAtOnce, admission.waiting, 1, kMaxAtOnce),
      COPPICE_NUMBER("limits.streams", kAtOnce, admission.streams, 1, kMaxAtOnce),
      COPPICE_NUMBER("limits.request_memory", kFromStart, admission.request_memory, kMinMemory,
                     kMaxMemory),
      COPPICE_NUMBER("limits.answer_memory", kAtOnce, admission.answer_memory, kMinMemory,
                     kMaxMemory),
      COPPICE_NUMBER("limits.longest_reading", kAtOnce, admission.longest_reading, absl::Seconds(1),
                     kLongestReading),
      COPPICE_NUMBER("limits.connections", kAtOnce, connections.of_all, 1, kMaxAtOnce),
      COPPICE_NUMBER("limits.connections_per_user", kAtOnce, connections.of_user, 1, kMaxAtOnce),
      COPPICE_NUMBER("limits.tcp_connections", kAtOnce, connections.tcp_of_all, 1, kMaxAtOnce),
      COPPICE_NUMBER("limits.tcp_connections_per_address", kAtOnce, connections.tcp_of_address, 1,
                     kMaxAtOnce),
      COPPICE_NUMBER("limits.longest_silence", kAtOnce, connections.longest_silence,
                     absl::Seconds(1), kLongestReading),
  };
}

// `table`: "limits.caller.".
std::vector<ConfigKey> CallerKeys(absl::string_view table, CallerBounds AdmissionBounds::*whose) {
  const auto of = [whose](auto bound) {
    return [ whose, bound ](auto& config) -> auto& { return config.admission.*whose.*bound; };
  };
  return {
      NumberOf(absl::StrCat(table, "calls"), Holds::kAtOnce, of(&CallerBounds::calls), 1,
               kMaxAtOnce),
      NumberOf(absl::StrCat(table, "waiting"), Holds::kAtOnce, of(&CallerBounds::waiting), 1,
               kMaxAtOnce),
      NumberOf(absl::StrCat(table, "streams"), Holds::kAtOnce, of(&CallerBounds::streams), 1,
               kMaxAtOnce),
      NumberOf(absl::StrCat(table, "calls_per_second"), Holds::kAtOnce,
               of(&CallerBounds::calls_per_second), 1, kMaxAtOnce),
      NumberOf(absl::StrCat(table, "request_memory"), Holds::kAtOnce,
               of(&CallerBounds::request_memory), kMinMemory, kMaxMemory),
      NumberOf(absl::StrCat(table, "answer_memory"), Holds::kAtOnce,
               of(&CallerBounds::answer_memory), kMinMemory, kMaxMemory),
  };
}

std::vector<ConfigKey> QuotaKeys() {
  std::vector<ConfigKey> keys;
  for (const QuotaWords& words : kQuotaWords) {
    const bool is_lease = words.quota == Quota::kLeaseSeconds;
    const auto limit = [quota = words.quota](auto& config) -> auto& {
      return config.manager.quotas[quota];
    };
    keys.push_back(
        KeyOf(absl::StrCat("quotas.", is_lease ? "lease" : words.name), Holds::kAtOnce, limit));
  }
  for (ConfigKey& key : std::vector<ConfigKey>{
           COPPICE_NUMBER("quotas.left_to_administrators", kAtOnce,
                          manager.quotas.left_to_administrators, 0, 100),
           COPPICE_NUMBER("quotas.all_tree_ranks", kAtOnce, manager.quotas.all_tree_ranks, 0,
                          kMaxQuota),
           COPPICE_NUMBER("quotas.all_jobs", kAtOnce, manager.quotas.all_jobs, 0, kMaxQuota),
           COPPICE_NUMBER("quotas.all_kept_bytes", kAtOnce, manager.quotas.all_kept_bytes, 0,
                          kMaxQuota),
       }) {
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<ConfigKey> AllKeys() {
  std::vector<ConfigKey> all;
  for (const std::vector<ConfigKey>& keys :
       {AccessKeys(), PlanningKeys(), LimitKeys(),
        CallerKeys("limits.caller.", &AdmissionBounds::caller),
        CallerKeys("limits.administrator.", &AdmissionBounds::administrator), QuotaKeys(),
        std::vector<ConfigKey>{
            COPPICE_KEY("metrics.listen", kFromStart, metrics_listen),
            COPPICE_KEY("switches", kAtOnce, manager.capability_rules),
        }}) {
    all.insert(all.end(), keys.begin(), keys.end());
  }
  return all;
}

#undef COPPICE_NUMBER
#undef COPPICE_KEY
#undef COPPICE_VALUE

}  // namespace

const std::vector<ConfigKey>& ConfigKeys() {
  static const auto* const keys = new std::vector<ConfigKey>(AllKeys());
  return *keys;
}

void ReadNumbers(absl::string_view path, TomlSection& section, Config& config) {
  for (const ConfigKey& key : ConfigKeys()) {
    absl::string_view in_table = key.name;
    if (key.read == nullptr || !absl::ConsumePrefix(&in_table, path)) continue;
    if (in_table.find('.') == absl::string_view::npos) key.read(section, in_table, config);
  }
}

ConfigChange Compare(const Config& running, const Config& read) {
  ConfigChange change{{}, {}, running};
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.is_same(running, read)) continue;
    const bool at_once = key.holds == ConfigKey::Holds::kAtOnce;
    (at_once ? change.changed : change.needs_restart).emplace_back(key.name);
    if (at_once) key.take(read, change.next);
  }
  return change;
}

}  // namespace coppice
