#include "daemon/rpc/conversion/fabric_conversion.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/manager/inventory.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/trees_conversion.h"

namespace coppice {
namespace {

void ToProto(const DownLink::End& from, v1::LinkEnd& end) {
  end.set_guid(ToString(from.node));
  end.set_name(from.name);
  end.set_port(from.port);
  end.set_is_switch(from.is_switch);
}

std::string Words(const UnansweredNode& node) {
  return absl::StrCat(node.what, " of the node at path ", node.path, " (port ",
                      node.neighbour_port.value(), " of ", ToString(node.neighbour), ")");
}

HistoryResolution FinestBackTo(absl::Time start, absl::Time now) {
  for (const HistoryResolution resolution :
       {HistoryResolution::kReading, HistoryResolution::kMinute}) {
    if (start >= now - LimitOf(resolution).length) return resolution;
  }
  return HistoryResolution::kHour;
}

double PerSecond(uint64_t bytes, absl::Duration length) {
  return length > absl::ZeroDuration() ? static_cast<double>(bytes) / absl::ToDoubleSeconds(length)
                                       : 0;
}

template <class Request>
EventFilter WhatOf(const Request& request) {
  EventFilter filter;
  filter.kind_prefix = request.kind_prefix();
  filter.object = request.object();
  filter.min_severity = request.min_severity();
  return filter;
}

}  // namespace

void ToProto(const FabricView& view, const DaemonCounts& counts, v1::FabricSummary& summary) {
  const Fabric& fabric = *view.snapshot->fabric;
  summary.set_version(fabric.version());
  summary.set_source(view.source);
  summary.set_shape(view.snapshot->hierarchy->shape);
  summary.set_switch_count(fabric.switch_count());
  summary.set_endpoint_count(fabric.endpoint_count());
  summary.set_host_count(fabric.host_count());
  summary.set_link_count(fabric.link_count());
  summary.set_component_count(fabric.component_count());
  for (const Hierarchy::Level& level : view.snapshot->hierarchy->levels) {
    v1::Level& message = *summary.add_levels();
    message.set_name(level.name);
    message.set_group_count(level.group_count);
  }
  summary.set_route_kind(ToProto(view.snapshot->routes->kind()));
  *summary.mutable_sweep_time() = ToTimestamp(view.swept);
  *summary.mutable_sweep_duration() = ToDuration(view.sweep_duration);
  summary.set_mads_sent(view.mads_sent);
  summary.set_mads_timed_out(view.mads_timed_out);
  for (const UnansweredNode& node : view.unanswered) summary.add_unanswered(Words(node));
  summary.set_has_subnet_manager(view.has_subnet_manager);
  summary.set_subnet_manager_silent(view.is_subnet_manager_silent);
  summary.set_entries_total(counts.entries_total);
  summary.set_entries_taken(counts.entries_taken);
  summary.set_active_jobs(counts.active_jobs);
  summary.set_granted_trees(counts.granted_trees);
  summary.set_last_sweep_error(counts.last_sweep_error);
  v1::DownLinks& down = *summary.mutable_down_links();  // there even if none is
  for (const DownLink& link : counts.down_links) {
    v1::DownLink& message = *down.add_links();
    ToProto(link.ends[0], *message.mutable_a());
    ToProto(link.ends[1], *message.mutable_b());
    message.set_rate(link.rate);
    *message.mutable_since() = ToTimestamp(link.since);
  }
}

void ToProto(const LinkMeasure& measure, v1::Link& message) {
  if (measure.ab.read != absl::InfinitePast()) {
    message.set_utilisation_ab(measure.ab.average);
    message.set_peak_ab(measure.ab.peak);
  }
  if (measure.ba.read != absl::InfinitePast()) {
    message.set_utilisation_ba(measure.ba.average);
    message.set_peak_ba(measure.ba.peak);
  }
  message.set_promised_ab(measure.ab.promised);
  message.set_promised_ba(measure.ba.promised);
  const absl::Time read = std::max(measure.ab.read, measure.ba.read);
  if (read != absl::InfinitePast()) *message.mutable_load_time() = ToTimestamp(read);
}

void ToProto(const Fabric& fabric, const PortCounterRecord& record, v1::PortCounters& message) {
  message.set_port(record.port);
  if (const auto found = fabric.FindSwitch(record.node)) {
    const ChannelIndex c = fabric.channel_at(*found, PortNum(record.port));
    if (c != kNoChannel) message.set_peer(NodeName(fabric, fabric.channel_to(c)));
  }
  *message.mutable_read_time() = ToTimestamp(record.read);
  for (const PortCounterField& field : kPortCounterFields) {
    message.GetReflection()->SetUInt64(
        &message, message.GetDescriptor()->FindFieldByName(field.name), record.*field.count);
  }
  message.set_sent_bytes_per_second(record.sent_bytes_per_second);
  message.set_received_bytes_per_second(record.received_bytes_per_second);
  message.set_extended(record.is_extended);
}

void ToProto(HistoryResolution resolution, const std::vector<HistoryPoint>& points,
             v1::PortHistory& message) {
  message.set_resolution(static_cast<v1::HistoryResolution>(resolution));
  for (const HistoryPoint& point : points) {
    v1::PortHistoryPoint& to = *message.add_points();
    *to.mutable_start_time() = ToTimestamp(point.start);
    *to.mutable_length() = ToDuration(point.length);
    to.set_sent_bytes_per_second(PerSecond(point.sent_bytes, point.length));
    to.set_received_bytes_per_second(PerSecond(point.received_bytes, point.length));
    to.set_peak_sent_bytes_per_second(static_cast<double>(point.peak_sent_per_second));
    to.set_peak_received_bytes_per_second(static_cast<double>(point.peak_received_per_second));
    to.set_errors(point.errors);
  }
}

absl::StatusOr<HistoryQuery> FromProto(const v1::GetPortHistoryRequest& request, absl::Time now) {
  HistoryQuery query;
  ASSIGN_OR_RETURN(query.node, ParseGuid(request.node_guid()));
  if (request.port() < 1 || request.port() > 254) {
    return absl::InvalidArgumentError(
        absl::StrCat("port ", request.port(), ": ports are numbered from 1 to 254"));
  }
  query.port = static_cast<uint8_t>(request.port());
  query.end = now;
  if (request.has_start_time()) {
    ASSIGN_OR_RETURN(query.start, FromProto(request.start_time(), "start_time"));
  }
  if (request.has_end_time()) {
    ASSIGN_OR_RETURN(query.end, FromProto(request.end_time(), "end_time"));
  }
  if (query.end < query.start) {
    return absl::InvalidArgumentError("end_time is before start_time: give them in order");
  }
  const int resolution = request.resolution();
  if (resolution < 0 || resolution > 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("resolution ", resolution, " is none of reading, minute, hour"));
  }
  query.resolution =
      resolution == 0 ? FinestBackTo(query.start, now) : static_cast<HistoryResolution>(resolution);
  return query;
}

absl::StatusOr<EventFilter> FromProto(const v1::ListEventsRequest& request) {
  EventFilter filter = WhatOf(request);
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(filter.after_id, ParseIdToken(request.page_token()));
  filter.limit = static_cast<uint32_t>(size + 1);
  if (request.has_start_time()) {
    ASSIGN_OR_RETURN(filter.start, FromProto(request.start_time(), "start_time"));
  }
  if (request.has_end_time()) {
    ASSIGN_OR_RETURN(filter.end, FromProto(request.end_time(), "end_time"));
  }
  if (filter.start > filter.end) {
    return absl::InvalidArgumentError("end_time: it is before start_time");
  }
  return filter;
}

EventFilter FromProto(const v1::WatchEventsRequest& request) { return WhatOf(request); }

}  // namespace coppice
