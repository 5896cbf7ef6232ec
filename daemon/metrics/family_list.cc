#include "daemon/metrics/family_list.h"

#include <limits>

namespace coppice {
namespace {

prometheus::ClientMetric& AddMetric(prometheus::MetricFamily& family, const Labels& labels) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  return metric;
}

}  // namespace

prometheus::MetricFamily& FamilyList::Add(const char* name, const char* help,
                                          prometheus::MetricType type) {
  return families_.emplace_back(prometheus::MetricFamily{name, help, type, {}});
}

void FamilyList::AddCounters(const char* name, const char* help,
                             const std::vector<Sample>& samples) {
  prometheus::MetricFamily& family = Add(name, help, prometheus::MetricType::Counter);
  for (const Sample& sample : samples)
    AddMetric(family, sample.labels).counter.value = sample.value;
}

void FamilyList::AddGauges(const char* name, const char* help, const std::vector<Sample>& samples) {
  prometheus::MetricFamily& family = Add(name, help, prometheus::MetricType::Gauge);
  for (const Sample& sample : samples) AddMetric(family, sample.labels).gauge.value = sample.value;
}

void FamilyList::AddHistograms(const char* name, const char* help,
                               const std::vector<DurationHistogram>& histograms) {
  prometheus::MetricFamily& family = Add(name, help, prometheus::MetricType::Histogram);
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
