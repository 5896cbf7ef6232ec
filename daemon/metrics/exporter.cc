#include "daemon/metrics/exporter.h"

#include <arpa/inet.h>

#include <exception>
#include <limits>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// A scraper, and somebody who looks by hand.
constexpr size_t kThreads = 2;
constexpr char kOtherReasons[] = "other";

class Collector final : public prometheus::Collectable {
 public:
  explicit Collector(std::function<DaemonNumbers()> gather) : gather_(std::move(gather)) {}
  std::vector<prometheus::MetricFamily> Collect() const override { return FamiliesOf(gather_()); }

 private:
  const std::function<DaemonNumbers()> gather_;
};

bool IsNumericAddress(absl::string_view text) {
  unsigned char bytes[sizeof(in6_addr)];
  if (absl::ConsumePrefix(&text, "[")) {
    return absl::ConsumeSuffix(&text, "]") &&
           inet_pton(AF_INET6, std::string(text).c_str(), bytes) == 1;
  }
  return inet_pton(AF_INET, std::string(text).c_str(), bytes) == 1;
}

void AddSweeps(const SweepStanding& sweeps, FamilyList& list) {
  const std::vector<std::pair<const char*, const SweepNumbers*>> kinds = {
      {"full", &sweeps.full}, {"light", &sweeps.light}, {"counters", &sweeps.counters}};
  std::vector<Sample> totals, durations, times;
  for (const auto& [kind, sweep] : kinds) {
    totals.push_back({{{"kind", kind}, {"result", "ok"}}, sweep->count - sweep->failed});
    totals.push_back({{{"kind", kind}, {"result", "failed"}}, sweep->failed});
    if (sweep->count == sweep->failed) continue;
    durations.push_back({{{"kind", kind}}, absl::ToDoubleSeconds(sweep->last_duration)});
    times.push_back(
        {{{"kind", kind}}, absl::ToDoubleSeconds(sweep->last_time - absl::UnixEpoch())});
  }
  list.Add("coppice_sweeps_total", "Sweeps of the subnet since the start.", totals);
  list.Add("coppice_sweep_duration_seconds", "How long the last sweep took that went well.",
           durations);
  list.Add("coppice_sweep_last_success_timestamp_seconds",
           "When the last sweep ended that went well, as Unix time.", times);
  list.Add("coppice_mads_sent_total", "Management datagrams sent, repetitions included.",
           sweeps.mads_sent);
  list.Add("coppice_mads_resent_total", "Management datagrams sent again.", sweeps.mads_resent);
  list.Add("coppice_mad_timeouts_total", "Requests that stayed without an answer.",
           sweeps.mads_timed_out);
  list.Add("coppice_routes_settled", "1 if the forwarding tables are as they were when last read.",
           sweeps.routes_settled);
}

void AddFabric(const DaemonNumbers& numbers, FamilyList& list) {
  list.Add("coppice_fabric_known", "1 once a sweep has succeeded.", numbers.view != nullptr);
  if (numbers.view == nullptr) return;
  const Fabric& fabric = *numbers.view->snapshot->fabric;
  list.Add("coppice_snapshot_age_seconds", "Time since a sweep last confirmed the fabric.",
           absl::ToDoubleSeconds(*numbers.snapshot_age()));
  list.Add("coppice_fabric_version", "Number of the present snapshot.", fabric.version());
  list.Add("coppice_switches", "Switches in the fabric.", fabric.switch_count());
  list.Add("coppice_endpoints", "Cabled ports of channel adapters.", fabric.endpoint_count());
  list.Add("coppice_links", "Links in the fabric.", fabric.link_count());
  list.Add("coppice_unanswered_requests", "Requests of the last sweep without an answer.",
           numbers.view->unanswered.size());
  list.Add("coppice_subnet_manager_present", "1 if a subnet manager has assigned LIDs and answers.",
           numbers.view->has_subnet_manager && !numbers.view->is_subnet_manager_silent);
}

void AddHoldings(const DaemonCounts& counts, FamilyList& list) {
  list.Add("coppice_jobs_active", "Jobs with a lease.", counts.active_jobs);
  list.Add("coppice_trees", "Trees that are granted.", counts.granted_trees);
  list.Add("coppice_placements_held", "Placements that hold nodes.", counts.held_placements);
  list.Add("coppice_placed_nodes", "Nodes that placements hold.", counts.placed_nodes);
  list.Add("coppice_trees_created_total", "Trees granted since the start.", counts.trees.granted);
  list.Add("coppice_trees_released_total", "Trees released since the start.",
           counts.trees.released);
  list.Add("coppice_trees_refused_total", "Trees refused for want of entries.",
           counts.trees.refused);
  list.Add("coppice_trees_repaired_total", "Trees planned anew after a loss.",
           counts.trees.repaired);
  list.Add("coppice_trees_revoked_total", "Trees that could not be planned anew.",
           counts.trees.revoked);
  list.Add("coppice_switches_connected", "Switches that speak.", counts.switches.connected);
  list.Add("coppice_switch_installs_total", "Entries that switches took since the start.",
           counts.switches.installs);
  list.Add("coppice_switch_refusals_total", "Entries that switches refused since the start.",
           counts.switches.refusals);
  list.Add("coppice_entries", "Aggregation entries in the switches.",
           {{{{"state", "total"}}, counts.entries_total},
            {{{"state", "reserved"}}, counts.entries_reserved},
            {{{"state", "taken"}}, counts.entries_taken}});
}

