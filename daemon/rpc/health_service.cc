// Whether the daemon serves, as load balancers and probes ask for it (grpc.health.v1). Not gRPC's
// own service, which would be the only one that passes no admission. All services serve, or none.
// Beside it what tells strangers about the daemon's services: reflection.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>

#include "absl/algorithm/container.h"
#include "daemon/rpc/calls/streams.h"
#include "daemon/rpc/service.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace coppice {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Those that are ours to describe.
constexpr absl::string_view kServices[] = {
    "coppice.v1.Jobs",       "coppice.v1.Trees",  "coppice.v1.Fabric",   "coppice.v1.Mapping",
    "coppice.v1.Placements", "coppice.v1.Agents", "coppice.v1.Switches", "coppice.v1.Admin"};

class Health final : public HealthService {
 public:
  explicit Health(const ServiceParts& parts)
      : HealthService("grpc.health.v1.Health", parts),
        watches_(CountStreams("Watch"), "watch again") {
    Unary("Check", &Health::Check, "health");
    Stream("Watch", &Health::Watch, "health");
  }

  void SetServing() override { Set(HealthCheckResponse::SERVING); }
  void CloseStreams() override {
    Set(HealthCheckResponse::NOT_SERVING);
    watches_.Close();
  }

 private:
  using Status = HealthCheckResponse::ServingStatus;

  // Of one watch: tells each state once.
  class Source final : public MessageSource<HealthCheckResponse> {
   public:
    Source(Health* health, bool is_known) : health_(health), is_known_(is_known) {}

    absl::StatusOr<bool> Next(HealthCheckResponse& message) override {
      std::lock_guard lock(health_->mutex_);
      const Status now = is_known_ ? health_->status_ : HealthCheckResponse::SERVICE_UNKNOWN;
      if (told_ == now) return false;
      told_ = now;
      message.set_status(now);
      return true;
    }

   private:
    Health* const health_;
    const bool is_known_;
    std::optional<Status> told_;
  };

  static bool IsKnown(const std::string& service) {
    return service.empty() || absl::c_linear_search(kServices, service);
  }

  void Set(Status status) {
    {
      std::lock_guard lock(mutex_);
      if (is_over_) return;
      is_over_ = status == HealthCheckResponse::NOT_SERVING;
      if (std::exchange(status_, status) == status) return;
    }
    watches_.PumpAll();
  }

  absl::Status Check(const HealthCheckRequest& request, HealthCheckResponse& response) {
    if (!IsKnown(request.service())) {
      return absl::NotFoundError(absl::StrCat("service: ", request.service(), " is none here"));
    }
    std::lock_guard lock(mutex_);
    response.set_status(status_);
    return absl::OkStatus();
  }

  grpc::ServerWriteReactor<HealthCheckResponse>* Watch(const absl::StatusOr<Peer>&,
                                                       const HealthCheckRequest& request) {
    return watches_.Open("health", [&](const std::function<void()>&) {
      return std::make_unique<Source>(this, IsKnown(request.service()));
    });
  }

  std::mutex mutex_;
  // Guarded by mutex_.
  Status status_ = HealthCheckResponse::NOT_SERVING;
  bool is_over_ = false;                        // it will not serve again
  PulledStreams<HealthCheckResponse> watches_;  // last: its sources use the above
};

namespace reflection = grpc::reflection::v1alpha;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

// Dependencies first, each once.
void AddFile(const FileDescriptor& file, std::set<std::string>& added,
             reflection::FileDescriptorResponse& response) {
  if (!added.insert(file.name()).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddFile(*file.dependency(i), added, response);
  }
  google::protobuf::FileDescriptorProto described;
  file.CopyTo(&described);
  response.add_file_descriptor_proto(described.SerializeAsString());
}

const FileDescriptor* FileOf(const reflection::ServerReflectionRequest& request) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  switch (request.message_request_case()) {
    case reflection::ServerReflectionRequest::kFileByFilename:
      return pool.FindFileByName(request.file_by_filename());
    case reflection::ServerReflectionRequest::kFileContainingSymbol:
      return pool.FindFileContainingSymbol(request.file_containing_symbol());
    default:
      return nullptr;
  }
}

absl::Status Describe(const reflection::ServerReflectionRequest& request,
                      reflection::ServerReflectionResponse& response) {
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  if (request.has_list_services()) {
    reflection::ListServiceResponse& list = *response.mutable_list_services_response();
    for (const absl::string_view name : kServices) list.add_service()->set_name(std::string(name));
    list.add_service()->set_name("grpc.health.v1.Health");
    list.add_service()->set_name("grpc.reflection.v1alpha.ServerReflection");
  } else if (const FileDescriptor* const file = FileOf(request); file != nullptr) {
    std::set<std::string> added;
    AddFile(*file, added, *response.mutable_file_descriptor_response());
  } else {
    reflection::ErrorResponse& error = *response.mutable_error_response();
    error.set_error_code(static_cast<int>(grpc::StatusCode::NOT_FOUND));
    error.set_error_message("no such file, symbol or extension; list the services for those");
  }
  return absl::OkStatus();
}

// What the daemon's services look like, for clients that were not built with their files, such as
// grpcurl: of the descriptors that are linked in. For administrators, as every question is answered
// at once and its answer is many times its size.
class ReflectionService final : public Service {
 public:
  explicit ReflectionService(const ServiceParts& parts)
      : Service("grpc.reflection.v1alpha.ServerReflection", parts) {
    Dialogue("ServerReflectionInfo", &ReflectionService::ServerReflectionInfo, "reflection");
  }

 private:
  using Stream =
      AnswerStream<reflection::ServerReflectionRequest, reflection::ServerReflectionResponse>;

  grpc::ServerBidiReactor<reflection::ServerReflectionRequest,
                          reflection::ServerReflectionResponse>*
  ServerReflectionInfo(const absl::StatusOr<Peer>& peer) {
    const auto stream = std::make_shared<Stream>(&streams_, "reflection", Describe);
    return streams_.Open(stream, peer.status(), [&] { return stream->Read(); });
  }

  MethodStatistics::Method untold_{"", /*is_stream=*/true};  // no user's work
  OpenStreams streams_{&untold_};
};

}  // namespace

std::unique_ptr<HealthService> MakeHealthService(const ServiceParts& parts) {
  return std::make_unique<Health>(parts);
}

std::unique_ptr<Service> MakeReflectionService(const ServiceParts& parts) {
  return std::make_unique<ReflectionService>(parts);
}

}  // namespace coppice
