// The Agents service: coppice/v1/agents.proto over the meter and the kept distances. Status codes
// are stated there.
#ifndef COPPICE_DAEMON_RPC_AGENTS_SERVICE_H_
#define COPPICE_DAEMON_RPC_AGENTS_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "coppice/v1/agents.pb.h"
#include "daemon/manager/distances/distance_meter.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/rpc/calls/service.h"

namespace coppice {

// The streams of Agents.Connect: one reactor per agent and no thread. Reads one message, handles
// it, reads the next; what is to be written waits in a short queue.
//
//   hello --meter: Connect--> welcome        meter: send --> queue --> one write at a time
//   results --meter: TakeOutcome-->          meter: end (another agent of the host) --> ABORTED
//
// The agent has gone as soon as its stream has ended, for whatever reason.

class AgentReactor;

// Thread-safe; outlives every stream that it opened.
class AgentStreams final {
 public:
  // `version`: of the daemon, for the welcome. `method` counts the streams.
  AgentStreams(DistanceMeter* meter, std::string version, MethodStatistics::Method* method)
      : meter_(meter), version_(std::move(version)), method_(method) {}

  // A stream of the agent `caller`; ends at once with it if that is an error.
  AgentReactor* Open(const absl::StatusOr<Peer>& caller);
  // Ends all with UNAVAILABLE, and later ones at once.
  void Close();

 private:
  friend class AgentReactor;
  void Remove(uint64_t id);

  DistanceMeter* const meter_;
  const std::string version_;
  MethodStatistics::Method* const method_;
  // std, not absl: ThreadSanitizer does not see through Debian's Abseil.
  std::mutex mutex_;
  // Guarded by mutex_.
  bool closed_ = false;
  uint64_t last_id_ = 0;
  absl::flat_hash_map<uint64_t, std::shared_ptr<AgentReactor>> open_;
};

class AgentReactor final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::AgentTask> {
 public:
  // Tasks that an agent may leave unread: it is given one pair at a time.
  static constexpr size_t kMaxQueued = 16;

  AgentReactor(AgentStreams* streams, uint64_t id, AgentIdentity identity)
      : streams_(streams), id_(id), identity_(std::move(identity)) {}

  void Begin(std::weak_ptr<AgentReactor> self);
  // Queues a task; ends the stream if too many wait.
  void Send(v1::AgentTask task);
  // Ends the call with `status` once; later calls do nothing.
  void End(const absl::Status& status);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  absl::Status Take();
  absl::Status TakeHello();

  AgentStreams* const streams_;
  const uint64_t id_;
  const AgentIdentity identity_;
  std::weak_ptr<AgentReactor> self_;
  v1::AgentMessage message_;  // gRPC's while it reads

  std::mutex mutex_;
  // Guarded by mutex_.
  AgentSession session_ = 0;         // 0: no hello yet
  std::string object_ = "agent";     // for errors
  std::deque<v1::AgentTask> queue_;  // the first is gRPC's while it writes
  bool is_welcomed_ = false;
  bool is_writing_ = false;
  bool ended_ = false;
};

// Thread-safe. The pointers outlive it and every call.
class AgentsService final : public Service {
 public:
  AgentsService(Manager* manager, DistanceMeter* meter, DistanceStore* distance_store,
                WorkerPool* workers, Peers* peers, MethodStatistics* statistics,
                std::string version);

  // Ends every agent's stream and every measurement with UNAVAILABLE, and from now on new ones.
  void CloseStreams();
  size_t agents() const { return meter_->connected(); }
  size_t distances() const { return distance_store_->size(); }

 private:
  grpc::ServerBidiReactor<v1::AgentMessage, v1::AgentTask>* Connect(
      const grpc::CallbackServerContext& context);
  absl::Status ListAgents(const v1::ListAgentsRequest& request, v1::ListAgentsResponse& response);
  grpc::ServerWriteReactor<v1::MeasureDistancesUpdate>* MeasureDistances(
      const grpc::CallbackServerContext& context, const v1::MeasureDistancesRequest& request);
  absl::Status ListDistances(const v1::ListDistancesRequest& request,
                             v1::ListDistancesResponse& response);

  Manager* const manager_;
  DistanceMeter* const meter_;
  DistanceStore* const distance_store_;
  LevelMedianCache medians_;
  WorkerPool* const workers_;
  AgentStreams streams_;
  MethodStatistics::Method* const measure_distances_;  // counts its streams
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_AGENTS_SERVICE_H_
