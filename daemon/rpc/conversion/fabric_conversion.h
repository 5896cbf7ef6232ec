// coppice.v1 messages of the fabric, of its load and of events <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_FABRIC_CONVERSION_H_
#define COPPICE_DAEMON_RPC_CONVERSION_FABRIC_CONVERSION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/group_tree.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/fabric_view.h"
#include "db/store.h"

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

// INVALID_ARGUMENT: not a GUID; NOT_FOUND names it.
absl::StatusOr<SwitchIndex> FindSwitch(const Fabric& fabric, absl::string_view guid_text);
// The end of a route as users name it: an endpoint (ResolveEndpoint) or "switch:GUID". NOT_FOUND
// names it; INVALID_ARGUMENT: empty, or not a GUID.
absl::StatusOr<VertexIndex> ResolveRouteEnd(const Fabric& fabric, absl::string_view name);

// Into a link that has its ends already.
void ToProto(const LinkMeasure& measure, v1::Link& message);

// `fabric` tells who is at the other end; a port that is not cabled has nobody there.
void ToProto(const Fabric& fabric, const PortCounterRecord& record, v1::PortCounters& message);

void ToProto(HistoryResolution resolution, const std::vector<HistoryPoint>& points,
             v1::PortHistory& message);

// `now` decides which resolution reaches back far enough. INVALID_ARGUMENT names the field.
absl::StatusOr<HistoryQuery> FromProto(const v1::GetPortHistoryRequest& request, absl::Time now);

// One page of the listing, with room for one event more, which tells whether another page follows.
// INVALID_ARGUMENT: names the field.
absl::StatusOr<EventFilter> FromProto(const v1::ListEventsRequest& request);
// What is watched; where it begins is the caller's.
EventFilter FromProto(const v1::WatchEventsRequest& request);

// Writes over `message`.
void ToProto(const EventRecord& record, v1::Event& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_FABRIC_CONVERSION_H_
