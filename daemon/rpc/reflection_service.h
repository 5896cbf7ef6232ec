// What the daemon's services look like, for clients that were not built with their files, such as
// grpcurl: of the descriptors that are linked in. For administrators, as every question is answered
// at once and its answer is many times its size.
#ifndef COPPICE_DAEMON_RPC_REFLECTION_SERVICE_H_
#define COPPICE_DAEMON_RPC_REFLECTION_SERVICE_H_

#include <string>
#include <utility>
#include <vector>

#include "daemon/rpc/calls/peer.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

namespace coppice {

// Thread-safe.
class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
 public:
  // `services`: full names, as they are listed with health and itself. `peers` outlives it and
  // every call.
  ReflectionService(Peers* peers, std::vector<std::string> services)
      : peers_(peers), services_(std::move(services)) {}

  grpc::ServerBidiReactor<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* context) override;

 private:
  Peers* const peers_;
  const std::vector<std::string> services_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_REFLECTION_SERVICE_H_
