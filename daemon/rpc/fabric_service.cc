// The Fabric service: coppice/v1/fabric.proto over the manager. Status codes are stated there.

#include "absl/time/clock.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/fabric/group_tree.h"
#include "daemon/manager/event_kinds.h"
#include "daemon/manager/event_log.h"
#include "daemon/rpc/calls/service.h"
#include "daemon/rpc/calls/streams.h"
#include "daemon/rpc/conversion/fabric_conversion.h"
#include "daemon/rpc/conversion/identifiers.h"

namespace coppice {
namespace {

// Converts positions [first, first + page) of `total` with `convert`; sets the token of the next
// page.
template <class Request, class Response, class Message, class Convert>
absl::Status Page(const Request& request, const Fabric& fabric, uint32_t total, Response& response,
                  google::protobuf::RepeatedPtrField<Message>* list, const Convert& convert) {
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(const uint32_t first, ParseFabricToken(request.page_token(), fabric.version()));
  const size_t left = first < total ? total - first : 0;
  const size_t added = FillPage(left, size, list, [&](size_t i, Message& message) {
    convert(first + static_cast<uint32_t>(i), message);
  });
  const uint32_t end = first + static_cast<uint32_t>(added);
  if (end < total) response.set_next_page_token(FabricToken(fabric.version(), end));
  return absl::OkStatus();
}

}  // namespace

// Listings go by position in one version of the fabric: when it moves between two pages the next
// page is ABORTED.
class FabricService final : public Service {
 public:
  explicit FabricService(const ServiceParts& parts)
      : Service("coppice.v1.Fabric", parts),
        event_streams_(CountStreams("WatchEvents"),
                       "connect again and watch after the last event that came") {
    using S = FabricService;
    Unary("GetFabric", &S::GetFabric, "fabric");
    Unary("ListSwitches", &S::ListSwitches, "fabric", {.pool = workers_});
    Unary("ListLinks", &S::ListLinks, "fabric", {.pool = workers_});
    Unary("ListNodes", &S::ListNodes, "fabric", {.pool = workers_});
    Unary("GetRoute", &S::GetRoute, [](const auto& request) {
      return absl::StrCat("route:", request.from(), "-", request.to());
    });
    Unary("Sweep", &S::Sweep, "fabric", {.is_change = true, .pool = workers_});
    Unary("GetTypeTable", &S::GetTypeTable, "type table");
    Unary("Calibrate", &S::Calibrate, "profile",
          {.is_bulk = true, .is_change = true, .pool = workers_});
    Unary("ResetCalibration", &S::ResetCalibration, "profile", {.is_change = true});
    Unary("ListEvents", &S::ListEvents, "events", {.pool = workers_});
    Unary("ListPortCounters", &S::ListPortCounters,
          [](const auto& request) { return absl::StrCat("switch:", request.switch_guid()); },
          {.pool = workers_});
    Unary("GetPortHistory", &S::GetPortHistory,
          [](const auto& request) {
            return absl::StrCat("port:", request.node_guid(), "/", request.port());
          },
          {.pool = workers_});
    Unary("ExportTopology", &S::ExportTopology, "fabric", {.pool = workers_});
    Stream("WatchEvents", &S::WatchEvents, "events");
  }

  void CloseStreams() override { event_streams_.Close(); }

 private:
  // UNAVAILABLE before the first successful sweep.
  absl::StatusOr<std::shared_ptr<const FabricView>> View() const {
    std::shared_ptr<const FabricView> view = manager_->fabric();
    if (view == nullptr) return NoFabricYet();
    return view;
  }

  absl::Status GetFabric(const v1::GetFabricRequest&, v1::FabricSummary& response) {
    ASSIGN_OR_RETURN(const auto view, View());
    ToProto(*view, manager_->Counts(), response);
    return absl::OkStatus();
  }

  absl::Status ListSwitches(const v1::ListSwitchesRequest& request,
                            v1::ListSwitchesResponse& response) {
    ASSIGN_OR_RETURN(const auto view, View());
    const Fabric& fabric = *view->snapshot->fabric;
    const std::vector<SwitchEntries> entries = manager_->Entries();
    if (entries.size() != fabric.switch_count()) {
      return absl::AbortedError("the fabric moved while its switches were listed: list again");
    }
    return Page(request, fabric, fabric.switch_count(), response, response.mutable_switches(),
                [&](uint32_t i, v1::Switch& message) {
                  const Guid guid = fabric.switch_info(SwitchIndex(i)).guid;
                  ToProto(fabric, entries[i], manager_->TreesOfSwitch(guid), message);
                });
  }

  absl::Status ListLinks(const v1::ListLinksRequest& request, v1::ListLinksResponse& response) {
    ASSIGN_OR_RETURN(const auto view, View());
    const Snapshot& snapshot = *view->snapshot;
    return Page(request, *snapshot.fabric, snapshot.fabric->link_count(), response,
                response.mutable_links(), [&](uint32_t i, v1::Link& message) {
                  ToProto(snapshot, LinkIndex(i), message);
                  ToProto(manager_->Measure(*snapshot.fabric, LinkIndex(i)), message);
                });
  }

  absl::Status ListNodes(const v1::ListNodesRequest& request, v1::ListNodesResponse& response) {
    ASSIGN_OR_RETURN(const auto view, View());
    const Fabric& fabric = *view->snapshot->fabric;
    return Page(request, fabric, fabric.endpoint_count(), response, response.mutable_nodes(),
                [&](uint32_t i, v1::Node& message) { ToProto(fabric, EndpointIndex(i), message); });
  }

