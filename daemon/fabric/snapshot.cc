#include "daemon/fabric/snapshot.h"

#include <utility>

#include "daemon/base/status_macros.h"

namespace coppice {

absl::StatusOr<std::shared_ptr<const Snapshot>> MakeSnapshot(
    std::shared_ptr<const Fabric> fabric, std::shared_ptr<const ForwardingTables> tables) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->fabric = fabric;
  if (tables == nullptr) {
    snapshot->routes = Routes::ShortestPaths(fabric);
  } else {
    ASSIGN_OR_RETURN(snapshot->routes, Routes::FromTables(fabric, std::move(tables)));
  }
  snapshot->hierarchy = DeriveHierarchy(*fabric);
  snapshot->load = std::make_shared<const LinkLoad>();
  return snapshot;
}

}  // namespace coppice
