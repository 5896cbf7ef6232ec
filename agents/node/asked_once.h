// A question of the agent's own to the daemon, in a user's name: one request, and the last of the
// answers.
#ifndef COPPICE_AGENTS_NODE_ASKED_ONCE_H_
#define COPPICE_AGENTS_NODE_ASKED_ONCE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agents/node/daemon_link.h"
#include "coppice/v1/jobs.pb.h"

namespace coppice {

inline constexpr char kKeepAlive[] = "/coppice.v1.Jobs/KeepAlive";

struct DaemonQuestion {
  const char* method;
  std::string user;
  std::string request;
  std::chrono::milliseconds timeout;
};

// `answer` is called once, on the loop, with the last message ("": none), unless the call is
// abandoned or `alive` has expired.
std::shared_ptr<ForwardedCall> AskOnce(
    DaemonLink& link, const DaemonQuestion& question, std::weak_ptr<bool> alive,
    std::function<void(const grpc::Status& status, const std::string& message)> answer);

// What the daemon answered to Jobs.KeepAlive of a job, which asks whether it is the user's to
// change and still lives. FAILED_PRECONDITION: it does not. Else the call's error; UNAVAILABLE: no
// answer.
absl::StatusOr<v1::KeepAliveResponse> RenewedJob(const std::string& job, const grpc::Status& status,
                                                 const std::string& message);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_ASKED_ONCE_H_
