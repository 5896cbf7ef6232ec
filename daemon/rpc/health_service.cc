#include "daemon/rpc/health_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/request_check.h"

namespace coppice {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Of one watch: tells each state once.
class HealthService::Source final : public MessageSource<HealthCheckResponse> {
 public:
  Source(HealthService* health, bool is_known, std::function<void()> wake)
      : health_(health), is_known_(is_known), wake_(std::move(wake)) {
    std::lock_guard lock(health_->mutex_);
    id_ = ++health_->last_id_;
  }
  ~Source() override {
    std::lock_guard lock(health_->mutex_);
    health_->asleep_.erase(id_);
  }

  absl::StatusOr<bool> Next(HealthCheckResponse& message) override {
    std::lock_guard lock(health_->mutex_);
    const Status now = !is_known_             ? HealthCheckResponse::SERVICE_UNKNOWN
                       : health_->is_serving_ ? HealthCheckResponse::SERVING
                                              : HealthCheckResponse::NOT_SERVING;
    if (told_ == now) {
      health_->asleep_[id_] = wake_;
      return false;
    }
    told_ = now;
    message.set_status(now);
    return true;
  }

 private:
  HealthService* const health_;
  const bool is_known_;
  const std::function<void()> wake_;
  uint64_t id_ = 0;
  std::optional<Status> told_;
};

HealthService::HealthService(std::vector<std::string> services, Peers* peers,
                             MethodStatistics* statistics)
    : Service("grpc.health.v1.Health", peers, statistics),
      services_(std::move(services)),
      watches_(statistics->AddStream("Health.Watch"), "watch again") {
  Unary("Check", &HealthService::Check, "health");
  Stream("Watch", &HealthService::Watch);
}

bool HealthService::IsKnown(absl::string_view service) const {
  return service.empty() ||
         std::find(services_.begin(), services_.end(), service) != services_.end();
}

void HealthService::SetServing(bool is_serving) {
  absl::flat_hash_map<uint64_t, std::function<void()>> woken;
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(is_serving_, is_serving) == is_serving) return;
    woken = std::exchange(asleep_, {});
  }
  for (const auto& [id, wake] : woken) wake();
}

absl::Status HealthService::Check(const HealthCheckRequest& request,
                                  HealthCheckResponse& response) {
  if (!IsKnown(request.service())) {
    return absl::NotFoundError(absl::StrCat("service: ", request.service(), " is none here"));
  }
  std::lock_guard lock(mutex_);
  response.set_status(is_serving_ ? HealthCheckResponse::SERVING
                                  : HealthCheckResponse::NOT_SERVING);
  return absl::OkStatus();
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    const grpc::CallbackServerContext&, const HealthCheckRequest& request) {
  return watches_.Open("health", [&](std::function<void()> wake) {
    return std::make_unique<Source>(this, IsKnown(request.service()), std::move(wake));
  });
}

namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(20);

}  // namespace

Readiness::Readiness(const Manager* manager, absl::AnyInvocable<void()> ready)
    : thread_([this, manager, ready = std::move(ready)]() mutable {
        Watch(manager, std::move(ready));
      }) {}

Readiness::~Readiness() { Stop(); }

void Readiness::Stop() {
  if (!stop_.HasBeenNotified()) stop_.Notify();
  if (thread_.joinable()) thread_.join();
}

void Readiness::Watch(const Manager* manager, absl::AnyInvocable<void()> ready) {
  while (manager->fabric() == nullptr) {
    if (stop_.WaitForNotificationWithTimeout(kPeriod)) return;
  }
  ready();
}

namespace {

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

// Reads a question, answers it, reads the next. Deletes itself when the call is done.
class ReflectionStream final
    : public grpc::ServerBidiReactor<reflection::ServerReflectionRequest,
                                     reflection::ServerReflectionResponse> {
 public:
  ReflectionStream(const std::vector<std::string>* services, const absl::Status& allowed)
      : services_(services) {
    if (allowed.ok()) {
      StartRead(&request_);
    } else {
      Finish(ToWire(allowed, "reflection"));
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(ToWire(TakeRefusal(), "reflection"));  // OK: it has asked its last
    Answer();
    request_ = {};  // the next may be long in coming
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    response_ = {};
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  void Answer() {
    response_.Clear();
    response_.set_valid_host(request_.host());
    *response_.mutable_original_request() = request_;
    if (request_.has_list_services()) {
      reflection::ListServiceResponse& list = *response_.mutable_list_services_response();
      for (const std::string& name : *services_) list.add_service()->set_name(name);
      for (const char* const name :
           {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}) {
        list.add_service()->set_name(name);
      }
    } else if (const FileDescriptor* const file = FileOf(request_); file != nullptr) {
      std::set<std::string> added;
      AddFile(*file, added, *response_.mutable_file_descriptor_response());
    } else {
      reflection::ErrorResponse& error = *response_.mutable_error_response();
      error.set_error_code(static_cast<int>(grpc::StatusCode::NOT_FOUND));
      error.set_error_message("no such file, symbol or extension; list the services for those");
    }
  }

  const std::vector<std::string>* const services_;
  reflection::ServerReflectionRequest request_;
  reflection::ServerReflectionResponse response_;
};

}  // namespace

grpc::ServerBidiReactor<reflection::ServerReflectionRequest, reflection::ServerReflectionResponse>*
ReflectionService::ServerReflectionInfo(const grpc::CallbackServerContext& context) {
  const absl::StatusOr<Peer> peer = peers_->Authorise(
      context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "reflection");
  return new ReflectionStream(&services_, peer.status());
}

}  // namespace coppice