// By reason, and so many of them: a switch finds the words. The others are one.
void AddRefusals(const std::string& guid, const std::map<std::string, uint64_t>& refusals,
                 std::vector<Sample>& samples) {
  constexpr size_t kMaxReasons = 16;
  uint64_t others = 0;
  size_t told = 0;
  for (const auto& [reason, count] : refusals) {
    if (reason == kOtherReasons || told >= kMaxReasons) {
      others += count;
    } else {
      samples.push_back({{{"switch", guid}, {"reason", reason}}, count});
      ++told;
    }
  }
  if (others > 0) samples.push_back({{{"switch", guid}, {"reason", kOtherReasons}}, others});
}

// As they report it, since each of them started.
void AddSwitches(const std::vector<SwitchView>& switches, FamilyList& list) {
  std::vector<Sample> collectives, segments, bytes, refused, entries;
  for (const SwitchView& view : switches) {
    const std::string guid = ToString(view.hello.guid);
    const SwitchReport& report = view.report;
    entries.push_back({{{"switch", guid}}, report.entries_used});
    collectives.push_back({{{"switch", guid}}, report.collectives});
    segments.push_back({{{"switch", guid}, {"direction", "up"}}, report.segments_up});
    segments.push_back({{{"switch", guid}, {"direction", "down"}}, report.segments_down});
    bytes.push_back({{{"switch", guid}, {"direction", "up"}}, report.bytes_up});
    bytes.push_back({{{"switch", guid}, {"direction", "down"}}, report.bytes_down});
    AddRefusals(guid, report.refusals, refused);
  }
  list.Add("coppice_switch_entries_used", "Entries that a switch says it holds.", entries);
  list.Add("coppice_switch_collectives_total", "Collectives that a switch has carried out.",
           collectives);
  list.Add("coppice_switch_segments_total", "Segments that went through a switch.", segments);
  list.Add("coppice_switch_bytes_total", "Bytes of segments that went through a switch.", bytes);
  list.Add("coppice_switch_refused_messages_total", "What a switch refused of members, by reason.",
           refused);
}

void AddCalls(const RpcNumbers& rpc, FamilyList& list) {
  std::vector<Sample> requests, streams;
  std::vector<DurationHistogram> latencies;
  std::vector<absl::Duration> bounds;
  for (size_t i = 0; i + 1 < kLatencyBuckets; ++i) bounds.push_back(LatencyBound(i));
  for (const MethodNumbers& method : rpc.methods) {
    for (size_t code = 0; code < kStatusCodes; ++code) {
      // OK always, so that a rate begins at 0.
      if (method.by_code[code] == 0 && code != 0) continue;
      const std::string name = absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
      requests.push_back({{{"method", method.name}, {"code", name}}, method.by_code[code]});
    }
    if (method.is_stream) {
      streams.push_back({{{"method", method.name}}, method.open});
    } else {
      latencies.push_back({{{"method", method.name}},
                           bounds,
                           {method.latency.begin(), method.latency.end()},
                           method.total_latency});
    }
  }
  list.Add("coppice_rpc_requests_total", "Calls that have ended, streams included.", requests);
  list.AddHistograms("coppice_rpc_latency_seconds", "From a unary call's arrival to its answer.",
                     latencies);
  list.Add("coppice_rpc_streams", "Streams that are open.", streams);
  list.Add("coppice_agents_connected", "Node agents that are connected.", rpc.agents);
  list.Add("coppice_measured_distances", "Pairs of hosts whose distance was measured.",
           rpc.measured_distances);
  list.Add("coppice_watchers", "Clients that follow what happens.",
           {{{{"kind", "trees"}}, rpc.open("Trees.WatchTrees")},
            {{{"kind", "events"}}, rpc.open("Fabric.WatchEvents")}});
}

void AddStore(const DaemonNumbers& numbers, FamilyList& list) {
  const StoreStatistics& store = numbers.store;
  list.Add("coppice_queue_length", "What waits.",
           {{{{"queue", "store"}}, store.queued},
            {{{"queue", "workers"}}, numbers.rpc.waiting_calls},
            {{{"queue", "batch"}}, numbers.rpc.waiting_batches},
            {{{"queue", "mapping"}}, numbers.rpc.waiting_searches}});
  list.Add("coppice_store_mutations_total", "Mutations that the store has answered.",
           store.mutations);
  list.Add("coppice_store_failed_commits_total", "Commits that failed.", store.failed_commits);
  list.AddHistograms("coppice_store_commit_seconds", "How long commits of the database take.",
                     {{{},
                       {StoreStatistics::kBounds.begin(), StoreStatistics::kBounds.end()},
                       {store.commit_times.begin(), store.commit_times.end()},
                       store.commit_time}});
  list.Add("coppice_database_bytes", "Size of the database, its log included.",
           store.database_bytes);
}

