#include "daemon/fabric/offline_subnet_port.h"

#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_source.h"

namespace coppice {

absl::StatusOr<std::unique_ptr<OfflineSubnetPort>> OfflineSubnetPort::Create(
    absl::string_view spec) {
  RETURN_IF_ERROR(CheckFabricSpec(spec));
  return std::unique_ptr<OfflineSubnetPort>(new OfflineSubnetPort(spec));
}

absl::StatusOr<SweepResult> OfflineSubnetPort::Sweep(const SweepOptions&) {
  const absl::Duration start = SystemClock().Monotonic();
  SweepResult result;
  ASSIGN_OR_RETURN(result.fabric, LoadFabric(spec_));
  result.elapsed = SystemClock().Monotonic() - start;
  return result;
}

}  // namespace coppice
