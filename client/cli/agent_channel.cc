#include "client/cli/agent_channel.h"

#include <grpcpp/generic/async_generic_service.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "client/connection.h"
#include "client/library/agent_socket.h"
#include "client/library/messages.h"
#include "coppice/v1/local.pb.h"

namespace coppice {
namespace {

constexpr char kDefaultAgent[] = "/run/coppice/agent.sock";
// Of calls without a deadline, such as watches.
constexpr std::chrono::hours kForEver{24 * 365};
constexpr uint64_t kOnlyCall = 1;  // of its connection

// One call: reads its request, then a thread of its own speaks to the agent until the end. Deletes
// itself when gRPC is done with it.
class PassedCall final : public grpc::ServerGenericBidiReactor {
 public:
  PassedCall(const std::string* path, const grpc::GenericCallbackServerContext& context)
      : path_(path), method_(context.method()), deadline_(context.deadline()) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::INVALID_ARGUMENT, "a call without a request"});
    std::thread([this] { Finish(Pass()); }).detach();  // the end of it touches nothing of this
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard<std::mutex> lock(mu_);
    is_written_ = true;
    is_cancelled_ |= !ok;
    changed_.notify_all();
  }
  void OnCancel() override {
    const std::lock_guard<std::mutex> lock(mu_);
    is_cancelled_ = true;
    if (socket_ != nullptr) socket_->Shut();
  }
  void OnDone() override { delete this; }

 private:
  grpc::Status Pass();
  grpc::Status PassAnswers(AgentSocket& socket, SteadyTime deadline);
  // False: the call is cancelled.
  bool Write(const std::string& message);
  grpc::Status Lost();
  grpc::Status Late() const {
    return {grpc::StatusCode::DEADLINE_EXCEEDED, "agent at " + *path_ + ": no answer in time"};
  }

  const std::string* const path_;
  const std::string method_;
  const std::chrono::system_clock::time_point deadline_;
  grpc::ByteBuffer request_, answer_;
  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  bool is_cancelled_ = false, is_written_ = false;
  std::shared_ptr<AgentSocket> socket_;
};

grpc::Status PassedCall::Pass() {
  const auto now = std::chrono::system_clock::now();
  const bool is_bounded = deadline_ - now < kForEver;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      is_bounded ? deadline_ - now : std::chrono::system_clock::duration(kForEver));
  const SteadyTime deadline = std::chrono::steady_clock::now() + left;
  std::shared_ptr<AgentSocket> socket;
  if (Outcome outcome = AgentSocket::Connect(*path_, deadline, socket); !outcome.ok()) {
    return {static_cast<grpc::StatusCode>(outcome.code), outcome.message};
  }
  {
    const std::lock_guard<std::mutex> lock(mu_);
    if (is_cancelled_) return grpc::Status::CANCELLED;
    socket_ = socket;
  }
  v1::LocalRequest request;
  request.set_call(kOnlyCall);
  request.set_method(method_);
  request.set_message(TextOf(request_));
  if (is_bounded) {
    request.set_timeout_ms(static_cast<uint32_t>(std::clamp<int64_t>(left.count(), 1, 1 << 30)));
  }
  std::string frame;
  AppendFrame(request.SerializeAsString(), frame);
  if (frame.size() > kMaxFrameBytes) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            method_ + ": a request of " + std::to_string(frame.size()) +
                " bytes is more than the agent takes (64 MiB)"};
  }
  for (std::string_view rest = frame; !rest.empty();) {
    const AgentSocket::Io io = socket->Send(rest);
    if (io == AgentSocket::Io::kLost) return Lost();
    if (io == AgentSocket::Io::kNotNow && !socket->Wait(POLLOUT, deadline)) return Late();
  }
  return PassAnswers(*socket, deadline);
}

grpc::Status PassedCall::PassAnswers(AgentSocket& socket, SteadyTime deadline) {
  for (;;) {
    while (const std::optional<std::string_view> frame = socket.Next()) {
      v1::LocalReply reply;
      if (!reply.ParseFromArray(frame->data(), static_cast<int>(frame->size()))) return Lost();
      if (reply.has_end()) {
        const v1::LocalEnd& end = reply.end();
        return {static_cast<grpc::StatusCode>(end.code()), end.message(), end.details()};
      }
      if (!Write(reply.message())) return grpc::Status::CANCELLED;
    }
    if (socket.is_broken()) return Lost();
    const AgentSocket::Io io = socket.Receive();
    if (io == AgentSocket::Io::kLost) return Lost();
    if (io == AgentSocket::Io::kNotNow && !socket.Wait(POLLIN, deadline)) return Late();
  }
}

bool PassedCall::Write(const std::string& message) {
  const grpc::Slice slice(message);
  answer_ = grpc::ByteBuffer(&slice, 1);
  {
    const std::lock_guard<std::mutex> lock(mu_);
    is_written_ = false;
  }
  StartWrite(&answer_);
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [this] { return is_written_; });
  return !is_cancelled_;
}

grpc::Status PassedCall::Lost() {
  const std::lock_guard<std::mutex> lock(mu_);
  if (is_cancelled_) return grpc::Status::CANCELLED;
  return {grpc::StatusCode::UNAVAILABLE, "agent at " + *path_ + ": it closed the connection"};
}

// Passes on what is called over its channel.
class PassingService final : public grpc::CallbackGenericService {
 public:
  explicit PassingService(std::string socket) : socket_(std::move(socket)) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);  // the agent bounds what it takes
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = server_->InProcessChannel(arguments);
  }
  ~PassingService() override {
    channel_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  grpc::Channel* channel() const { return channel_.get(); }
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new PassedCall(&socket_, *context);
  }

 private:
  const std::string socket_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace

std::string DefaultAgent() {
  const char* const named = std::getenv("COPPICE_AGENT");
  return named != nullptr && *named != '\0' ? named : kDefaultAgent;
}

bool CanConnect(const std::string& path) {
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const int failed = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool can = failed == 0 || errno == EAGAIN;  // its queue is full: somebody is there
  close(fd);
  return can;
}

std::shared_ptr<grpc::Channel> AgentChannel(std::string socket) {
  auto service = std::make_shared<PassingService>(std::move(socket));
  grpc::Channel* const channel = service->channel();
  return std::shared_ptr<grpc::Channel>(std::move(service), channel);
}

}  // namespace coppice
