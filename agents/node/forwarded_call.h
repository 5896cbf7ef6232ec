// One call that the agent carries to the daemon for somebody: a request as bytes, answers as bytes,
// read one at a time as fast as whoever asked takes them.
//
// Belongs to the loop; gRPC's threads only post to it. It keeps itself until gRPC is done with it,
// so its owner may let go at any time.
#ifndef COPPICE_AGENTS_NODE_FORWARDED_CALL_H_
#define COPPICE_AGENTS_NODE_FORWARDED_CALL_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "agents/node/event_loop.h"

namespace coppice {

class ForwardedCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  struct Request {
    std::string method;
    std::string user;  // in whose name: a uid in digits, or a login name; never empty
    absl::string_view message;
    std::chrono::milliseconds timeout{0};  // 0: none
  };
  struct Events {
    // The next message is read after ReadMore().
    std::function<void(const std::string& message)> on_message;
    std::function<void(const grpc::Status& status)> on_end;  // last; also after Cancel
  };

  // `token` is held until gRPC is done with the call. INVALID_ARGUMENT is its end if `user` is
  // nobody who can be named in metadata: without a name the call would be the agent's own.
  static std::shared_ptr<ForwardedCall> Start(grpc::GenericStub& stub, EventLoop* loop,
                                              std::shared_ptr<void> token, const Request& request,
                                              Events events);

  void ReadMore();
  // Ends it at the daemon; its end is still told.
  void Cancel();
  // No more events; ends it at the daemon.
  void Abandon();

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  ForwardedCall(EventLoop* loop, std::shared_ptr<void> token)
      : loop_(loop), token_(std::move(token)) {}

  void End(const grpc::Status& status);
  void TakeMessage(const grpc::ByteBuffer& message);

  EventLoop* const loop_;
  const std::shared_ptr<void> token_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, answer_;
  std::shared_ptr<ForwardedCall> self_;  // until OnDone
  Events events_;
  bool is_cancelled_ = false;
  bool is_reading_ = true;  // a read is under way, or will never be again
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_FORWARDED_CALL_H_
