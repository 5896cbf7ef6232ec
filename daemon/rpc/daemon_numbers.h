// All that is told of how the daemon fares, as plain numbers gathered at one instant, about: for
// Admin.GetStatus and for the metrics.
#ifndef COPPICE_DAEMON_RPC_DAEMON_NUMBERS_H_
#define COPPICE_DAEMON_RPC_DAEMON_NUMBERS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/process.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/calls/method_statistics.h"

namespace coppice {

struct RpcNumbers {
  std::vector<MethodNumbers> methods;
  uint32_t agents = 0;                                 // that are connected
  uint64_t measured_distances = 0;                     // pairs of hosts
  uint32_t waiting_calls = 0;                          // for a worker
  uint32_t waiting_batches = 0, waiting_searches = 0;  // for one of theirs

  // Streams of a method that are open now.
  uint32_t open(absl::string_view method) const {
    const auto found = absl::c_find_if(methods, [&](const auto& m) { return m.name == method; });
    return found == methods.end() ? 0 : static_cast<uint32_t>(found->open);
  }
};

struct DaemonNumbers {
  std::string version;  // of the program
  absl::Time now;
  std::shared_ptr<const FabricView> view;  // null: no sweep has succeeded yet
  SweepStanding sweeps;
  DaemonCounts counts;
  StoreStatistics store;
  RpcNumbers rpc;
  ProcessNumbers process;

  // Time since a sweep, full or light, last confirmed the fabric; unset before the first.
  std::optional<absl::Duration> snapshot_age() const {
    if (view == nullptr) return std::nullopt;
    const absl::Time confirmed =
        std::max({view->swept, sweeps.full.last_time, sweeps.light.last_time});
    // The wall clock may have been set back since.
    return std::max(now - confirmed, absl::ZeroDuration());
  }
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_DAEMON_NUMBERS_H_
