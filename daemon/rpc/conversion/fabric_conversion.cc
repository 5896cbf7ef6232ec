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

constexpr absl::string_view kSwitchPrefix = "switch:";

void ToProto(const Fabric& fabric, VertexIndex v, PortNum port, v1::LinkEnd& end) {
  end.set_guid(ToString(NodeGuid(fabric, v)));
  end.set_name(NodeName(fabric, v));
  end.set_port(port.value());
  end.set_is_switch(fabric.IsSwitch(v));
}

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
  summary.set_entries_total(counts.entries_total);
  summary.set_entries_taken(counts.entries_taken);
  summary.set_active_jobs(counts.active_jobs);
  summary.set_granted_trees(counts.granted_trees);
  summary.set_last_sweep_error(counts.last_sweep_error);
  for (const DownLink& link : counts.down_links) {
    v1::DownLink& message = *summary.mutable_down_links()->add_links();
    ToProto(link.ends[0], *message.mutable_a());
    ToProto(link.ends[1], *message.mutable_b());
    message.set_rate(link.rate);
    *message.mutable_since() = ToTimestamp(link.since);
  }
}

void ToProto(const Fabric& fabric, const SwitchEntries& entries, const std::vector<TreeId>& trees,
             v1::Switch& message) {
  const SwitchInfo& info = fabric.switch_info(entries.index);
  message.set_guid(ToString(info.guid));
  message.set_description(info.description);
  message.set_lid(info.lid.value());
  message.set_port_count(info.port_count);
  const auto endpoints = fabric.endpoint_channels(entries.index).size();
  message.set_connected_ports(
      static_cast<uint32_t>(endpoints + fabric.switch_channels(entries.index).size()));
  message.set_endpoint_count(static_cast<uint32_t>(endpoints));
  const uint32_t used = entries.entries_reserved + entries.entries_taken;
  message.set_entries_total(entries.entries_total);
  message.set_entries_reserved(entries.entries_reserved);
  message.set_entries_taken(entries.entries_taken);
  message.set_entries_free(entries.entries_total > used ? entries.entries_total - used : 0);
  message.set_degree_limit(entries.degree_limit);
  for (const TreeId id : trees) message.add_tree_ids(absl::StrCat(id.value()));
}

void ToProto(const Snapshot& snapshot, LinkIndex link, v1::Link& message) {
  const LinkInfo& info = snapshot.fabric->link(link);
  ToProto(*snapshot.fabric, info.a, info.a_port, *message.mutable_a());
  ToProto(*snapshot.fabric, info.b, info.b_port, *message.mutable_b());
  message.set_rate(ToString(info.rate));
  message.set_capacity_gbps(info.capacity_gbps);
}

void ToProto(const Fabric& fabric, EndpointIndex endpoint, v1::Node& message) {
  const EndpointInfo& info = fabric.endpoint(endpoint);
  const AdapterInfo& adapter = fabric.adapter(info.adapter);
  message.set_host(std::string(fabric.host_name(adapter.host)));
  message.set_endpoint(EndpointName(fabric, endpoint));
  message.set_adapter_guid(ToString(adapter.guid));
  message.set_port(info.port.value());
  message.set_port_guid(ToString(info.port_guid));
  message.set_lid(info.lid.value());
  message.set_description(adapter.description);
  const std::optional<SwitchIndex> attached = fabric.attached_switch(endpoint);
  if (!attached) return;
  message.set_switch_guid(ToString(fabric.switch_info(*attached).guid));
  message.set_switch_port(
      fabric.channel_from_port(Fabric::Reverse(fabric.uplink(endpoint))).value());
}

void ToProto(const Snapshot& snapshot, const std::vector<ChannelIndex>& path, v1::Route& message) {
  const Fabric& fabric = *snapshot.fabric;
  message.set_kind(ToProto(snapshot.routes->kind()));
  for (const ChannelIndex channel : path) {
    const VertexIndex from = fabric.channel_from(channel);
    const VertexIndex to = fabric.channel_to(channel);
    v1::Hop& hop = *message.add_hops();
    hop.set_name(NodeName(fabric, from));
    hop.set_guid(ToString(NodeGuid(fabric, from)));
    hop.set_out_port(fabric.channel_from_port(channel).value());
    hop.set_to_name(NodeName(fabric, to));
    hop.set_to_guid(ToString(NodeGuid(fabric, to)));
    hop.set_in_port(fabric.channel_from_port(Fabric::Reverse(channel)).value());
    hop.set_capacity_gbps(fabric.capacity_gbps(channel));
    hop.set_utilisation(snapshot.utilisation(channel));
  }
}

void ToProto(const GroupTree& tree, const Snapshot& snapshot, v1::ExportTopologyResponse& message) {
  message.set_text(WriteSlurmTopology(tree, snapshot.hierarchy->shape));
  message.set_fabric_version(snapshot.fabric->version());
  message.set_host_count(tree.host_count);
  message.set_switch_count(static_cast<uint32_t>(tree.nodes.size()));
  message.set_root_count(static_cast<uint32_t>(tree.roots.size()));
  for (const std::string& host : tree.left_out) message.add_left_out(host);
}

absl::StatusOr<SwitchIndex> FindSwitch(const Fabric& fabric, absl::string_view guid_text) {
  ASSIGN_OR_RETURN(const Guid guid, ParseGuid(guid_text));
  const std::optional<SwitchIndex> found = fabric.FindSwitch(guid);
  if (found) return *found;
  return absl::NotFoundError(absl::StrCat(
      "switch ", ToString(guid), " is not in the fabric: list the switches for those that are"));
}

absl::StatusOr<VertexIndex> ResolveRouteEnd(const Fabric& fabric, absl::string_view name) {
  if (!absl::StartsWith(name, kSwitchPrefix)) {
    ASSIGN_OR_RETURN(const EndpointIndex endpoint, ResolveEndpoint(fabric, name));
    return fabric.Vertex(endpoint);
  }
  ASSIGN_OR_RETURN(const SwitchIndex found, FindSwitch(fabric, name.substr(kSwitchPrefix.size())));
  return fabric.Vertex(found);
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
