// The daemon's numbers as Prometheus' metric families: names, units, labels and help texts.
//
// Conventions (prometheus.io/docs/practices/naming): base units, in the name; counters end in
// _total, all else does not; labels that add up to something.
#ifndef COPPICE_DAEMON_METRICS_FAMILIES_H_
#define COPPICE_DAEMON_METRICS_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "daemon/rpc/daemon_numbers.h"

namespace coppice {

std::vector<prometheus::MetricFamily> FamiliesOf(const DaemonNumbers& numbers);

}  // namespace coppice

#endif  // COPPICE_DAEMON_METRICS_FAMILIES_H_
