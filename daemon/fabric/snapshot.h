// Everything that a planner needs to know of the fabric at one instant, shared and immutable.
#ifndef COPPICE_DAEMON_FABRIC_SNAPSHOT_H_
#define COPPICE_DAEMON_FABRIC_SNAPSHOT_H_

#include <memory>

#include "daemon/fabric/fabric.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/fabric/link_load.h"
#include "daemon/fabric/routes.h"

namespace coppice {

struct Snapshot {
  std::shared_ptr<const Fabric> fabric;  // none of the four is ever null
  std::shared_ptr<const Routes> routes;
  std::shared_ptr<const Hierarchy> hierarchy;
  std::shared_ptr<const LinkLoad> load;  // [channel_count], or empty

  float utilisation(ChannelIndex c) const { return load->empty() ? 0.0F : (*load)[c.value()]; }
};

// Derives the hierarchy and takes the routes from `tables`, or shortest paths if it is null.
// INVALID_ARGUMENT: tables of another fabric.
absl::StatusOr<std::shared_ptr<const Snapshot>> MakeSnapshot(
    std::shared_ptr<const Fabric> fabric, std::shared_ptr<const ForwardingTables> tables);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_SNAPSHOT_H_
