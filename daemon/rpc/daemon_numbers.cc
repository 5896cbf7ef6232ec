#include "daemon/rpc/daemon_numbers.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace coppice {

uint32_t RpcNumbers::open(absl::string_view method) const {
  for (const MethodNumbers& one : methods) {
    if (one.name == method) return static_cast<uint32_t>(one.open);
  }
  return 0;
}

std::optional<absl::Duration> DaemonNumbers::snapshot_age() const {
  if (view == nullptr) return std::nullopt;
  const absl::Time confirmed =
      std::max({view->swept, sweeps.full.last_time, sweeps.light.last_time});
  // The wall clock may have been set back since.
  return std::max(now - confirmed, absl::ZeroDuration());
}

DaemonNumbers GatherNumbers(const Manager& manager, RpcNumbers rpc, std::string version) {
  DaemonNumbers numbers;
  numbers.version = std::move(version);
  numbers.now = absl::Now();
  numbers.view = manager.fabric();
  numbers.sweeps = manager.Sweeps();
  numbers.counts = manager.Counts();
  numbers.store = manager.Statistics();
  numbers.rpc = std::move(rpc);
  numbers.process = ReadProcess();
  return numbers;
}

}  // namespace coppice
