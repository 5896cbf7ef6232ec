#include "daemon/service/liveness.h"

#include <grpcpp/grpcpp.h>

#include "absl/time/clock.h"
#include "coppice/v1/fabric.grpc.pb.h"
#include "proto/status_conversion.h"

namespace coppice {

absl::Status AskOneself(const std::string& address, absl::Duration limit) {
  grpc::ChannelArguments arguments;
  // Otherwise gRPC would hand out the connection of the last time, and nobody would see that the
  // daemon accepts no new ones.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1::Fabric::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
  v1::FabricSummary summary;
  const grpc::Status status = stub->GetFabric(&context, v1::GetFabricRequest(), &summary);
  // Without a fabric the answer is UNAVAILABLE, with details that only a living daemon gives.
  const bool is_answer = status.ok() || !status.error_details().empty();
  return is_answer ? absl::OkStatus() : FromGrpcStatus(status);
}

}  // namespace coppice
