#include "agents/node/forwarded_call.h"

#include <algorithm>
#include <utility>

#include "client/byte_buffer_text.h"

namespace coppice {
namespace {

// For whom the call is, and that it is so by an agent's word: the daemon heeds it of agents, and of
// administrators (daemon/rpc/peer.h).
constexpr char kUserKey[] = "coppice-user";
constexpr char kByAgentKey[] = "coppice-by-agent";
constexpr size_t kLongestUser = 255;

// gRPC ends the process over metadata of other characters.
bool CanBeNamed(absl::string_view user) {
  return !user.empty() && user.size() <= kLongestUser &&
         std::all_of(user.begin(), user.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

std::shared_ptr<ForwardedCall> ForwardedCall::Start(grpc::GenericStub& stub, EventLoop* loop,
                                                    std::shared_ptr<void> token,
                                                    const Request& request, Events events) {
  std::shared_ptr<ForwardedCall> call(new ForwardedCall(loop, std::move(token)));
  call->self_ = call;
  call->events_ = std::move(events);
  if (!CanBeNamed(request.user)) {
    call->End({grpc::StatusCode::INVALID_ARGUMENT,
               "user: has no name of 1 to 255 printable characters; give the uid in digits"});
    return call;
  }
  const grpc::Slice slice(request.message.data(), request.message.size());
  call->request_ = grpc::ByteBuffer(&slice, 1);
  call->context_.AddMetadata(kUserKey, request.user);
  call->context_.AddMetadata(kByAgentKey, "1");
  if (request.timeout.count() > 0) {
    call->context_.set_deadline(std::chrono::system_clock::now() + request.timeout);
  }
  stub.PrepareBidiStreamingCall(&call->context_, request.method, {}, call.get());
  call->AddHold();  // reads are begun outside of reactions, too
  call->StartWriteLast(&call->request_, {});
  call->StartRead(&call->answer_);
  call->StartCall();
  return call;
}

// The last of it, with gRPC or without.
void ForwardedCall::End(const grpc::Status& status) {
  loop_->Post([self = std::move(self_), status] {
    const Events events = std::exchange(self->events_, {});
    if (events.on_end) events.on_end(status);
  });
}

void ForwardedCall::ReadMore() {
  if (is_reading_) return;
  is_reading_ = true;
  StartRead(&answer_);
}

void ForwardedCall::Cancel() {
  if (is_cancelled_) return;
  is_cancelled_ = true;
  context_.TryCancel();
  ReadMore();  // until it fails
}

void ForwardedCall::Abandon() {
  events_ = {};
  Cancel();
}

void ForwardedCall::OnReadDone(bool ok) {
  if (!ok) {
    RemoveHold();
    return;
  }
  loop_->Post([self = self_] {
    self->is_reading_ = false;
    self->TakeMessage(self->answer_);
  });
}

void ForwardedCall::TakeMessage(const grpc::ByteBuffer& message) {
  if (is_cancelled_ || !events_.on_message) {
    ReadMore();
    return;
  }
  // May be abandoned by what it calls.
  const auto on_message = events_.on_message;
  on_message(TextOf(message));
}

void ForwardedCall::OnDone(const grpc::Status& status) { End(status); }

}  // namespace coppice
