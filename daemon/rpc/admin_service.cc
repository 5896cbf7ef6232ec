#include "daemon/rpc/admin_service.h"

#include "daemon/rpc/status_report.h"
#include "daemon/rpc/unary.h"

namespace coppice {
namespace {

constexpr char kObject[] = "configuration";

}  // namespace

grpc::ServerUnaryReactor* AdminService::GetStatus(grpc::CallbackServerContext*,
                                                  const v1::GetStatusRequest*,
                                                  v1::DaemonStatus* response) {
  return AnswerNow(get_status_, "daemon", [&] {
    ToProto(numbers_(), *response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::Reload(grpc::CallbackServerContext* context,
                                               const v1::ReloadRequest*,
                                               v1::ReloadResponse* response) {
  auto* const reactor = new UnaryCall(reload_method_);
  if (const absl::Status allowed = peers_->MayAdminister(*context, "a reload"); !allowed.ok()) {
    return Finish(reactor, allowed, kObject);
  }
  if (reload_ == nullptr) {
    return Finish(reactor, absl::FailedPreconditionError("this server has no configuration file"),
                  kObject);
  }
  return RunLater(workers_, reactor, kObject, [this, reactor, response] {
    const absl::StatusOr<ReloadOutcome> outcome = reload_();
    if (outcome.ok()) {
      for (const std::string& key : outcome->changed) response->add_changed(key);
      for (const std::string& key : outcome->needs_restart) response->add_needs_restart(key);
    }
    Finish(reactor, outcome.status(), kObject);
  });
}

}  // namespace coppice
