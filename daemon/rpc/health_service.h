// Whether the daemon serves, as load balancers and probes ask for it (grpc.health.v1). Not gRPC's
// own service, which would be the only one that passes no admission. All services serve, or none.
// Beside it what tells strangers about the daemon's services: reflection.
#ifndef COPPICE_DAEMON_RPC_HEALTH_SERVICE_H_
#define COPPICE_DAEMON_RPC_HEALTH_SERVICE_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/calls/pulled_stream.h"
#include "daemon/rpc/calls/service.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace coppice {

// Thread-safe; outlives every stream.
class HealthService final : public Service {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // `services`: full names of those that are known. NOT_SERVING at first.
  HealthService(std::vector<std::string> services, Peers* peers, MethodStatistics* statistics);

  void SetServing(bool is_serving);
  // Ends all watches, and later ones at once.
  void CloseStreams() { watches_.Close(); }

 private:
  absl::Status Check(const grpc::health::v1::HealthCheckRequest& request,
                     grpc::health::v1::HealthCheckResponse& response);
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      const grpc::CallbackServerContext& context,
      const grpc::health::v1::HealthCheckRequest& request);
  class Source;

  bool IsKnown(absl::string_view service) const;

  const std::vector<std::string> services_;
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

// What the daemon's services look like, for clients that were not built with their files, such as
// grpcurl: of the descriptors that are linked in. For administrators, as every question is answered
// at once and its answer is many times its size.

// Thread-safe.
class ReflectionService final : public Service {
 public:
  // `services`: full names, as they are listed with health and itself. `peers` outlives it and
  // every call.
  ReflectionService(std::vector<std::string> services, Peers* peers, MethodStatistics* statistics)
      : Service("grpc.reflection.v1alpha.ServerReflection", peers, statistics),
        services_(std::move(services)) {
    Dialogue("ServerReflectionInfo", &ReflectionService::ServerReflectionInfo);
  }

 private:
  grpc::ServerBidiReactor<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>*
  ServerReflectionInfo(const grpc::CallbackServerContext& context);

  const std::vector<std::string> services_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_HEALTH_SERVICE_H_
