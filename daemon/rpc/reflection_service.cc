#include "daemon/rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>

#include "daemon/rpc/calls/error_details.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "proto/request_check.h"

namespace coppice {
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
      for (const char* const name : {grpc::health::v1::Health::service_full_name(),
                                     reflection::ServerReflection::service_full_name()}) {
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
ReflectionService::ServerReflectionInfo(grpc::CallbackServerContext* context) {
  const absl::StatusOr<Peer> peer = peers_->Authorise(
      *context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "reflection");
  return new ReflectionStream(&services_, peer.status());
}

}  // namespace coppice
