// The agent's one connection to the daemon. gRPC makes it, keeps it, and makes it again after a
// pause that grows up to a bound; calls meanwhile fail at once with UNAVAILABLE.
#ifndef COPPICE_AGENTS_NODE_DAEMON_LINK_H_
#define COPPICE_AGENTS_NODE_DAEMON_LINK_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "agents/node/event_loop.h"
#include "agents/node/forwarded_call.h"
#include "client/library/retry_pause.h"

namespace coppice {

// Belongs to the loop.
class DaemonLink final {
 public:
  // `server`: "unix:PATH" or "HOST:PORT" (client/connection.h). The loop outlives it.
  DaemonLink(EventLoop* loop, std::string server,
             const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  std::shared_ptr<ForwardedCall> Call(const ForwardedCall::Request& request,
                                      ForwardedCall::Events events) {
    return ForwardedCall::Start(stub_, loop_, token_, request, std::move(events));
  }
  // Held by whatever uses the channel and posts to the loop.
  const std::shared_ptr<void>& token() const { return token_; }
  // Nothing does any more.
  bool IsIdle() const { return token_.use_count() == 1; }
  // Now; begins to connect if nobody has.
  bool IsConnected() { return channel_->GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY; }

  // A connection that is away is tried now, not when gRPC's own pause is over; unless it was
  // hurried a moment ago: of that there are longer and longer pauses, too, however many ask.
  void Hurry();

  const std::string& server() const { return server_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  EventLoop* loop() const { return loop_; }

 private:
  EventLoop* const loop_;
  const std::string server_;
  const std::shared_ptr<void> token_ = std::make_shared<int>();
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  RetryPause hurry_pause_;
  std::chrono::steady_clock::time_point next_hurry_;  // not before
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_DAEMON_LINK_H_
