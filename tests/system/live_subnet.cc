#include "tests/system/live_subnet.h"

#include <utility>

#include "daemon/fabric/models/model.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {

void LiveSubnet::Start(const std::string& model, const std::string& routing) {
  const absl::StatusOr<std::shared_ptr<const Fabric>> fabric = GenerateModel(model);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  Start(**fabric, routing);
}

void LiveSubnet::Start(const Fabric& fabric, const std::string& routing) {
  const std::string host(fabric.host_name(HostIndex(0)));
  absl::StatusOr<std::unique_ptr<IbsimSubnet>> subnet =
      IbsimSubnet::Start(WriteIbsimNet(fabric), host);
  ASSERT_TRUE(subnet.ok()) << subnet.status();
  subnet_ = *std::move(subnet);
  if (!routing.empty()) {
    const absl::Status managed = subnet_->RunSubnetManager(routing);
    ASSERT_TRUE(managed.ok()) << managed;
  }
  const absl::Status attached = subnet_->Attach();
  ASSERT_TRUE(attached.ok()) << attached;
  absl::StatusOr<std::unique_ptr<UmadSubnetPort>> port = UmadSubnetPort::Create("umad");
  ASSERT_TRUE(port.ok()) << port.status();
  port_ = *std::move(port);
}

SweepResult LiveSubnet::SweepOrFail(bool read_forwarding_tables) {
  absl::StatusOr<SweepResult> result =
      port_->Sweep({.read_forwarding_tables = read_forwarding_tables});
  if (!result.ok()) {
    ADD_FAILURE() << result.status();
    return {};
  }
  for (const UnansweredNode& node : result->unanswered) {
    ADD_FAILURE() << "unanswered at " << node.path << ": " << node.what;
  }
  return *std::move(result);
}

}  // namespace coppice
