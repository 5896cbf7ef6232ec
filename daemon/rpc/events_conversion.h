// Events between the wire and the store's plain structs.
#ifndef COPPICE_DAEMON_RPC_EVENTS_CONVERSION_H_
#define COPPICE_DAEMON_RPC_EVENTS_CONVERSION_H_

#include "absl/status/statusor.h"
#include "coppice/v1/fabric.pb.h"
#include "db/store.h"

namespace coppice {

// One page of the listing, with room for one event more, which tells whether another page follows.
// INVALID_ARGUMENT: names the field.
absl::StatusOr<EventFilter> FromProto(const v1::ListEventsRequest& request);
// What is watched; where it begins is the caller's.
EventFilter FromProto(const v1::WatchEventsRequest& request);

// Writes over `message`.
void ToProto(const EventRecord& record, v1::Event& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_EVENTS_CONVERSION_H_
