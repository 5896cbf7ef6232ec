// The Fabric service: coppice/v1/fabric.proto over the manager. Status codes are stated there.

#include <map>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/group_tree.h"
#include "daemon/manager/event_kinds.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/inventory.h"
#include "daemon/manager/switches/switches.h"
#include "daemon/rpc/calls/streams.h"
#include "daemon/rpc/conversion/fabric_conversion.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/trees_conversion.h"
#include "daemon/rpc/service.h"
#include "daemon/tree/closed_form.h"

namespace coppice {
namespace {

constexpr absl::string_view kSwitchPrefix = "switch:";

void ToProto(const Fabric& fabric, VertexIndex v, PortNum port, v1::LinkEnd& end) {
  end.set_guid(ToString(NodeGuid(fabric, v)));
  end.set_name(NodeName(fabric, v));
  end.set_port(port.value());
  end.set_is_switch(fabric.IsSwitch(v));
}

// Each partition of the port once, in the order of its table.
void ToProto(const Partitions& partitions, Guid port,
             google::protobuf::RepeatedPtrField<v1::PartitionKey>& keys) {
  absl::flat_hash_set<PartitionNum> listed;
  for (const uint16_t key : partitions.TableOf(port)) {
    const std::optional<PartitionNum> partition = PartitionOf(key);
    if (!partition || !listed.insert(*partition).second) continue;
    v1::PartitionKey& message = *keys.Add();
    message.set_partition(partition->value());
    message.set_membership(partitions.Of(port, *partition) == Membership::kFull
                               ? v1::PARTITION_MEMBERSHIP_FULL
                               : v1::PARTITION_MEMBERSHIP_LIMITED);
    message.set_index(*partitions.IndexOf(port, *partition));
  }
}

void ToProto(const Snapshot& snapshot, v1::ListPartitionsResponse& response) {
  const Fabric& fabric = *snapshot.fabric;
  std::map<uint32_t, v1::Partition> all;
  google::protobuf::RepeatedPtrField<v1::PartitionKey> keys;
  const auto count = [&](Guid port, bool is_switch) {
    keys.Clear();
    ToProto(*snapshot.partitions, port, keys);
    for (const v1::PartitionKey& key : keys) {
      v1::Partition& one = all[key.partition()];
      one.set_partition(key.partition());
      const bool is_full = key.membership() == v1::PARTITION_MEMBERSHIP_FULL;
      if (is_switch) {
        is_full ? one.set_full_switches(one.full_switches() + 1)
                : one.set_limited_switches(one.limited_switches() + 1);
      } else {
        is_full ? one.set_full_endpoints(one.full_endpoints() + 1)
                : one.set_limited_endpoints(one.limited_endpoints() + 1);
      }
    }
  };
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    count(fabric.endpoint(EndpointIndex(e)).port_guid, false);
  }
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    count(fabric.switch_info(SwitchIndex(s)).guid, true);
  }
  for (const auto& [number, one] : all) *response.add_partitions() = one;
}

// `trees`: who takes entries of the switch.
void ToProto(const Fabric& fabric, const SwitchEntries& entries, const std::vector<TreeId>& trees,
             v1::Switch& message) {
  const SwitchInfo& info = fabric.switch_info(entries.index);
  message.set_guid(ToString(info.guid));
  message.set_description(info.description);
  if (info.lid != Lid(0)) message.set_lid(info.lid.value());
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
  // That came with the fabric, from a file; counters that are read say more.
  const ChannelIndex ab(2 * link.value());
  if (const float load = snapshot.utilisation(ab); load > 0) message.set_utilisation_ab(load);
  if (const float load = snapshot.utilisation(Fabric::Reverse(ab)); load > 0) {
    message.set_utilisation_ba(load);
  }
}

