// The Fabric service: coppice/v1/fabric.proto over the manager. Status codes are stated there.
#ifndef COPPICE_DAEMON_RPC_FABRIC_SERVICE_H_
#define COPPICE_DAEMON_RPC_FABRIC_SERVICE_H_

#include <memory>

#include "coppice/v1/fabric.grpc.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "daemon/rpc/calls/peer.h"
#include "daemon/rpc/calls/worker_pool.h"
#include "daemon/rpc/watch_stream.h"

namespace coppice {

// Thread-safe. The pointers outlive it and every call. Listings go by position in one version of
// the fabric: when it moves between two pages the next page is ABORTED.
class FabricService final : public v1::Fabric::CallbackService {
 public:
  FabricService(Manager* manager, WorkerPool* workers, Peers* peers, MethodStatistics* statistics)
      : manager_(manager),
        workers_(workers),
        peers_(peers),
        event_streams_(statistics->AddStream("Fabric.WatchEvents"),
                       "connect again and watch after the last event that came"),
        get_fabric_(statistics->AddUnary("Fabric.GetFabric")),
        list_switches_(statistics->AddUnary("Fabric.ListSwitches")),
        list_links_(statistics->AddUnary("Fabric.ListLinks")),
        list_nodes_(statistics->AddUnary("Fabric.ListNodes")),
        get_route_(statistics->AddUnary("Fabric.GetRoute")),
        sweep_(statistics->AddUnary("Fabric.Sweep")),
        get_type_table_(statistics->AddUnary("Fabric.GetTypeTable")),
        calibrate_(statistics->AddUnary("Fabric.Calibrate")),
        reset_calibration_(statistics->AddUnary("Fabric.ResetCalibration")),
        list_events_(statistics->AddUnary("Fabric.ListEvents")),
        list_port_counters_(statistics->AddUnary("Fabric.ListPortCounters")),
        get_port_history_(statistics->AddUnary("Fabric.GetPortHistory")),
        export_topology_(statistics->AddUnary("Fabric.ExportTopology")) {}

  grpc::ServerUnaryReactor* GetFabric(grpc::CallbackServerContext* context,
                                      const v1::GetFabricRequest* request,
                                      v1::FabricSummary* response) override;
  grpc::ServerUnaryReactor* ListSwitches(grpc::CallbackServerContext* context,
                                         const v1::ListSwitchesRequest* request,
                                         v1::ListSwitchesResponse* response) override;
  grpc::ServerUnaryReactor* ListLinks(grpc::CallbackServerContext* context,
                                      const v1::ListLinksRequest* request,
                                      v1::ListLinksResponse* response) override;
  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext* context,
                                      const v1::ListNodesRequest* request,
                                      v1::ListNodesResponse* response) override;
  grpc::ServerUnaryReactor* GetRoute(grpc::CallbackServerContext* context,
                                     const v1::GetRouteRequest* request,
                                     v1::Route* response) override;
  grpc::ServerUnaryReactor* Sweep(grpc::CallbackServerContext* context,
                                  const v1::SweepRequest* request,
                                  v1::FabricSummary* response) override;
  grpc::ServerUnaryReactor* GetTypeTable(grpc::CallbackServerContext* context,
                                         const v1::GetTypeTableRequest* request,
                                         v1::TypeTable* response) override;
  grpc::ServerUnaryReactor* Calibrate(grpc::CallbackServerContext* context,
                                      const v1::CalibrateRequest* request,
                                      v1::CalibrateResponse* response) override;
  grpc::ServerUnaryReactor* ResetCalibration(grpc::CallbackServerContext* context,
                                             const v1::ResetCalibrationRequest* request,
                                             v1::ResetCalibrationResponse* response) override;
  grpc::ServerUnaryReactor* ListEvents(grpc::CallbackServerContext* context,
                                       const v1::ListEventsRequest* request,
                                       v1::ListEventsResponse* response) override;
  grpc::ServerUnaryReactor* ListPortCounters(grpc::CallbackServerContext* context,
                                             const v1::ListPortCountersRequest* request,
                                             v1::ListPortCountersResponse* response) override;
  grpc::ServerUnaryReactor* GetPortHistory(grpc::CallbackServerContext* context,
                                           const v1::GetPortHistoryRequest* request,
                                           v1::PortHistory* response) override;
  grpc::ServerUnaryReactor* ExportTopology(grpc::CallbackServerContext* context,
                                           const v1::ExportTopologyRequest* request,
                                           v1::ExportTopologyResponse* response) override;
  grpc::ServerWriteReactor<v1::Event>* WatchEvents(grpc::CallbackServerContext* context,
                                                   const v1::WatchEventsRequest* request) override;

  // Ends the streams of events.
  void CloseStreams() { event_streams_.Close(); }
  size_t event_watchers() const { return event_streams_.size(); }

 private:
  // UNAVAILABLE before the first successful sweep.
  absl::StatusOr<std::shared_ptr<const FabricView>> View() const;
  absl::Status Switches(const v1::ListSwitchesRequest& request, v1::ListSwitchesResponse& response);
  absl::Status Links(const v1::ListLinksRequest& request, v1::ListLinksResponse& response);
  absl::Status Nodes(const v1::ListNodesRequest& request, v1::ListNodesResponse& response);
  absl::Status Route(const v1::GetRouteRequest& request, v1::Route& response);
  absl::Status Table(const v1::GetTypeTableRequest& request, v1::TypeTable& response);
  absl::Status Events(const v1::ListEventsRequest& request, v1::ListEventsResponse& response);
  absl::Status PortCounts(const v1::ListPortCountersRequest& request,
                          v1::ListPortCountersResponse& response);
  absl::Status History(const v1::GetPortHistoryRequest& request, v1::PortHistory& response);
  absl::Status Export(const v1::ExportTopologyRequest& request,
                      v1::ExportTopologyResponse& response);

  Manager* const manager_;
  WorkerPool* const workers_;
  Peers* const peers_;
  EventStreams event_streams_;
  // What counts the calls.
  MethodStatistics::Method* const get_fabric_;
  MethodStatistics::Method* const list_switches_;
  MethodStatistics::Method* const list_links_;
  MethodStatistics::Method* const list_nodes_;
  MethodStatistics::Method* const get_route_;
  MethodStatistics::Method* const sweep_;
  MethodStatistics::Method* const get_type_table_;
  MethodStatistics::Method* const calibrate_;
  MethodStatistics::Method* const reset_calibration_;
  MethodStatistics::Method* const list_events_;
  MethodStatistics::Method* const list_port_counters_;
  MethodStatistics::Method* const get_port_history_;
  MethodStatistics::Method* const export_topology_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_FABRIC_SERVICE_H_
