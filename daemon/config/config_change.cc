#include "daemon/config/config_change.h"

#include <functional>

#include "absl/strings/string_view.h"

namespace coppice {
namespace {

enum class Holds : bool { kFromStart, kAtOnce };

struct Key {
  absl::string_view name;
  Holds holds;
  std::function<bool(const Config&, const Config&)> is_same;
  std::function<void(const Config& from, Config& to)> take;
};

template <class T>
bool IsSame(const T& a, const T& b) {
  return a == b;
}
bool IsSame(const CostProfile& a, const CostProfile& b) {
  return ProfileToToml(a) == ProfileToToml(b);
}

// `value`: a function from a configuration, constant or not, to a reference to the key's value.
template <class Value>
Key KeyOf(absl::string_view name, Holds holds, Value value) {
  return {name, holds,
          [value](const Config& a, const Config& b) { return IsSame(value(a), value(b)); },
          [value](const Config& from, Config& to) { value(to) = value(from); }};
}

#define COPPICE_KEY(name, holds, member) \
  KeyOf(                                 \
      name, Holds::holds, [](auto& config) -> auto& { return config.member; })

const std::vector<Key>& Keys() {
  static const auto* const keys = new std::vector<Key>{
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
      COPPICE_KEY("lease.default", kAtOnce, manager.default_lease),
      COPPICE_KEY("lease.min", kAtOnce, manager.min_lease),
      COPPICE_KEY("lease.max", kAtOnce, manager.max_lease),
      COPPICE_KEY("sweep.period", kAtOnce, manager.sweep_periods.full),
      COPPICE_KEY("sweep.light_period", kAtOnce, manager.sweep_periods.light),
      COPPICE_KEY("sweep.counter_period", kAtOnce, manager.sweep_periods.counters),
      COPPICE_KEY("load.average_over", kAtOnce, manager.load.time_constant),
      COPPICE_KEY("load.error_threshold", kAtOnce, manager.load.error_threshold),
      COPPICE_KEY("planning.promised_duty", kAtOnce, manager.promised_duty),
      COPPICE_KEY("mapping.budget", kFromStart, mapping.mapper.default_budget),
      COPPICE_KEY("mapping.max_budget", kFromStart, mapping.mapper.max_budget),
      COPPICE_KEY("mapping.searches", kFromStart, mapping.searches),
      COPPICE_KEY("mapping.threads", kFromStart, mapping.mapper.threads),
      COPPICE_KEY("mapping.memory_bytes", kFromStart, mapping.mapper.memory_bytes),
      COPPICE_KEY("mapping.stored_pattern_bytes", kFromStart, mapping.stored_pattern_bytes),
      COPPICE_KEY("placement.term", kAtOnce, manager.placement.default_term),
      COPPICE_KEY("placement.held", kAtOnce, manager.placement.most_held),
      COPPICE_KEY("placement.held_per_owner", kAtOnce, manager.placement.most_held_per_owner),
      COPPICE_KEY("placement.weights", kAtOnce, manager.placement.weights),
      COPPICE_KEY("limits.request_bytes", kFromStart, max_request_bytes),
      COPPICE_KEY("limits.job_ranks", kFromStart, manager.max_job_ranks),
      COPPICE_KEY("limits.trees_per_job", kAtOnce, manager.max_trees_per_job),
      COPPICE_KEY("limits.tree_changes", kFromStart, manager.kept_tree_changes),
      COPPICE_KEY("limits.events", kAtOnce, manager.kept_events),
      COPPICE_KEY("limits.events_per_user", kAtOnce, manager.events_per_user),
      COPPICE_KEY("limits.event_age", kAtOnce, manager.kept_event_age),
      COPPICE_KEY("limits.ended_jobs", kAtOnce, manager.kept_ended_jobs),
      COPPICE_KEY("limits.ended_job_age", kAtOnce, manager.kept_ended_job_age),
      COPPICE_KEY("limits.worker_threads", kFromStart, worker_threads),
      COPPICE_KEY("limits.shutdown_grace", kAtOnce, shutdown_grace),
      COPPICE_KEY("limits.calls", kAtOnce, admission.calls),
      COPPICE_KEY("limits.waiting", kAtOnce, admission.waiting),
      COPPICE_KEY("limits.streams", kAtOnce, admission.streams),
      COPPICE_KEY("limits.request_memory", kFromStart, admission.request_memory),
      COPPICE_KEY("limits.answer_memory", kAtOnce, admission.answer_memory),
      COPPICE_KEY("limits.longest_reading", kAtOnce, admission.longest_reading),
      COPPICE_KEY("limits.connections", kAtOnce, connections.of_all),
      COPPICE_KEY("limits.connections_per_user", kAtOnce, connections.of_user),
      COPPICE_KEY("limits.tcp_connections", kAtOnce, connections.tcp_of_all),
      COPPICE_KEY("limits.tcp_connections_per_address", kAtOnce, connections.tcp_of_address),
      COPPICE_KEY("limits.longest_silence", kAtOnce, connections.longest_silence),
      COPPICE_KEY("limits.caller.calls", kAtOnce, admission.caller.calls),
      COPPICE_KEY("limits.caller.waiting", kAtOnce, admission.caller.waiting),
      COPPICE_KEY("limits.caller.streams", kAtOnce, admission.caller.streams),
      COPPICE_KEY("limits.caller.calls_per_second", kAtOnce, admission.caller.calls_per_second),
      COPPICE_KEY("limits.caller.request_memory", kAtOnce, admission.caller.request_memory),
      COPPICE_KEY("limits.caller.answer_memory", kAtOnce, admission.caller.answer_memory),
      COPPICE_KEY("limits.administrator.calls", kAtOnce, admission.administrator.calls),
      COPPICE_KEY("limits.administrator.waiting", kAtOnce, admission.administrator.waiting),
      COPPICE_KEY("limits.administrator.streams", kAtOnce, admission.administrator.streams),
      COPPICE_KEY("limits.administrator.calls_per_second", kAtOnce,
                  admission.administrator.calls_per_second),
      COPPICE_KEY("limits.administrator.request_memory", kAtOnce,
                  admission.administrator.request_memory),
      COPPICE_KEY("limits.administrator.answer_memory", kAtOnce,
                  admission.administrator.answer_memory),
      COPPICE_KEY("quotas.entries", kAtOnce, manager.quotas.of_user[0]),
      COPPICE_KEY("quotas.trees", kAtOnce, manager.quotas.of_user[1]),
      COPPICE_KEY("quotas.tree_ranks", kAtOnce, manager.quotas.of_user[2]),
      COPPICE_KEY("quotas.jobs", kAtOnce, manager.quotas.of_user[3]),
      COPPICE_KEY("quotas.ranks", kAtOnce, manager.quotas.of_user[4]),
      COPPICE_KEY("quotas.nodes", kAtOnce, manager.quotas.of_user[5]),
      COPPICE_KEY("quotas.pattern_bytes", kAtOnce, manager.quotas.of_user[6]),
      COPPICE_KEY("quotas.kept_bytes", kAtOnce, manager.quotas.of_user[7]),
      COPPICE_KEY("quotas.lease", kAtOnce, manager.quotas.of_user[8]),
      COPPICE_KEY("quotas.left_to_administrators", kAtOnce, manager.quotas.left_to_administrators),
      COPPICE_KEY("quotas.all_tree_ranks", kAtOnce, manager.quotas.all_tree_ranks),
      COPPICE_KEY("quotas.all_jobs", kAtOnce, manager.quotas.all_jobs),
      COPPICE_KEY("quotas.all_kept_bytes", kAtOnce, manager.quotas.all_kept_bytes),
      COPPICE_KEY("metrics.listen", kFromStart, metrics_listen),
      COPPICE_KEY("switches", kAtOnce, manager.capability_rules),
  };
  return *keys;
}

#undef COPPICE_KEY

}  // namespace

ConfigChange Compare(const Config& running, const Config& read) {
  ConfigChange change{{}, {}, running};
  for (const Key& key : Keys()) {
    if (key.is_same(running, read)) continue;
    const bool at_once = key.holds == Holds::kAtOnce;
    (at_once ? change.changed : change.needs_restart).emplace_back(key.name);
    if (at_once) key.take(read, change.next);
  }
  return change;
}

std::vector<std::string> ComparedKeys() {
  std::vector<std::string> names;
  for (const Key& key : Keys()) names.emplace_back(key.name);
  return names;
}

}  // namespace coppice