void ToProto(const Fabric& fabric, EndpointIndex endpoint, v1::Node& message) {
  const EndpointInfo& info = fabric.endpoint(endpoint);
  const AdapterInfo& adapter = fabric.adapter(info.adapter);
  message.set_host(std::string(fabric.host_name(adapter.host)));
  message.set_endpoint(EndpointName(fabric, endpoint));
  message.set_adapter_guid(ToString(adapter.guid));
  message.set_port(info.port.value());
  message.set_port_guid(ToString(info.port_guid));
  if (info.lid != Lid(0)) message.set_lid(info.lid.value());
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

// INVALID_ARGUMENT: not a GUID; NOT_FOUND names it.
absl::StatusOr<SwitchIndex> FindSwitch(const Fabric& fabric, absl::string_view guid_text) {
  ASSIGN_OR_RETURN(const Guid guid, ParseGuid(guid_text));
  const std::optional<SwitchIndex> found = fabric.FindSwitch(guid);
  if (found) return *found;
  return absl::NotFoundError(absl::StrCat(
      "switch ", ToString(guid), " is not in the fabric: list the switches for those that are"));
}

// The end of a route as users name it: an endpoint (ResolveEndpoint) or "switch:GUID".
absl::StatusOr<VertexIndex> ResolveRouteEnd(const Fabric& fabric, absl::string_view name) {
  if (!absl::StartsWith(name, kSwitchPrefix)) {
    ASSIGN_OR_RETURN(const EndpointIndex endpoint, ResolveEndpoint(fabric, name));
    return fabric.Vertex(endpoint);
  }
  ASSIGN_OR_RETURN(const SwitchIndex found, FindSwitch(fabric, name.substr(kSwitchPrefix.size())));
  return fabric.Vertex(found);
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

void ToProto(const LatencySample& sample, v1::LatencySample& message) {
  message.set_line(sample.line);
  message.set_operation(ToProto(sample.operation));
  message.set_bytes(sample.bytes);
  message.set_members(sample.members);
  message.set_type(ToProto(sample.type));
  message.set_width(sample.width);
  message.set_us(sample.us);
}

void ToProto(const FittedConstant& constant, v1::FittedConstant& message) {
  message.set_name(constant.name);
  message.set_value(constant.value);
  message.set_standard_error(constant.standard_error);
  message.set_state(std::string(ToString(constant.state)));
}

void RowToProto(const TypeChoice& choice, v1::TypeTableRow& row) {
  row.set_operation(ToProto(choice.operation));
  row.set_min_bytes(choice.min_bytes);
  row.set_max_bytes(choice.max_bytes);
  row.set_type(ToProto(choice.type));
  row.set_width(choice.widths.best);
  row.set_min_width(choice.widths.min);
  row.set_max_width(choice.widths.max);
  row.set_type_i_us(choice.type_i_us);
  row.set_type_ii_us(choice.type_ii_us);
}

CalibrateArgs ReadCalibration(const v1::CalibrateRequest& request) {
  CalibrateArgs args;
  args.samples_csv = request.samples_csv();
  args.origin = request.origin();
  args.fixed.assign(request.fixed().begin(), request.fixed().end());
  args.scale = request.relative() ? ResidualScale::kRelative : ResidualScale::kAbsolute;
  args.name = request.name();
  args.apply = request.apply();
  return args;
}

void ToProto(const CalibrationView& view, v1::CalibrateResponse& response) {
  const Calibration& fit = view.fit;
  response.set_profile_toml(ProfileToToml(fit.profile));
  for (const FittedConstant& constant : fit.constants) {
    ToProto(constant, *response.add_constants());
  }
  response.set_samples(static_cast<uint32_t>(view.samples.size()));
  response.set_rms_us(fit.rms_us);
  response.set_worst_us(fit.worst_us);
  response.set_worst_sample(static_cast<uint32_t>(fit.worst_sample));
  response.set_r_squared(fit.r_squared);
  response.mutable_residuals_us()->Add(fit.residuals_us.begin(), fit.residuals_us.end());
  for (const size_t outlier : fit.outliers) {
    response.add_outliers(static_cast<uint32_t>(outlier));
  }
  for (const std::string& note : fit.notes) response.add_notes(note);
  response.set_applied(view.applied);
  for (const LatencySample& sample : view.samples) ToProto(sample, *response.add_measured());
}

// As coppice.v1.TypeTable: one row for each operation and size class, for communicators of
// `members` ranks. O(rows * NIC degree). INVALID_ARGUMENT: fewer than two members. Trees are not
// chosen by this table: a concrete communicator is evaluated exactly (daemon/tree/planner.h).
absl::Status TypeTableToProto(const CostProfile& profile, uint32_t members,
                              v1::TypeTable& message) {
  ASSIGN_OR_RETURN(const std::vector<TypeChoice> table, StaticTypeTable(profile, members));
  message.set_profile(profile.name);
  message.set_members(members);
  for (const TypeChoice& choice : table) RowToProto(choice, *message.add_rows());
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
    Unary("ListPartitions", &S::ListPartitions, "fabric", {.pool = workers_});
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
    if (view != nullptr) return view;
    return absl::UnavailableError(
        "fabric: none is known yet, the first sweep has not succeeded; call again, or see the "
        "daemon's log for why the sweep fails");
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
    absl::flat_hash_map<Guid, SwitchView> agents;
    for (SwitchView& one : manager_->switches().List(Guid(0), SIZE_MAX)) {
      agents.emplace(one.hello.guid, std::move(one));
    }
    return Page(request, fabric, fabric.switch_count(), response, response.mutable_switches(),
                [&](uint32_t i, v1::Switch& message) {
                  const Guid guid = fabric.switch_info(SwitchIndex(i)).guid;
                  ToProto(fabric, entries[i], manager_->TreesOfSwitch(guid), message);
                  ToProto(*view->snapshot->partitions, guid, *message.mutable_partitions());
                  const auto agent = agents.find(guid);
                  if (agent != agents.end()) ToProto(agent->second, *message.mutable_agent());
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
                [&](uint32_t i, v1::Node& message) {
                  const EndpointIndex endpoint(i);
                  ToProto(fabric, endpoint, message);
                  ToProto(*view->snapshot->partitions, fabric.endpoint(endpoint).port_guid,
                          *message.mutable_partitions());
                });
  }

  absl::Status ListPartitions(const v1::ListPartitionsRequest&,
                              v1::ListPartitionsResponse& response) {
    ASSIGN_OR_RETURN(const auto view, View());
    ToProto(*view->snapshot, response);
    return absl::OkStatus();
  }

  absl::Status GetRoute(const v1::GetRouteRequest& request, v1::Route& response) {
    ASSIGN_OR_RETURN(const auto view, View());
    const Snapshot& snapshot = *view->snapshot;
    ASSIGN_OR_RETURN(const VertexIndex from, ResolveRouteEnd(*snapshot.fabric, request.from()));
    ASSIGN_OR_RETURN(const VertexIndex to, ResolveRouteEnd(*snapshot.fabric, request.to()));
    std::vector<ChannelIndex> path;
    RETURN_IF_ERROR(snapshot.routes->Append(from, to, path));
    ToProto(snapshot, path, response);
    for (size_t i = 0; i < path.size(); ++i) {
      const LinkMeasure measure = manager_->Measure(*snapshot.fabric, Fabric::link_of(path[i]));
      const bool is_ab = path[i].value() % 2 == 0;
      response.mutable_hops(static_cast<int>(i))
          ->set_promised(is_ab ? measure.ab.promised : measure.ba.promised);
    }
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
    if (!request.apply()) call->ChangesNothing();
    manager_->Calibrate(
        ReadCalibration(request),
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
    ASSIGN_OR_RETURN(const std::vector<EventRecord> events, manager_->Events(filter));
    response.set_next_page_token(FillPage(
        events, filter.limit - 1, response.mutable_events(),
        [](const EventRecord& event, v1::Event& message) { ToProto(event, message); },
        [](const EventRecord& last) { return absl::StrCat(last.id); }));
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
