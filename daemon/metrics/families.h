// The daemon's numbers as Prometheus' metric families: names, units, labels and help texts.
//
// Conventions (prometheus.io/docs/practices/naming): base units, in the name; counters end in
// _total, all else does not; labels that add up to something.
#ifndef COPPICE_DAEMON_METRICS_FAMILIES_H_
#define COPPICE_DAEMON_METRICS_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/rpc/daemon_numbers.h"

namespace coppice {

std::vector<prometheus::MetricFamily> FamiliesOf(const DaemonNumbers& numbers);

// A list of metric families as it is being written: each Add... gives its family's name and help
// text and as many samples as there are label values.

using Labels = std::vector<std::pair<std::string, std::string>>;

struct Sample {
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
  void AddCounter(const char* name, const char* help, double value) {
    AddCounters(name, help, {{{}, value}});
  }
  void AddGauge(const char* name, const char* help, double value) {
    AddGauges(name, help, {{{}, value}});
  }
  void AddCounters(const char* name, const char* help, const std::vector<Sample>& samples);
  void AddGauges(const char* name, const char* help, const std::vector<Sample>& samples);
  // In seconds.
  void AddHistograms(const char* name, const char* help,
                     const std::vector<DurationHistogram>& histograms);

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  prometheus::MetricFamily& Add(const char* name, const char* help, prometheus::MetricType type);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_METRICS_FAMILIES_H_
