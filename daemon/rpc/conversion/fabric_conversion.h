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
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/fabric_view.h"
#include "db/store.h"

namespace coppice {

void ToProto(const FabricView& view, const DaemonCounts& counts, v1::FabricSummary& summary);

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_FABRIC_CONVERSION_H_
