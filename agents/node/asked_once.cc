#include "agents/node/asked_once.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status_conversion.h"

namespace coppice {

std::shared_ptr<ForwardedCall> AskOnce(
    DaemonLink& link, const DaemonQuestion& question, std::weak_ptr<bool> alive,
    std::function<void(const grpc::Status& status, const std::string& message)> answer) {
  ForwardedCall::Request call;
  call.method = question.method;
  call.user = question.user;
  call.message = question.request;
  call.timeout = question.timeout;
  const auto message = std::make_shared<std::string>();
  const auto handle = std::make_shared<std::weak_ptr<ForwardedCall>>();
  ForwardedCall::Events events;
  events.on_message = [message, handle](const std::string& text) {
    *message = text;
    if (const auto open = handle->lock()) open->ReadMore();
  };
  events.on_end = [message, answer = std::move(answer),
                   alive = std::move(alive)](const grpc::Status& status) {
    if (!alive.expired()) answer(status, *message);
  };
  std::shared_ptr<ForwardedCall> started = link.Call(call, std::move(events));
  *handle = started;
  return started;
}

absl::StatusOr<v1::KeepAliveResponse> RenewedJob(const std::string& job, const grpc::Status& status,
                                                 const std::string& message) {
  v1::KeepAliveResponse response;
  if (message.empty() || !response.ParseFromString(message)) {
    const absl::Status failed = FromGrpcStatus(status);
    return failed.ok() ? absl::UnavailableError("the daemon gave no answer; call again") : failed;
  }
  if (response.state() == v1::JOB_STATE_ACTIVE) return response;
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job, ": it is over, or never was; register another"));
}

}  // namespace coppice
