// Whether the daemon serves, as load balancers and probes ask for it (grpc.health.v1). Not gRPC's
// own service, which would be the only one that passes no admission. All services serve, or none.
#ifndef COPPICE_DAEMON_RPC_HEALTH_SERVICE_H_
#define COPPICE_DAEMON_RPC_HEALTH_SERVICE_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "daemon/rpc/calls/pulled_stream.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace coppice {

// Thread-safe; outlives every stream.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // `services`: full names of those that are known. NOT_SERVING at first.
  HealthService(std::vector<std::string> services, MethodStatistics* statistics);

  void SetServing(bool is_serving);
  // Ends all watches, and later ones at once.
  void CloseStreams() { watches_.Close(); }

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  class Source;

  bool IsKnown(absl::string_view service) const;

  const std::vector<std::string> services_;
  MethodStatistics::Method* const check_;
  std::mutex mutex_;
  // Guarded by mutex_.
  bool is_serving_ = false;
  uint64_t last_id_ = 0;
  absl::flat_hash_map<uint64_t, std::function<void()>> asleep_;  // watches that have been told
  PulledStreams<grpc::health::v1::HealthCheckResponse> watches_;
};

// Turns the server's health to SERVING when the manager has its first fabric. The manager tells
// nobody that it has one; this asks it, and stops asking once it has.

class Readiness final {
 public:
  // Calls `ready` once, on a thread of its own, within 20 ms of the manager's first fabric.
  Readiness(const Manager* manager, absl::AnyInvocable<void()> ready);
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // Afterwards `ready` is not called any more. Idempotent.
  void Stop();

 private:
  void Watch(const Manager* manager, absl::AnyInvocable<void()> ready);

  absl::Notification stop_;
  std::thread thread_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_HEALTH_SERVICE_H_
