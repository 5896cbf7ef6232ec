// The Agents service: coppice/v1/agents.proto over the meter and the kept distances. Status codes
// are stated there.
#ifndef COPPICE_DAEMON_RPC_AGENTS_SERVICE_H_
#define COPPICE_DAEMON_RPC_AGENTS_SERVICE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "coppice/v1/agents.grpc.pb.h"
#include "daemon/manager/distances/distance_listing.h"
#include "daemon/manager/distances/distance_meter.h"
#include "daemon/manager/distances/distance_shelf.h"
#include "daemon/rpc/agent_stream.h"
#include "daemon/rpc/method_statistics.h"
#include "daemon/rpc/peer.h"
#include "daemon/rpc/worker_pool.h"

namespace coppice {

// Thread-safe. The pointers outlive it and every call.
class AgentsService final : public v1::Agents::CallbackService {
 public:
  AgentsService(Manager* manager, DistanceMeter* meter, DistanceShelf* shelf, WorkerPool* workers,
                Peers* peers, MethodStatistics* statistics, std::string version)
      : manager_(manager),
        meter_(meter),
        shelf_(shelf),
        workers_(workers),
        peers_(peers),
        streams_(meter, std::move(version), statistics->AddStream("Agents.Connect")),
        list_agents_(statistics->AddUnary("Agents.ListAgents")),
        measure_distances_(statistics->AddStream("Agents.MeasureDistances")),
        list_distances_(statistics->AddUnary("Agents.ListDistances")) {}

  // Ends every agent's stream and every measurement with UNAVAILABLE, and from now on new ones.
  void CloseStreams();
  size_t agents() const { return meter_->connected(); }
  size_t distances() const { return shelf_->size(); }

  grpc::ServerBidiReactor<v1::AgentMessage, v1::AgentTask>* Connect(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListAgents(grpc::CallbackServerContext* context,
                                       const v1::ListAgentsRequest* request,
                                       v1::ListAgentsResponse* response) override;
  grpc::ServerWriteReactor<v1::MeasureDistancesUpdate>* MeasureDistances(
      grpc::CallbackServerContext* context, const v1::MeasureDistancesRequest* request) override;
  grpc::ServerUnaryReactor* ListDistances(grpc::CallbackServerContext* context,
                                          const v1::ListDistancesRequest* request,
                                          v1::ListDistancesResponse* response) override;

 private:
  absl::Status List(const v1::ListDistancesRequest& request, v1::ListDistancesResponse& response);

  Manager* const manager_;
  DistanceMeter* const meter_;
  DistanceShelf* const shelf_;
  LevelMedianCache medians_;
  WorkerPool* const workers_;
  Peers* const peers_;
  AgentStreams streams_;
  // What counts the calls.
  MethodStatistics::Method* const list_agents_;
  MethodStatistics::Method* const measure_distances_;
  MethodStatistics::Method* const list_distances_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_AGENTS_SERVICE_H_
