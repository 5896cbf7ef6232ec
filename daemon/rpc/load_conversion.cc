#include "daemon/rpc/load_conversion.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/identifiers.h"
#include "daemon/rpc/jobs_conversion.h"

namespace coppice {
namespace {

absl::StatusOr<absl::Time> TimeOf(const google::protobuf::Timestamp& time,
                                  absl::string_view field) {
  // The range that google.protobuf.Timestamp states: years 1 to 9999.
  constexpr int64_t kFirst = -62'135'596'800, kLast = 253'402'300'799;
  const bool is_good = time.seconds() >= kFirst && time.seconds() <= kLast && time.nanos() >= 0 &&
                       time.nanos() < 1'000'000'000;
  if (!is_good) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", time.seconds(), " s ", time.nanos(), " ns is no time"));
  }
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

HistoryResolution FinestBackTo(absl::Time start, absl::Time now) {
  for (const HistoryResolution resolution :
       {HistoryResolution::kReading, HistoryResolution::kMinute}) {
    if (start >= now - LimitOf(resolution).length) return resolution;
  }
  return HistoryResolution::kHour;
}

std::string NameOf(const Fabric& fabric, VertexIndex v) {
  if (fabric.IsSwitch(v)) {
    const SwitchInfo& info = fabric.switch_info(fabric.AsSwitch(v));
    return info.description.empty() ? ToString(info.guid) : info.description;
  }
  const EndpointIndex endpoint = fabric.AsEndpoint(v);
  const absl::string_view host = fabric.host_name(fabric.host(endpoint));
  return host.empty() ? ToString(fabric.adapter(endpoint).guid) : std::string(host);
}

double PerSecond(uint64_t bytes, absl::Duration length) {
  return length > absl::ZeroDuration() ? static_cast<double>(bytes) / absl::ToDoubleSeconds(length)
                                       : 0;
}

}  // namespace

void ToProto(const LinkMeasure& measure, v1::Link& message) {
  message.set_utilisation_ab(measure.ab.average);
  message.set_utilisation_ba(measure.ba.average);
  message.set_peak_ab(measure.ab.peak);
  message.set_peak_ba(measure.ba.peak);
  message.set_promised_ab(measure.ab.promised);
  message.set_promised_ba(measure.ba.promised);
  const absl::Time read = std::max(measure.ab.read, measure.ba.read);
  if (read != absl::InfinitePast()) *message.mutable_load_time() = ToTimestamp(read);
}

void ToProto(const Fabric& fabric, const PortCounterRecord& record, v1::PortCounters& message) {
  message.set_port(record.port);
  if (const auto found = fabric.FindSwitch(record.node)) {
    const ChannelIndex c = fabric.channel_at(*found, PortNum(record.port));
    if (c != kNoChannel) message.set_peer(NameOf(fabric, fabric.channel_to(c)));
  }
  *message.mutable_read_time() = ToTimestamp(record.read);
  message.set_sent_bytes(record.sent_bytes);
  message.set_received_bytes(record.received_bytes);
  message.set_sent_packets(record.sent_packets);
  message.set_received_packets(record.received_packets);
  message.set_sent_wait_ticks(record.sent_wait_ticks);
  message.set_symbol_errors(record.symbol_errors);
  message.set_link_recoveries(record.link_recoveries);
  message.set_link_downed(record.link_downed);
  message.set_receive_errors(record.receive_errors);
  message.set_remote_physical_errors(record.remote_physical_errors);
  message.set_relay_errors(record.relay_errors);
  message.set_send_discards(record.send_discards);
  message.set_send_constraint_errors(record.send_constraint_errors);
  message.set_receive_constraint_errors(record.receive_constraint_errors);
  message.set_integrity_errors(record.integrity_errors);
  message.set_buffer_overruns(record.buffer_overruns);
  message.set_vl15_dropped(record.vl15_dropped);
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
    ASSIGN_OR_RETURN(query.start, TimeOf(request.start_time(), "start_time"));
  }
  if (request.has_end_time()) {
    ASSIGN_OR_RETURN(query.end, TimeOf(request.end_time(), "end_time"));
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

absl::Status TimesFromProto(const v1::ListEventsRequest& request, EventFilter& filter) {
  if (request.has_start_time()) {
    ASSIGN_OR_RETURN(filter.start, TimeOf(request.start_time(), "start_time"));
  }
  if (request.has_end_time()) {
    ASSIGN_OR_RETURN(filter.end, TimeOf(request.end_time(), "end_time"));
  }
  return absl::OkStatus();
}

}  // namespace coppice
