// A fabric from a file or a model behind the seam of a live subnet, for planning and testing
// without hardware.
#ifndef COPPICE_DAEMON_FABRIC_OFFLINE_SUBNET_PORT_H_
#define COPPICE_DAEMON_FABRIC_OFFLINE_SUBNET_PORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/subnet_port.h"

namespace coppice {

// `spec` as LoadFabric takes it. Every sweep reads a file afresh, so that a changed file is a
// changed subnet; a result never has forwarding tables, and MAD counts are 0.
class OfflineSubnetPort final : public SubnetPort {
 public:
  // INVALID_ARGUMENT: neither file:... nor model:... . The file is not opened yet.
  static absl::StatusOr<std::unique_ptr<OfflineSubnetPort>> Create(absl::string_view spec);

  std::string Describe() const override { return spec_; }
  // Status codes as LoadFabric's.
  absl::StatusOr<SweepResult> Sweep(const SweepOptions& options) override;

 private:
  explicit OfflineSubnetPort(absl::string_view spec) : spec_(spec) {}

  const std::string spec_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_OFFLINE_SUBNET_PORT_H_
