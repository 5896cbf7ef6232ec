// The daemon's numbers over HTTP, in Prometheus' text format: GET http://LISTEN/metrics. The only
// folder that knows prometheus-cpp; everything else keeps plain structs, which are gathered when
// somebody asks. A scrape waits for no sweep and not for the database.
#ifndef COPPICE_DAEMON_METRICS_EXPORTER_H_
#define COPPICE_DAEMON_METRICS_EXPORTER_H_

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/rpc/server.h"

namespace coppice {

// INVALID_ARGUMENT unless `listen` is ADDRESS:PORT or [ADDRESS]:PORT with an address in numbers.
absl::Status CheckMetricsAddress(absl::string_view listen);

class MetricsExporter final {
 public:
  // Listens until it is destroyed; port 0: any free one. `gather` is called on threads of its own,
  // several at a time, and is not called once this is destroyed. INVALID_ARGUMENT: the address;
  // UNAVAILABLE: it cannot be bound.
  static absl::StatusOr<std::unique_ptr<MetricsExporter>> Start(
      const std::string& listen, std::function<DaemonNumbers()> gather);
  MetricsExporter(const MetricsExporter&) = delete;
  MetricsExporter& operator=(const MetricsExporter&) = delete;

  // Where it listens, with the port that was chosen.
  const std::string& address() const { return address_; }

 private:
  // Throws what the library throws.
  MetricsExporter(const std::string& listen, std::function<DaemonNumbers()> gather);

  const std::shared_ptr<prometheus::Collectable> collector_;
  prometheus::Exposer exposer_;  // after the collector: its threads, which use it, end first
  std::string address_;
};

// The daemon's numbers as Prometheus' metric families: names, units, labels and help texts.
//
// Conventions (prometheus.io/docs/practices/naming): base units, in the name; counters end in
// _total, all else does not; labels that add up to something.

std::vector<prometheus::MetricFamily> FamiliesOf(const DaemonNumbers& numbers);

// A list of metric families as it is being written: each Add... gives its family's name and help
// text and as many samples as there are label values.

using Labels = std::vector<std::pair<std::string, std::string>>;

struct Sample {
  template <class Number>
  Sample(Labels of, Number number) : labels(std::move(of)), value(static_cast<double>(number)) {}

  Labels labels;
  double value = 0;
};

// How often something took how long.
struct DurationHistogram {
  Labels labels;
  std::vector<absl::Duration> bounds;  // ascending, of all buckets but the last, which has none
  std::vector<uint64_t> counts;        // [bucket], one more than bounds; not cumulative
  absl::Duration sum;
};

class FamilyList {
 public:
  // A counter if the name ends in _total, else a gauge.
  void Add(const char* name, const char* help, const std::vector<Sample>& samples);
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void Add(const char* name, const char* help, Number value) {
    Add(name, help, std::vector<Sample>{Sample({}, value)});
  }
  // In seconds.
  void AddHistograms(const char* name, const char* help,
                     const std::vector<DurationHistogram>& histograms);

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  prometheus::MetricFamily& Begin(const char* name, const char* help, prometheus::MetricType type);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_METRICS_EXPORTER_H_
