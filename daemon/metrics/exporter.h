// The daemon's numbers over HTTP, in Prometheus' text format: GET http://LISTEN/metrics. The only
// folder that knows prometheus-cpp; everything else keeps plain structs, which are gathered when
// somebody asks. A scrape waits for no sweep and not for the database.
#ifndef COPPICE_DAEMON_METRICS_EXPORTER_H_
#define COPPICE_DAEMON_METRICS_EXPORTER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/rpc/daemon_numbers.h"

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
  ~MetricsExporter();
  MetricsExporter(const MetricsExporter&) = delete;
  MetricsExporter& operator=(const MetricsExporter&) = delete;

  // Where it listens, with the port that was chosen.
  const std::string& address() const;

 private:
  class Impl;
  explicit MetricsExporter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_METRICS_EXPORTER_H_
