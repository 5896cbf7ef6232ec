// Every key of the configuration, and what differs between two of them.
#include <limits>
#include <utility>

#include "absl/strings/strip.h"
#include "daemon/config/config.h"
#include "daemon/config/config_sections.h"

namespace coppice {
namespace {

using Holds = ConfigKey::Holds;

// The bounds of numbers and times.
template <class T>
struct Range {
  T min, max;
};
constexpr Range<int64_t> kCount = {1, 1'000'000};  // calls, streams, connections, placements
constexpr Range<int64_t> kTrees = {1, 100'000'000};
constexpr Range<int64_t> kEvents = {1, 1'000'000'000};
constexpr Range<int64_t> kEndedJobs = {0, 100'000'000};
constexpr Range<int64_t> kRanks = {1, kMaxJobRanks};
constexpr Range<int64_t> kWorkers = {1, 256};
constexpr Range<int64_t> kRequestBytes = {4096, std::numeric_limits<int>::max()};
constexpr Range<int64_t> kMemory = {1 << 20, int64_t{1} << 40};
constexpr Range<int64_t> kPercent = {0, 100};
constexpr Range<int64_t> kQuota = {0, kMaxQuota};
constexpr Range<double> kErrors = {0, 1e9};
constexpr Range<double> kDuty = {0, 1};
constexpr Range<absl::Duration> kLease = {kMinLease, kMaxLease};
constexpr Range<absl::Duration> kGrace = {absl::ZeroDuration(), absl::Hours(1)};
constexpr Range<absl::Duration> kAge = {absl::Hours(1), absl::Hours(24 * 36'500)};
constexpr Range<absl::Duration> kAverage = {absl::Seconds(1), absl::Hours(24)};
constexpr Range<absl::Duration> kSearch = {absl::Milliseconds(1), absl::Hours(24)};
constexpr Range<absl::Duration> kReading = {absl::Seconds(1), absl::Hours(1)};

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

template <class Value, class T>
ConfigKey NumberOf(std::string name, Holds holds, Value value, Range<T> range) {
  ConfigKey key = KeyOf(std::move(name), holds, value);
  key.read = [value, range](TomlSection& section, absl::string_view in_table, Config& config) {
    section.Read(in_table, range.min, range.max, value(config));
  };
  return key;
}

#define COPPICE_VALUE(member) \
  [](auto& config) -> auto& { return config.member; }
#define COPPICE_KEY(name, holds, member) KeyOf(name, Holds::holds, COPPICE_VALUE(member))
#define COPPICE_NUMBER(name, holds, member, range) \
  NumberOf(name, Holds::holds, COPPICE_VALUE(member), range)

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
      COPPICE_KEY("tls.certificate", kFromStart, access.tls.certificate),
      COPPICE_KEY("tls.key", kFromStart, access.tls.key),
      COPPICE_KEY("tls.client_ca", kFromStart, access.tls.client_ca),
      COPPICE_KEY("tls.client_crl", kFromStart, access.tls.client_crl),
      COPPICE_KEY("tls.administrators", kAtOnce, access.tls_administrators),
      COPPICE_KEY("tls.open_reading", kFromStart, access.tls.open_reading),
      COPPICE_KEY("munge.socket", kFromStart, access.munge.socket),
      COPPICE_KEY("munge.realm", kFromStart, access.munge.realm),
      COPPICE_KEY("munge.trust_root", kFromStart, access.munge.trust_root),
      COPPICE_KEY("agents.certificates", kFromStart, access.agents.certificates),
      COPPICE_KEY("agents.users", kFromStart, access.agents.users),
      COPPICE_KEY("agents.trust_root", kFromStart, access.agents.trust_root),
  };
}

std::vector<ConfigKey> PlanningKeys() {
  return {
      COPPICE_NUMBER("lease.default", kAtOnce, manager.default_lease, kLease),
      COPPICE_NUMBER("lease.min", kAtOnce, manager.min_lease, kLease),
      COPPICE_NUMBER("lease.max", kAtOnce, manager.max_lease, kLease),
      COPPICE_KEY("sweep.period", kAtOnce, manager.sweep_periods.full),
      COPPICE_KEY("sweep.light_period", kAtOnce, manager.sweep_periods.light),
      COPPICE_KEY("sweep.counter_period", kAtOnce, manager.sweep_periods.counters),
      COPPICE_NUMBER("load.average_over", kAtOnce, manager.load.time_constant, kAverage),
      COPPICE_NUMBER("load.error_threshold", kAtOnce, manager.load.error_threshold, kErrors),
      COPPICE_NUMBER("planning.promised_duty", kAtOnce, manager.promised_duty, kDuty),
      COPPICE_NUMBER("mapping.budget", kFromStart, mapping.mapper.default_budget, kSearch),
      COPPICE_NUMBER("mapping.max_budget", kFromStart, mapping.mapper.max_budget, kSearch),
      COPPICE_NUMBER("mapping.searches", kFromStart, mapping.searches, kWorkers),
      COPPICE_NUMBER("mapping.threads", kFromStart, mapping.mapper.threads, kWorkers),
      COPPICE_NUMBER("mapping.memory_bytes", kFromStart, mapping.mapper.memory_bytes, kMemory),
      COPPICE_NUMBER("mapping.stored_pattern_bytes", kFromStart, mapping.stored_pattern_bytes,
                     kMemory),
      COPPICE_NUMBER("placement.term", kAtOnce, manager.placement.default_term, kLease),
      COPPICE_NUMBER("placement.held", kAtOnce, manager.placement.most_held, kCount),
      COPPICE_NUMBER("placement.held_per_owner", kAtOnce, manager.placement.most_held_per_owner,
                     kCount),
      COPPICE_KEY("placement.weights", kAtOnce, manager.placement.weights),
  };
}

std::vector<ConfigKey> LimitKeys() {
  return {
      COPPICE_NUMBER("limits.request_bytes", kFromStart, max_request_bytes, kRequestBytes),
      COPPICE_NUMBER("limits.job_ranks", kFromStart, manager.max_job_ranks, kRanks),
      COPPICE_NUMBER("limits.trees_per_job", kAtOnce, manager.max_trees_per_job, kTrees),
      COPPICE_NUMBER("limits.tree_changes", kFromStart, manager.kept_tree_changes, kTrees),
      COPPICE_NUMBER("limits.events", kAtOnce, manager.kept_events, kEvents),
      COPPICE_NUMBER("limits.events_per_user", kAtOnce, manager.events_per_user, kEvents),
      COPPICE_NUMBER("limits.event_age", kAtOnce, manager.kept_event_age, kAge),
      COPPICE_NUMBER("limits.ended_jobs", kAtOnce, manager.kept_ended_jobs, kEndedJobs),
      COPPICE_NUMBER("limits.ended_job_age", kAtOnce, manager.kept_ended_job_age, kAge),
      COPPICE_NUMBER("limits.worker_threads", kFromStart, worker_threads, kWorkers),
      COPPICE_NUMBER("limits.shutdown_grace", kAtOnce, shutdown_grace, kGrace),
      COPPICE_NUMBER("limits.calls", kAtOnce, admission.calls, kCount),
      COPPICE_NUMBER("limits.waiting", kAtOnce, admission.waiting, kCount),
      COPPICE_NUMBER("limits.streams", kAtOnce, admission.streams, kCount),
      COPPICE_NUMBER("limits.request_memory", kFromStart, admission.request_memory, kMemory),
      COPPICE_NUMBER("limits.answer_memory", kAtOnce, admission.answer_memory, kMemory),
      COPPICE_NUMBER("limits.longest_reading", kAtOnce, admission.longest_reading, kReading),
      COPPICE_NUMBER("limits.connections", kAtOnce, connections.of_all, kCount),
      COPPICE_NUMBER("limits.connections_per_user", kAtOnce, connections.of_user, kCount),
      COPPICE_NUMBER("limits.tcp_connections", kAtOnce, connections.tcp_of_all, kCount),
      COPPICE_NUMBER("limits.tcp_connections_per_address", kAtOnce, connections.tcp_of_address,
                     kCount),
      COPPICE_NUMBER("limits.longest_silence", kAtOnce, connections.longest_silence, kReading),
  };
}

// `table`: "limits.caller.".
std::vector<ConfigKey> CallerKeys(absl::string_view table, CallerBounds AdmissionBounds::*whose) {
  const auto key = [&](absl::string_view name, auto bound, Range<int64_t> range) {
    return NumberOf(
        absl::StrCat(table, name), Holds::kAtOnce,
        [ whose, bound ](auto& config) -> auto& { return config.admission.*whose.*bound; }, range);
  };
  return {key("calls", &CallerBounds::calls, kCount),
          key("waiting", &CallerBounds::waiting, kCount),
          key("streams", &CallerBounds::streams, kCount),
          key("calls_per_second", &CallerBounds::calls_per_second, kCount),
          key("request_memory", &CallerBounds::request_memory, kMemory),
          key("answer_memory", &CallerBounds::answer_memory, kMemory)};
}

std::vector<ConfigKey> QuotaKeys() {
  std::vector<ConfigKey> keys;
  for (const QuotaWords& words : kQuotaWords) {
    if (words.quota == Quota::kWeight) continue;
    const bool is_lease = words.quota == Quota::kLeaseSeconds;
    const auto limit = [quota = words.quota](auto& config) -> auto& {
      return config.manager.quotas[quota];
    };
    keys.push_back(
        KeyOf(absl::StrCat("quotas.", is_lease ? "lease" : words.name), Holds::kAtOnce, limit));
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
            COPPICE_NUMBER("quotas.left_to_administrators", kAtOnce,
                           manager.quotas.left_to_administrators, kPercent),
            COPPICE_NUMBER("quotas.all_tree_ranks", kAtOnce, manager.quotas.all_tree_ranks, kQuota),
            COPPICE_NUMBER("quotas.all_jobs", kAtOnce, manager.quotas.all_jobs, kQuota),
            COPPICE_NUMBER("quotas.all_kept_bytes", kAtOnce, manager.quotas.all_kept_bytes, kQuota),
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

void ReadNumbers(TomlSection& section, Config& config) {
  for (const ConfigKey& key : ConfigKeys()) {
    absl::string_view in_table = key.name;
    if (key.read == nullptr || !absl::ConsumePrefix(&in_table, section.path())) continue;
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
