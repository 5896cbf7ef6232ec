// The Fabric service: coppice/v1/fabric.proto over the manager. Status codes are stated there.
#ifndef COPPICE_DAEMON_RPC_FABRIC_SERVICE_H_
#define COPPICE_DAEMON_RPC_FABRIC_SERVICE_H_

#include <memory>

#include "coppice/v1/fabric.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/calls/service.h"
#include "daemon/rpc/watch_stream.h"

namespace coppice {

// Thread-safe. The pointers outlive it and every call. Listings go by position in one version of
// the fabric: when it moves between two pages the next page is ABORTED.
class FabricService final : public Service {
 public:
  FabricService(Manager* manager, WorkerPool* workers, Peers* peers, MethodStatistics* statistics);

  // Ends the streams of events.
  void CloseStreams() { event_streams_.Close(); }
  size_t event_watchers() const { return event_streams_.size(); }

 private:
  absl::Status GetFabric(const v1::GetFabricRequest& request, v1::FabricSummary& response);
  absl::Status ListSwitches(const v1::ListSwitchesRequest& request,
                            v1::ListSwitchesResponse& response);
  absl::Status ListLinks(const v1::ListLinksRequest& request, v1::ListLinksResponse& response);
  absl::Status ListNodes(const v1::ListNodesRequest& request, v1::ListNodesResponse& response);
  absl::Status GetRoute(const v1::GetRouteRequest& request, v1::Route& response);
  absl::Status Sweep(const v1::SweepRequest& request, v1::FabricSummary& response);
  absl::Status GetTypeTable(const v1::GetTypeTableRequest& request, v1::TypeTable& response);
  void Calibrate(UnaryCall* call, const v1::CalibrateRequest& request,
                 v1::CalibrateResponse& response);
  void ResetCalibration(UnaryCall* call, const v1::ResetCalibrationRequest& request,
                        v1::ResetCalibrationResponse& response);
  absl::Status ListEvents(const v1::ListEventsRequest& request, v1::ListEventsResponse& response);
  absl::Status ListPortCounters(const v1::ListPortCountersRequest& request,
                                v1::ListPortCountersResponse& response);
  absl::Status GetPortHistory(const v1::GetPortHistoryRequest& request, v1::PortHistory& response);
  absl::Status ExportTopology(const v1::ExportTopologyRequest& request,
                              v1::ExportTopologyResponse& response);
  grpc::ServerWriteReactor<v1::Event>* WatchEvents(const grpc::CallbackServerContext& context,
                                                   const v1::WatchEventsRequest& request);
  // UNAVAILABLE before the first successful sweep.
  absl::StatusOr<std::shared_ptr<const FabricView>> View() const;

  Manager* const manager_;
  EventStreams event_streams_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_FABRIC_SERVICE_H_
