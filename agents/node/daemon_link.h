// The agent's one connection to the daemon. gRPC makes it, keeps it, and makes it again after a
// pause that grows up to a bound; calls meanwhile fail at once with UNAVAILABLE.
#ifndef COPPICE_AGENTS_NODE_DAEMON_LINK_H_
#define COPPICE_AGENTS_NODE_DAEMON_LINK_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "agents/node/event_loop.h"
#include "client/library/retry_pause.h"

namespace coppice {

// One call to the daemon: a request as bytes, answers as bytes, read one at a time as fast as
// whoever asked takes them. In somebody's name, or the agent's own, which may send more.
//
// Belongs to the loop; gRPC's threads only post to it. It keeps itself until gRPC is done with it,
// so its owner may let go at any time.
class ForwardedCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  struct Request {
    std::string method;
    std::string user;  // in whose name: a uid in digits, or a login name; never empty
    absl::string_view message;
    std::chrono::milliseconds timeout{0};  // 0: none
    bool is_own_stream = false;            // of the agent itself, in nobody's name
    bool waits_for_daemon = false;         // for a connection
  };
  struct Events {
    std::function<void(const std::string& message)> on_message;
    std::function<void(const grpc::Status& status)> on_end;  // last; also after Cancel
    bool reads_on = false;  // else the next message is read after ReadMore()
  };

  void ReadMore();
  // Another message of an own stream.
  void Send(absl::string_view message);
  // Ends it at the daemon; its end is still told.
  void Cancel();
  // No more events; ends it at the daemon.
  void Abandon();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  ForwardedCall(EventLoop* loop, std::shared_ptr<void> token, bool is_own_stream)
      : loop_(loop), token_(std::move(token)), is_own_stream_(is_own_stream) {}

  void End(const grpc::Status& status);
  void TakeMessage(const grpc::ByteBuffer& message);

  friend class DaemonLink;

  EventLoop* const loop_;
  const std::shared_ptr<void> token_;  // held until gRPC is done with the call
  const bool is_own_stream_;
  grpc::ClientContext context_;
  std::deque<grpc::ByteBuffer> unsent_;  // the first is being written
  grpc::ByteBuffer answer_;
  std::shared_ptr<ForwardedCall> self_;  // until OnDone
  Events events_;
  bool is_cancelled_ = false;
  bool is_over_ = false;    // nothing is written any more
  bool is_reading_ = true;  // a read is under way, or will never be again
};

// Belongs to the loop.
class DaemonLink final {
 public:
  // `server`: "unix:PATH" or "HOST:PORT" (client/connection.h). The loop outlives it.
  DaemonLink(EventLoop* loop, std::string server,
             const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  // INVALID_ARGUMENT is its end if `user` is nobody who can be named in metadata: without a name
  // the call would be the agent's own.
  std::shared_ptr<ForwardedCall> Call(const ForwardedCall::Request& request,
                                      ForwardedCall::Events events);
  // No call uses the channel or posts to the loop any more.
  bool IsIdle() const { return token_.use_count() == 1; }
  // Now; begins to connect if nobody has.
  bool IsConnected() { return channel_->GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY; }

  // A connection that is away is tried now, not when gRPC's own pause is over; unless it was
  // hurried a moment ago: of that there are longer and longer pauses, too, however many ask.
  void Hurry();

  const std::string& server() const { return server_; }
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
