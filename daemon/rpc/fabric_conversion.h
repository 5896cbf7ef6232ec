// coppice.v1 messages of the fabric <- the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_FABRIC_CONVERSION_H_
#define COPPICE_DAEMON_RPC_FABRIC_CONVERSION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/group_tree.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/manager.h"

namespace coppice {

void ToProto(const FabricView& view, const DaemonCounts& counts, v1::FabricSummary& summary);

// `trees`: who takes entries of the switch.
void ToProto(const Fabric& fabric, const SwitchEntries& entries, const std::vector<TreeId>& trees,
             v1::Switch& message);

void ToProto(const Snapshot& snapshot, LinkIndex link, v1::Link& message);

void ToProto(const Fabric& fabric, EndpointIndex endpoint, v1::Node& message);

// `path` as Routes::Append gives it.
void ToProto(const Snapshot& snapshot, const std::vector<ChannelIndex>& path, v1::Route& message);

// As Slurm's file. `tree` is of the snapshot's fabric.
void ToProto(const GroupTree& tree, const Snapshot& snapshot, v1::ExportTopologyResponse& message);

// The end of a route as users name it: an endpoint (ResolveEndpoint) or "switch:GUID". NOT_FOUND
// names it; INVALID_ARGUMENT: empty, or not a GUID.
absl::StatusOr<VertexIndex> ResolveRouteEnd(const Fabric& fabric, absl::string_view name);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_FABRIC_CONVERSION_H_
