#include "agents/node/agent_stream.h"

#include <spdlog/spdlog.h>

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr std::chrono::milliseconds kShortestPause{200}, kLongestPause{5'000};
// Where trying again soon cannot help: a daemon of another release, another agent of this host.
constexpr std::chrono::milliseconds kLongPause{30'000};

}  // namespace

// Of one call. Keeps itself until gRPC is done with it; reads are begun in reactions, writes on the
// loop.
class AgentStream::Stream final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::AgentTask> {
 public:
  static std::shared_ptr<Stream> Start(AgentStream* owner) {
    std::shared_ptr<Stream> stream(new Stream(owner));
    stream->self_ = stream;
    stream->context_.set_wait_for_ready(owner->waits_for_daemon_);
    owner->stub_->async()->Connect(&stream->context_, stream.get());
    stream->AddHold();  // for writes
    v1::AgentMessage hello;
    *hello.mutable_hello() = owner->hello_;
    stream->Send(std::move(hello));
    stream->StartRead(&stream->task_);
    stream->StartCall();
    return stream;
  }

  void Send(v1::AgentMessage message) {
    if (is_over_) return;
    unsent_.push_back(std::move(message));
    if (unsent_.size() == 1) StartWrite(&unsent_.front());
  }

  void Abandon() {
    owner_ = nullptr;
    context_.TryCancel();
  }

  void OnReadDone(bool ok) override {
    loop_->Post([self = self_, ok, task = ok ? task_ : v1::AgentTask()] {
      if (!ok) {
        self->Over();
      } else if (self->owner_ != nullptr) {
        self->owner_->OnTask(task);
      }
    });
    if (ok) StartRead(&task_);
  }

  void OnWriteDone(bool ok) override {
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

  void OnDone(const grpc::Status& status) override {
    loop_->Post([self = std::move(self_), status] {
      if (self->owner_ != nullptr) self->owner_->OnEnd(status);
    });
  }

 private:
  explicit Stream(AgentStream* owner)
      : loop_(owner->link_->loop()), token_(owner->link_->token()), owner_(owner) {}

  // Nothing is written any more.
  void Over() {
    if (std::exchange(is_over_, true)) return;
    RemoveHold();
  }

  EventLoop* const loop_;
  const std::shared_ptr<void> token_;  // DaemonLink's
  AgentStream* owner_;                 // null: abandoned
  grpc::ClientContext context_;
  v1::AgentTask task_;
  std::shared_ptr<Stream> self_;         // until OnDone
  std::deque<v1::AgentMessage> unsent_;  // the first is being written
  bool is_over_ = false;
};

AgentStream::AgentStream(DaemonLink* link, v1::AgentHello hello, OnPingPong on_ping_pong,
                         OnStop on_stop)
    : link_(link),
      hello_(std::move(hello)),
      on_ping_pong_(std::move(on_ping_pong)),
      on_stop_(std::move(on_stop)),
      stub_(v1::Agents::NewStub(link->channel())),
      pause_(kShortestPause, kLongestPause, std::hash<std::string>()(hello_.host())) {}

AgentStream::~AgentStream() {
  if (stream_ != nullptr) stream_->Abandon();
  if (is_timed_) link_->loop()->Cancel(timer_);
}

void AgentStream::Begin() {
  is_timed_ = false;
  ++streams_;
  stream_ = Stream::Start(this);
}

void AgentStream::Send(const v1::PingPongResult& result) {
  if (stream_ == nullptr || tasks_.erase(result.id()) == 0) return;
  v1::AgentMessage message;
  *message.mutable_ping_pong() = result;
  stream_->Send(std::move(message));
}

void AgentStream::OnTask(const v1::AgentTask& task) {
  pause_.Reset();
  if (task.has_welcome()) {
    is_welcome_ = true;
    hello_.set_last_database(task.welcome().database());
    last_error_.clear();
    spdlog::info("daemon {} at {} takes this agent for {}", task.welcome().daemon_version(),
                 link_->server(), task.welcome().host());
  } else if (task.has_ping_pong()) {
    tasks_.insert(task.ping_pong().id());
    on_ping_pong_(task.ping_pong());
  } else if (task.has_stop_ping_pong()) {
    tasks_.erase(task.stop_ping_pong());
    on_stop_(task.stop_ping_pong());
  }
}

void AgentStream::OnEnd(const grpc::Status& status) {
  stream_.reset();
  for (const uint64_t id : std::exchange(tasks_, {})) on_stop_(id);
  is_welcome_ = false;
  waits_for_daemon_ = status.error_code() == grpc::StatusCode::UNAVAILABLE;
  const std::string error = status.ok() ? "it ended the call" : status.error_message();
  if (error != last_error_) {
    spdlog::warn("daemon at {}: does not take this agent now: {}; it is tried again",
                 link_->server(), error);
    last_error_ = error;
  }
  const bool is_hopeless = status.error_code() == grpc::StatusCode::UNIMPLEMENTED ||
                           status.error_code() == grpc::StatusCode::ABORTED ||
                           status.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
                           status.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
  is_timed_ = true;
  timer_ = link_->loop()->After(is_hopeless ? kLongPause : pause_.Next(), [this] { Begin(); });
}

}  // namespace coppice
