#include "daemon/rpc/status_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "daemon/rpc/fabric_conversion.h"
#include "daemon/rpc/jobs_conversion.h"

namespace coppice {
namespace {

void ToProto(const SweepNumbers& sweep, v1::SweepStatus& status) {
  status.set_count(sweep.count);
  status.set_failed(sweep.failed);
  if (sweep.count > sweep.failed) {
    *status.mutable_last_time() = ToTimestamp(sweep.last_time);
    *status.mutable_last_duration() = ToDuration(sweep.last_duration);
  }
  if (sweep.period < absl::InfiniteDuration()) {
    *status.mutable_period() = ToDuration(sweep.period);
  }
  status.set_last_error(sweep.last_error);
}

void AddSweeps(const SweepStanding& sweeps, v1::DaemonStatus& status) {
  ToProto(sweeps.full, *status.mutable_full_sweep());
  ToProto(sweeps.light, *status.mutable_light_sweep());
  ToProto(sweeps.counters, *status.mutable_counter_sweep());
  status.set_routes_settled(sweeps.routes_settled);
  status.set_mads_sent(sweeps.mads_sent);
  status.set_mads_resent(sweeps.mads_resent);
  status.set_mads_timed_out(sweeps.mads_timed_out);
}

void AddFabric(const DaemonNumbers& numbers, v1::DaemonStatus& status) {
  if (numbers.view == nullptr) return;
  const FabricView& view = *numbers.view;
  status.set_fabric_version(view.snapshot->fabric->version());
  *status.mutable_snapshot_age() = ToDuration(*numbers.snapshot_age());
  status.set_has_subnet_manager(view.has_subnet_manager);
  status.set_unanswered_nodes(static_cast<uint32_t>(view.unanswered.size()));
  ToProto(view, numbers.counts, *status.mutable_fabric());
}

void AddHoldings(const DaemonCounts& counts, v1::DaemonStatus& status) {
  status.set_active_jobs(counts.active_jobs);
  status.set_granted_trees(counts.granted_trees);
  status.set_held_placements(counts.held_placements);
  status.set_placed_nodes(counts.placed_nodes);
  status.set_entries_total(counts.entries_total);
  status.set_entries_taken(counts.entries_taken);
  status.set_trees_created(counts.trees.granted);
  status.set_trees_refused(counts.trees.refused);
  status.set_trees_repaired(counts.trees.repaired);
  status.set_trees_revoked(counts.trees.revoked);
  for (const std::string& sign : counts.other_daemons) status.add_other_daemons(sign);
}

// An upper bound of what this share of the commits kept; the last bucket has no bound, the one
// below it is the best that can be said.
absl::Duration CommitQuantile(const StoreStatistics& store, double share) {
  const auto& counts = store.commit_times;
  const uint64_t all = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (all == 0) return absl::ZeroDuration();
  const double wanted = std::ceil(share * static_cast<double>(all));
  uint64_t within = 0;
  for (size_t i = 0; i < StoreStatistics::kBounds.size(); ++i) {
    within += counts[i];
    if (static_cast<double>(within) >= wanted) return StoreStatistics::kBounds[i];
  }
  return StoreStatistics::kBounds.back();
}

void AddStore(const StoreStatistics& store, v1::DaemonStatus& status) {
  status.set_queued_mutations(static_cast<uint32_t>(store.queued));
  status.set_commits(store.commits);
  *status.mutable_median_commit() = ToDuration(CommitQuantile(store, 0.5));
  *status.mutable_p99_commit() = ToDuration(CommitQuantile(store, 0.99));
  status.set_database_bytes(store.database_bytes);
  status.set_refused_writes(store.refused);
  status.set_write_fault(store.fault);
}

void AddMethod(const MethodNumbers& method, v1::DaemonStatus& status) {
  for (size_t code = 0; code < kStatusCodes; ++code) {
    if (method.by_code[code] == 0) continue;
    v1::MethodStatus& line = *status.add_methods();
    line.set_method(method.name);
    line.set_code(absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
    line.set_count(method.by_code[code]);
    if (method.is_stream) continue;  // they last as long as their clients like
    const absl::Duration median = method.Quantile(0.5), p99 = method.Quantile(0.99);
    if (median < absl::InfiniteDuration()) *line.mutable_median() = ToDuration(median);
    if (p99 < absl::InfiniteDuration()) *line.mutable_p99() = ToDuration(p99);
  }
}

// Busiest methods first.
void AddCalls(const RpcNumbers& rpc, v1::DaemonStatus& status) {
  status.set_tree_watchers(rpc.tree_watchers);
  status.set_event_watchers(rpc.event_watchers);
  status.set_agents(rpc.agents);
  status.set_measured_distances(rpc.measured_distances);
  status.set_queued_calls(rpc.waiting_calls + rpc.waiting_batches + rpc.waiting_searches);
  std::vector<const MethodNumbers*> methods;
  for (const MethodNumbers& method : rpc.methods) methods.push_back(&method);
  std::stable_sort(
      methods.begin(), methods.end(),
      [](const MethodNumbers* a, const MethodNumbers* b) { return a->calls() > b->calls(); });
  for (const MethodNumbers* method : methods) AddMethod(*method, status);
}

}  // namespace

void ToProto(const DaemonNumbers& numbers, v1::DaemonStatus& status) {
  status.set_version(numbers.version);
  *status.mutable_start_time() = ToTimestamp(numbers.process.start_time);
  status.set_resident_bytes(numbers.process.resident_bytes);
  AddFabric(numbers, status);
  AddSweeps(numbers.sweeps, status);
  AddHoldings(numbers.counts, status);
  AddStore(numbers.store, status);
  AddCalls(numbers.rpc, status);
}

}  // namespace coppice
