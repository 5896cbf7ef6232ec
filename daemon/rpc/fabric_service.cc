#include "daemon/rpc/fabric_service.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/group_tree.h"
#include "daemon/manager/event_kinds.h"
#include "daemon/rpc/calls/listing_page.h"
#include "daemon/rpc/calls/unary.h"
#include "daemon/rpc/conversion/calibration_conversion.h"
#include "daemon/rpc/conversion/fabric_conversion.h"
#include "daemon/rpc/conversion/identifiers.h"

namespace coppice {
namespace {

// Converts positions [first, first + page) of `total` with `add`, which returns the message; sets
// the token of the next page.
template <class Request, class Response, class Add>
absl::Status Page(const Request& request, const Fabric& fabric, uint32_t total, Response& response,
                  Add add) {
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(const uint32_t first, ParseFabricToken(request.page_token(), fabric.version()));
  const size_t left = first < total ? total - first : 0;
  const uint32_t end = first + static_cast<uint32_t>(FillPage(left, size, [&](size_t i) {
                         return add(first + static_cast<uint32_t>(i));
                       }));
  if (end < total) response.set_next_page_token(FabricToken(fabric.version(), end));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const FabricView>> FabricService::View() const {
  std::shared_ptr<const FabricView> view = manager_->fabric();
  if (view == nullptr) return NoFabricYet();
  return view;
}

grpc::ServerUnaryReactor* FabricService::GetFabric(grpc::CallbackServerContext*,
                                                   const v1::GetFabricRequest*,
                                                   v1::FabricSummary* response) {
  return AnswerNow(get_fabric_, "fabric", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto view, View());
    ToProto(*view, manager_->Counts(), *response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* FabricService::ListSwitches(grpc::CallbackServerContext*,
                                                      const v1::ListSwitchesRequest* request,
                                                      v1::ListSwitchesResponse* response) {
  return AnswerLater(workers_, list_switches_, "fabric",
                     [this, request, response] { return Switches(*request, *response); });
}

absl::Status FabricService::Switches(const v1::ListSwitchesRequest& request,
                                     v1::ListSwitchesResponse& response) {
  ASSIGN_OR_RETURN(const auto view, View());
  const Fabric& fabric = *view->snapshot->fabric;
  const std::vector<SwitchEntries> entries = manager_->Entries();
  if (entries.size() != fabric.switch_count()) {
    return absl::AbortedError("the fabric moved while its switches were listed: list again");
  }
  return Page(request, fabric, fabric.switch_count(), response, [&](uint32_t i) {
    const Guid guid = fabric.switch_info(SwitchIndex(i)).guid;
    v1::Switch& one = *response.add_switches();
    ToProto(fabric, entries[i], manager_->TreesOfSwitch(guid), one);
    return std::cref(one);
  });
}

grpc::ServerUnaryReactor* FabricService::ListLinks(grpc::CallbackServerContext*,
                                                   const v1::ListLinksRequest* request,
                                                   v1::ListLinksResponse* response) {
  return AnswerLater(workers_, list_links_, "fabric",
                     [this, request, response] { return Links(*request, *response); });
}

absl::Status FabricService::Links(const v1::ListLinksRequest& request,
                                  v1::ListLinksResponse& response) {
  ASSIGN_OR_RETURN(const auto view, View());
  const Snapshot& snapshot = *view->snapshot;
  return Page(request, *snapshot.fabric, snapshot.fabric->link_count(), response, [&](uint32_t i) {
    v1::Link& link = *response.add_links();
    ToProto(snapshot, LinkIndex(i), link);
    ToProto(manager_->Measure(*snapshot.fabric, LinkIndex(i)), link);
    return std::cref(link);
  });
}

grpc::ServerUnaryReactor* FabricService::ListNodes(grpc::CallbackServerContext*,
                                                   const v1::ListNodesRequest* request,
                                                   v1::ListNodesResponse* response) {
  return AnswerLater(workers_, list_nodes_, "fabric",
                     [this, request, response] { return Nodes(*request, *response); });
}

absl::Status FabricService::Nodes(const v1::ListNodesRequest& request,
                                  v1::ListNodesResponse& response) {
  ASSIGN_OR_RETURN(const auto view, View());
  const Fabric& fabric = *view->snapshot->fabric;
  return Page(request, fabric, fabric.endpoint_count(), response, [&](uint32_t i) {
    v1::Node& node = *response.add_nodes();
    ToProto(fabric, EndpointIndex(i), node);
    return std::cref(node);
  });
}

grpc::ServerUnaryReactor* FabricService::GetRoute(grpc::CallbackServerContext*,
                                                  const v1::GetRouteRequest* request,
                                                  v1::Route* response) {
  return AnswerNow(get_route_, absl::StrCat("route:", request->from(), "-", request->to()),
                   [&] { return Route(*request, *response); });
}

absl::Status FabricService::Route(const v1::GetRouteRequest& request, v1::Route& response) {
  ASSIGN_OR_RETURN(const auto view, View());
  const Snapshot& snapshot = *view->snapshot;
  ASSIGN_OR_RETURN(const VertexIndex from, ResolveRouteEnd(*snapshot.fabric, request.from()));
  ASSIGN_OR_RETURN(const VertexIndex to, ResolveRouteEnd(*snapshot.fabric, request.to()));
  std::vector<ChannelIndex> path;
  RETURN_IF_ERROR(snapshot.routes->Append(from, to, path));
  ToProto(snapshot, path, response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* FabricService::Sweep(grpc::CallbackServerContext* context,
                                               const v1::SweepRequest*,
                                               v1::FabricSummary* response) {
  auto* const reactor = new UnaryCall(sweep_, peers_, context);
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Fabric/Sweep", "fabric");
  if (!peer.ok()) return Finish(reactor, peer.status(), "fabric");
  return RunLater(workers_, reactor, "fabric", [this, reactor, response] {
    const auto view = manager_->Sweep();
    if (view.ok()) ToProto(**view, manager_->Counts(), *response);
    Finish(reactor, view.status(), "fabric");
  });
}

grpc::ServerUnaryReactor* FabricService::GetTypeTable(grpc::CallbackServerContext*,
                                                      const v1::GetTypeTableRequest* request,
                                                      v1::TypeTable* response) {
  return AnswerNow(get_type_table_, "type table", [&] { return Table(*request, *response); });
}

absl::Status FabricService::Table(const v1::GetTypeTableRequest& request, v1::TypeTable& response) {
  uint32_t members = request.members();
  if (members == 0) {
    ASSIGN_OR_RETURN(const auto view, View());
    members = view->snapshot->fabric->endpoint_count();
  }
  return TypeTableToProto(*manager_->profile(), members, response);
}

grpc::ServerUnaryReactor* FabricService::Calibrate(grpc::CallbackServerContext* context,
                                                   const v1::CalibrateRequest* request,
                                                   v1::CalibrateResponse* response) {
  auto* const reactor = new UnaryCall(calibrate_, peers_, context);
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Fabric/Calibrate", "profile");
  if (!peer.ok()) return Finish(reactor, peer.status(), "profile");
  return RunLater(
      workers_, reactor, "profile", [this, reactor, args = FromProto(*request), response] {
        manager_->Calibrate(
            args, [reactor, response](absl::StatusOr<std::shared_ptr<const CalibrationView>> fit) {
              if (fit.ok()) ToProto(**fit, *response);
              Finish(reactor, fit.status(), "profile");
            });
      });
}

grpc::ServerUnaryReactor* FabricService::ResetCalibration(grpc::CallbackServerContext* context,
                                                          const v1::ResetCalibrationRequest*,
                                                          v1::ResetCalibrationResponse* response) {
  auto* const reactor = new UnaryCall(reset_calibration_, peers_, context);
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Fabric/ResetCalibration", "profile");
  if (!peer.ok()) return Finish(reactor, peer.status(), "profile");
  manager_->ResetCalibration(
      [reactor, response](absl::StatusOr<std::shared_ptr<const CostProfile>> profile) {
        if (profile.ok()) response->set_profile((*profile)->name);
        Finish(reactor, profile.status(), "profile");
      });
  return reactor;
}

grpc::ServerUnaryReactor* FabricService::ListPortCounters(
    grpc::CallbackServerContext*, const v1::ListPortCountersRequest* request,
    v1::ListPortCountersResponse* response) {
  return AnswerLater(workers_, list_port_counters_, absl::StrCat("switch:", request->switch_guid()),
                     [this, request, response] { return PortCounts(*request, *response); });
}

absl::Status FabricService::PortCounts(const v1::ListPortCountersRequest& request,
                                       v1::ListPortCountersResponse& response) {
  ASSIGN_OR_RETURN(const auto view, View());
  const Fabric& fabric = *view->snapshot->fabric;
  ASSIGN_OR_RETURN(const Guid guid, ParseGuid(request.switch_guid()));
  if (!fabric.FindSwitch(guid)) {
    return absl::NotFoundError(absl::StrCat(
        "switch ", ToString(guid), " is not in the fabric: list the switches for those that are"));
  }
  ASSIGN_OR_RETURN(const std::vector<PortCounterRecord> ports, manager_->PortCounts(guid));
  for (const PortCounterRecord& port : ports) ToProto(fabric, port, *response.add_ports());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* FabricService::GetPortHistory(grpc::CallbackServerContext*,
                                                        const v1::GetPortHistoryRequest* request,
                                                        v1::PortHistory* response) {
  return AnswerLater(workers_, get_port_history_,
                     absl::StrCat("port:", request->node_guid(), "/", request->port()),
                     [this, request, response] { return History(*request, *response); });
}

absl::Status FabricService::History(const v1::GetPortHistoryRequest& request,
                                    v1::PortHistory& response) {
  ASSIGN_OR_RETURN(const auto view, View());
  const Fabric& fabric = *view->snapshot->fabric;
  ASSIGN_OR_RETURN(const HistoryQuery query, FromProto(request, absl::Now()));
  ASSIGN_OR_RETURN(const std::vector<HistoryPoint> points, manager_->PortHistory(query));
  const auto found = fabric.FindSwitch(query.node);
  const bool is_port = found && query.port <= fabric.switch_info(*found).port_count;
  // Also one that has gone, as long as its history is kept.
  if (!is_port && points.empty()) {
    return absl::NotFoundError(absl::StrCat("port ", ToString(query.node), "/", query.port,
                                            " is no port of a switch of the fabric, and was not "
                                            "measured: list the switches for those that are"));
  }
  ToProto(query.resolution, points, response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* FabricService::ExportTopology(grpc::CallbackServerContext*,
                                                        const v1::ExportTopologyRequest* request,
                                                        v1::ExportTopologyResponse* response) {
  return AnswerLater(workers_, export_topology_, "fabric",
                     [this, request, response] { return Export(*request, *response); });
}

absl::Status FabricService::Export(const v1::ExportTopologyRequest& request,
                                   v1::ExportTopologyResponse& response) {
  ASSIGN_OR_RETURN(const auto view, View());
  if (request.format() != v1::TOPOLOGY_FORMAT_UNSPECIFIED &&
      request.format() != v1::TOPOLOGY_FORMAT_SLURM) {
    return absl::InvalidArgumentError(absl::StrCat("format ", static_cast<int>(request.format()),
                                                   ": not known to this daemon; ask for Slurm's"));
  }
  const Snapshot& snapshot = *view->snapshot;
  ToProto(MakeGroupTree(*snapshot.fabric, *snapshot.hierarchy), snapshot, response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* FabricService::ListEvents(grpc::CallbackServerContext*,
                                                    const v1::ListEventsRequest* request,
                                                    v1::ListEventsResponse* response) {
  return AnswerLater(workers_, list_events_, "events",
                     [this, request, response] { return Events(*request, *response); });
}

absl::Status FabricService::Events(const v1::ListEventsRequest& request,
                                   v1::ListEventsResponse& response) {
  RETURN_IF_ERROR(CheckKindPrefix(request.kind_prefix()));
  ASSIGN_OR_RETURN(const EventFilter filter, FromProto(request));
  ASSIGN_OR_RETURN(std::vector<EventRecord> events, manager_->Events(filter));
  const bool has_more = events.size() == filter.limit;
  if (has_more) events.pop_back();
  for (const EventRecord& event : events) ToProto(event, *response.add_events());
  if (has_more) response.set_next_page_token(absl::StrCat(events.back().id));
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::Event>* FabricService::WatchEvents(
    grpc::CallbackServerContext*, const v1::WatchEventsRequest* request) {
  return OpenEventStream(event_streams_, manager_, *request);
}

}  // namespace coppice
