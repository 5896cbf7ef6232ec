// coppice.v1 messages of counters, history and load <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_LOAD_CONVERSION_H_
#define COPPICE_DAEMON_RPC_LOAD_CONVERSION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/manager.h"

namespace coppice {

// Into a link that has its ends already.
void ToProto(const LinkMeasure& measure, v1::Link& message);

// `fabric` tells who is at the other end; a port that is not cabled has nobody there.
void ToProto(const Fabric& fabric, const PortCounterRecord& record, v1::PortCounters& message);

void ToProto(HistoryResolution resolution, const std::vector<HistoryPoint>& points,
             v1::PortHistory& message);

// `now` decides which resolution reaches back far enough. INVALID_ARGUMENT names the field.
absl::StatusOr<HistoryQuery> FromProto(const v1::GetPortHistoryRequest& request, absl::Time now);

// An event's filter by time; fields that are unset do not filter. INVALID_ARGUMENT: no such time.
absl::Status TimesFromProto(const v1::ListEventsRequest& request, EventFilter& filter);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LOAD_CONVERSION_H_
