#include "daemon/rpc/events_conversion.h"

#include "daemon/base/status_macros.h"
#include "daemon/rpc/identifiers.h"
#include "daemon/rpc/jobs_conversion.h"
#include "daemon/rpc/load_conversion.h"

namespace coppice {

absl::StatusOr<EventFilter> FromProto(const v1::ListEventsRequest& request) {
  EventFilter filter;
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(filter.after_id, ParseIdToken(request.page_token()));
  filter.kind_prefix = request.kind_prefix();
  filter.object = request.object();
  filter.min_severity = request.min_severity();
  filter.limit = static_cast<uint32_t>(size + 1);
  RETURN_IF_ERROR(TimesFromProto(request, filter));
  if (filter.start > filter.end) {
    return absl::InvalidArgumentError("end_time: it is before start_time");
  }
  return filter;
}

EventFilter FromProto(const v1::WatchEventsRequest& request) {
  EventFilter filter;
  filter.kind_prefix = request.kind_prefix();
  filter.object = request.object();
  filter.min_severity = request.min_severity();
  return filter;
}

void ToProto(const EventRecord& record, v1::Event& message) {
  message.set_id(record.id);
  *message.mutable_time() = ToTimestamp(record.time);
  message.set_severity(record.severity);
  message.set_kind(record.kind);
  message.set_object(record.object);
  message.set_message(record.message);
  message.set_actor(record.actor);
}

}  // namespace coppice