  absl::Status GetRoute(const v1::GetRouteRequest& request, v1::Route& response) {
    ASSIGN_OR_RETURN(const auto view, View());
    const Snapshot& snapshot = *view->snapshot;
    ASSIGN_OR_RETURN(const VertexIndex from, ResolveRouteEnd(*snapshot.fabric, request.from()));
    ASSIGN_OR_RETURN(const VertexIndex to, ResolveRouteEnd(*snapshot.fabric, request.to()));
    std::vector<ChannelIndex> path;
    RETURN_IF_ERROR(snapshot.routes->Append(from, to, path));
    ToProto(snapshot, path, response);
    return absl::OkStatus();
  }

  absl::Status Sweep(const v1::SweepRequest&, v1::FabricSummary& response) {
    ASSIGN_OR_RETURN(const auto view, manager_->Sweep());
    ToProto(*view, manager_->Counts(), response);
    return absl::OkStatus();
  }

  absl::Status GetTypeTable(const v1::GetTypeTableRequest& request, v1::TypeTable& response) {
    uint32_t members = request.members();
    if (members == 0) {
      ASSIGN_OR_RETURN(const auto view, View());
      members = view->snapshot->fabric->endpoint_count();
    }
    return TypeTableToProto(*manager_->profile(), members, response);
  }

  void Calibrate(UnaryCall* call, const v1::CalibrateRequest& request,
                 v1::CalibrateResponse& response) {
    manager_->Calibrate(
        FromProto(request),
        [call, &response](absl::StatusOr<std::shared_ptr<const CalibrationView>> fit) {
          if (fit.ok()) ToProto(**fit, response);
          call->End(fit.status());
        });
  }

  void ResetCalibration(UnaryCall* call, const v1::ResetCalibrationRequest&,
                        v1::ResetCalibrationResponse& response) {
    manager_->ResetCalibration(
        [call, &response](absl::StatusOr<std::shared_ptr<const CostProfile>> profile) {
          if (profile.ok()) response.set_profile((*profile)->name);
          call->End(profile.status());
        });
  }

  absl::Status ListPortCounters(const v1::ListPortCountersRequest& request,
                                v1::ListPortCountersResponse& response) {
    ASSIGN_OR_RETURN(const auto view, View());
    const Fabric& fabric = *view->snapshot->fabric;
    ASSIGN_OR_RETURN(const SwitchIndex found, FindSwitch(fabric, request.switch_guid()));
    const Guid guid = fabric.switch_info(found).guid;
    ASSIGN_OR_RETURN(const std::vector<PortCounterRecord> ports, manager_->PortCounts(guid));
    for (const PortCounterRecord& port : ports) ToProto(fabric, port, *response.add_ports());
    return absl::OkStatus();
  }

  absl::Status GetPortHistory(const v1::GetPortHistoryRequest& request, v1::PortHistory& response) {
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

  absl::Status ExportTopology(const v1::ExportTopologyRequest& request,
                              v1::ExportTopologyResponse& response) {
    ASSIGN_OR_RETURN(const auto view, View());
    if (request.format() != v1::TOPOLOGY_FORMAT_UNSPECIFIED &&
        request.format() != v1::TOPOLOGY_FORMAT_SLURM) {
      return absl::InvalidArgumentError(
          absl::StrCat("format ", static_cast<int>(request.format()),
                       ": not known to this daemon; ask for Slurm's"));
    }
    const Snapshot& snapshot = *view->snapshot;
    ToProto(MakeGroupTree(*snapshot.fabric, *snapshot.hierarchy), snapshot, response);
    return absl::OkStatus();
  }

  absl::Status ListEvents(const v1::ListEventsRequest& request, v1::ListEventsResponse& response) {
    RETURN_IF_ERROR(CheckKindPrefix(request.kind_prefix()));
    ASSIGN_OR_RETURN(const EventFilter filter, FromProto(request));
    ASSIGN_OR_RETURN(std::vector<EventRecord> events, manager_->Events(filter));
    const bool has_more = events.size() == filter.limit;
    if (has_more) events.pop_back();
    for (const EventRecord& event : events) ToProto(event, *response.add_events());
    if (has_more) response.set_next_page_token(absl::StrCat(events.back().id));
    return absl::OkStatus();
  }

  grpc::ServerWriteReactor<v1::Event>* WatchEvents(const absl::StatusOr<Peer>&,
                                                   const v1::WatchEventsRequest& request) {
    std::optional<int64_t> after;
    if (request.has_after_id()) after = request.after_id();
    using Streams = PulledStreams<v1::Event>;
    return event_streams_.Open(
        "events", [&](std::function<void()> wake) -> absl::StatusOr<Streams::Source> {
          RETURN_IF_ERROR(CheckKindPrefix(request.kind_prefix()));
          ASSIGN_OR_RETURN(std::unique_ptr<EventWatch> watch,
                           manager_->WatchEvents(FromProto(request), after, std::move(wake)));
          return SourceOf<v1::Event>(
              std::move(watch),
              [](const EventWatch::Event& event, v1::Event& message) { ToProto(*event, message); });
        });
  }

  PulledStreams<v1::Event> event_streams_;
};

std::unique_ptr<Service> MakeFabricService(const ServiceParts& parts) {
  return std::make_unique<FabricService>(parts);
}

}  // namespace coppice