// Names as every Prometheus client has them.
void AddProcess(const ProcessNumbers& process, FamilyList& list) {
  list.Add("process_resident_memory_bytes", "Resident memory.", process.resident_bytes);
  list.Add("process_virtual_memory_bytes", "Virtual memory.", process.virtual_bytes);
  list.Add("process_cpu_seconds_total", "User and system time.",
           absl::ToDoubleSeconds(process.cpu_time));
  list.Add("process_open_fds", "Open file descriptors.", process.open_files);
  list.Add("process_max_fds", "Most file descriptors that may be open.", process.max_open_files);
  list.Add("process_threads", "Threads.", process.threads);
  list.Add("process_start_time_seconds", "Start of the process, as Unix time.",
           absl::ToDoubleSeconds(process.start_time - absl::UnixEpoch()));
}

prometheus::ClientMetric& AddMetric(prometheus::MetricFamily& family, const Labels& labels) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  return metric;
}

}  // namespace

absl::Status CheckMetricsAddress(absl::string_view listen) {
  const size_t colon = listen.rfind(':');
  uint32_t port = 0;
  if (colon != absl::string_view::npos && IsNumericAddress(listen.substr(0, colon)) &&
      absl::SimpleAtoi(listen.substr(colon + 1), &port) && port <= 0xffff) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("metrics address \"", listen,
                   "\": give ADDRESS:PORT with an address in numbers, "
                   "such as \"127.0.0.1:9709\" or \"[::1]:9709\""));
}

MetricsExporter::MetricsExporter(const std::string& listen, std::function<DaemonNumbers()> gather)
    : collector_(std::make_shared<Collector>(std::move(gather))), exposer_(listen, kThreads) {
  exposer_.RegisterCollectable(collector_);
  address_ =
      absl::StrCat(listen.substr(0, listen.rfind(':') + 1), exposer_.GetListeningPorts().at(0));
}

absl::StatusOr<std::unique_ptr<MetricsExporter>> MetricsExporter::Start(
    const std::string& listen, std::function<DaemonNumbers()> gather) {
  RETURN_IF_ERROR(CheckMetricsAddress(listen));
  // The library reports by exception; it must not leave this function.
  try {
    return std::unique_ptr<MetricsExporter>(new MetricsExporter(listen, std::move(gather)));
  } catch (const std::exception&) {  // its text says no more than that something failed
    return absl::UnavailableError(
        absl::StrCat("metrics address ", listen,
                     ": cannot be bound; is another process there, or is the address not one of "
                     "this host? Set metrics.listen, \"\" for none"));
  }
}

std::vector<prometheus::MetricFamily> FamiliesOf(const DaemonNumbers& numbers) {
  FamilyList list;
  list.Add("coppice_build_info", "Always 1; the program's version.",
           {{{{"version", numbers.version}}, 1}});
  AddSweeps(numbers.sweeps, list);
  AddFabric(numbers, list);
  AddHoldings(numbers.counts, list);
  AddSwitches(numbers.switches, list);
  AddCalls(numbers.rpc, list);
  AddStore(numbers, list);
  AddProcess(numbers.process, list);
  return list.Take();
}

prometheus::MetricFamily& FamilyList::Begin(const char* name, const char* help,
                                            prometheus::MetricType type) {
  return families_.emplace_back(prometheus::MetricFamily{name, help, type, {}});
}

void FamilyList::Add(const char* name, const char* help, const std::vector<Sample>& samples) {
  const bool counts = absl::EndsWith(name, "_total");
  prometheus::MetricFamily& family =
      Begin(name, help, counts ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge);
  for (const Sample& sample : samples) {
    prometheus::ClientMetric& metric = AddMetric(family, sample.labels);
    (counts ? metric.counter.value : metric.gauge.value) = sample.value;
  }
}

void FamilyList::AddHistograms(const char* name, const char* help,
                               const std::vector<DurationHistogram>& histograms) {
  prometheus::MetricFamily& family = Begin(name, help, prometheus::MetricType::Histogram);
  for (const DurationHistogram& given : histograms) {
    prometheus::ClientMetric::Histogram& histogram = AddMetric(family, given.labels).histogram;
    for (size_t i = 0; i < given.counts.size(); ++i) {
      histogram.sample_count += given.counts[i];
      const double bound = i < given.bounds.size() ? absl::ToDoubleSeconds(given.bounds[i])
                                                   : std::numeric_limits<double>::infinity();
      histogram.bucket.push_back({histogram.sample_count, bound});
    }
    histogram.sample_sum = absl::ToDoubleSeconds(given.sum);
  }
}

}  // namespace coppice
