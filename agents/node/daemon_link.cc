#include "agents/node/daemon_link.h"

#include <random>
#include <utility>

#include "client/connection.h"
#include "client/library/messages.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

// For whom the call is, and that it is so by an agent's word: the daemon heeds it of agents, and of
// administrators (daemon/rpc/calls/peer.h).
constexpr char kUserKey[] = "coppice-user";
constexpr char kByAgentKey[] = "coppice-by-agent";

// A daemon that restarts is back within seconds; hundreds of agents that come back do so within
// a few. gRPC adds a random fifth.
constexpr int kFirstPauseMs = 200, kMaxPauseMs = 5'000;
// A connection whose other end is gone without a word is given up after the two together.
constexpr int kPingIntervalMs = 30'000, kPingTimeoutMs = 10'000;
// An answer must fit into a frame together with the call's number.
constexpr int kMaxAnswerBytes = static_cast<int>(kMaxFrameBytes) - 64;

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstPauseMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxPauseMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingIntervalMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Never a connection that another channel of this process shares, or shared to another.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

}  // namespace

// The last of it, with gRPC or without.
void ForwardedCall::End(const grpc::Status& status) {
  loop_->Post([self = std::move(self_), status] {
    const Events events = std::exchange(self->events_, {});
    if (events.on_end) events.on_end(status);
  });
}

void ForwardedCall::Send(absl::string_view message) {
  if (is_over_) return;
  const grpc::Slice slice(message.data(), message.size());
  unsent_.emplace_back(&slice, 1);
  if (!is_own_stream_) return StartWriteLast(&unsent_.front(), {});
  if (unsent_.size() == 1) StartWrite(&unsent_.front());
}

void ForwardedCall::OnWriteDone(bool ok) {
  if (!is_own_stream_) return;
  loop_->Post([self = self_, ok] {
    self->unsent_.pop_front();
    if (!ok) {
      self->unsent_.clear();
      self->context_.TryCancel();
    } else if (!self->unsent_.empty() && !self->is_over_) {
      self->StartWrite(&self->unsent_.front());
    }
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
  if (!ok && !is_own_stream_) return RemoveHold();
  if (!ok) {
    loop_->Post([self = self_] {
      self->is_over_ = true;
      self->RemoveHold();
    });
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
  const std::string text = TextOf(message);
  if (events_.reads_on) ReadMore();
  on_message(text);
}

void ForwardedCall::OnDone(const grpc::Status& status) { End(status); }

DaemonLink::DaemonLink(EventLoop* loop, std::string server,
                       const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : loop_(loop),
      server_(std::move(server)),
      channel_(MakeChannel(server_, credentials)),
      stub_(channel_),
      hurry_pause_(std::chrono::milliseconds(kFirstPauseMs), std::chrono::milliseconds(kMaxPauseMs),
                   std::random_device()()) {}

std::shared_ptr<ForwardedCall> DaemonLink::Call(const ForwardedCall::Request& request,
                                                ForwardedCall::Events events) {
  std::shared_ptr<ForwardedCall> call(new ForwardedCall(loop_, token_, request.is_own_stream));
  call->self_ = call;
  call->events_ = std::move(events);
  // gRPC ends the process over metadata of other characters.
  if (!request.is_own_stream && !IsWord(request.user)) {
    call->End({grpc::StatusCode::INVALID_ARGUMENT,
               "user: has no name of 1 to 255 printable characters; give the uid in digits"});
    return call;
  }
  call->context_.set_wait_for_ready(request.waits_for_daemon);
  if (!request.is_own_stream) {
    call->context_.AddMetadata(kUserKey, request.user);
    call->context_.AddMetadata(kByAgentKey, "1");
  }
  if (request.timeout.count() > 0) {
    call->context_.set_deadline(std::chrono::system_clock::now() + request.timeout);
  }
  stub_.PrepareBidiStreamingCall(&call->context_, request.method, {}, call.get());
  call->AddHold();  // reads and writes are begun outside of reactions, too
  call->Send(request.message);
  call->StartRead(&call->answer_);
  call->StartCall();
  return call;
}

void DaemonLink::Hurry() {
  if (channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY) {
    hurry_pause_.Reset();
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_hurry_) return;
  next_hurry_ = now + hurry_pause_.Next();
  grpc::experimental::ChannelResetConnectionBackoff(channel_.get());
}

}  // namespace coppice
