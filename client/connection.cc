#include "client/connection.h"

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
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/library/agent_socket.h"
#include "client/library/messages.h"
#include "client/munge_channel.h"
#include "coppice/v1/local.pb.h"
#include "proto/munge/credential.h"
#include "proto/text/limits.h"

namespace coppice {
namespace {

constexpr char kUserKey[] = "coppice-user";  // for whom a call is; the daemon's convention

std::string FromEnvironment(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

absl::Status ReadInto(const std::string& path, std::string& text) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path);
  std::ostringstream read;
  if (!file || !(read << file.rdbuf())) {
    return absl::NotFoundError(absl::StrCat("TLS file ", path, ": cannot be read, or is empty"));
  }
  text = read.str();
  return absl::OkStatus();
}

constexpr char kDefaultAgent[] = "/run/coppice/agent.sock";
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
  grpc::Status Pass() {
    const auto now = std::chrono::system_clock::now();
    // Watches have none.
    const std::chrono::system_clock::duration longest = absl::ToChronoHours(kMaxPeriod);
    const bool is_bounded = deadline_ - now < longest;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(is_bounded ? deadline_ - now : longest);
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

  grpc::Status PassAnswers(AgentSocket& socket, SteadyTime deadline) {
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

  // False: the call is cancelled.
  bool Write(const std::string& message) {
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

  grpc::Status Lost() {
    const std::lock_guard<std::mutex> lock(mu_);
    if (is_cancelled_) return grpc::Status::CANCELLED;
    return {grpc::StatusCode::UNAVAILABLE, "agent at " + *path_ + ": it closed the connection"};
  }

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

std::string DefaultServer() { return FromEnvironment("COPPICE_SERVER", kDefaultServer); }

TlsOptions DefaultTls() {
  return {FromEnvironment("COPPICE_TLS_CA", ""), FromEnvironment("COPPICE_TLS_CERT", ""),
          FromEnvironment("COPPICE_TLS_KEY", ""), FromEnvironment("COPPICE_MUNGE", ""),
          FromEnvironment("COPPICE_MUNGE_REALM", "")};
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const std::string& server,
                                                                         const TlsOptions& tls) {
  // The environment may be set for a daemon elsewhere; a socket needs none of it.
  if (tls.empty() || absl::StartsWith(server, "unix:")) return grpc::InsecureChannelCredentials();
  if (tls.ca.empty()) {
    return absl::InvalidArgumentError(
        "TLS: give the authority of the daemon's certificate, too: --tls-ca FILE");
  }
  if (tls.cert.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(
        "TLS: a certificate and its key go together: --tls-cert FILE --tls-key FILE");
  }
  grpc::SslCredentialsOptions options;
  for (const auto& [path, text] :
       {std::pair(&tls.ca, &options.pem_root_certs), std::pair(&tls.cert, &options.pem_cert_chain),
        std::pair(&tls.key, &options.pem_private_key)}) {
    if (absl::Status status = ReadInto(*path, *text); !status.ok()) return status;
  }
  if (tls.cert.empty() && !tls.munge.empty()) {
    return MungeCredentials(options.pem_root_certs, {tls.munge, tls.munge_realm});
  }
  return grpc::SslCredentials(options);
}

absl::Status CheckServer(absl::string_view server) {
  const size_t colon = server.rfind(':');
  uint32_t port = 0;
  const bool is_socket = absl::StartsWith(server, "unix:") && server.size() > 5;
  const bool is_tcp = colon != absl::string_view::npos && colon > 0 &&
                      absl::SimpleAtoi(server.substr(colon + 1), &port) && port > 0 &&
                      port <= 0xffff && !absl::StrContains(server, "/");
  if (is_socket || is_tcp) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("server \"", server, "\": give unix:PATH or HOST:PORT"));
}

std::shared_ptr<grpc::Channel> ChannelTo(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  // The full view of a tree of 40,960 ranks has no bound here.
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

Connection::Connection(std::string server, absl::Duration deadline,
                       const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : Connection(server, deadline, ChannelTo(server, credentials)) {}

Connection::Connection(std::string server, absl::Duration deadline,
                       const std::shared_ptr<grpc::Channel>& channel)
    : server_(std::move(server)),
      deadline_(deadline),
      stubs_(v1::Admin::NewStub(channel), v1::Agents::NewStub(channel),
             v1::Fabric::NewStub(channel), v1::Jobs::NewStub(channel),
             v1::Mapping::NewStub(channel), v1::Placements::NewStub(channel),
             v1::Switches::NewStub(channel), v1::Trees::NewStub(channel)) {}

void Connection::Begin(grpc::ClientContext& context) const {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::microseconds(absl::ToInt64Microseconds(deadline_)));
  NameUser(context);
  if (on_wait_) on_wait_(true);
}

absl::StatusOr<v1::KeepAliveResponse> Connection::KeepAlive(const std::string& job_id) {
  grpc::ClientContext context;
  Begin(context);
  const auto stream = Of<JobsStub>().KeepAlive(&context);  // waits for the connection
  v1::KeepAliveRequest request;
  request.set_id(job_id);
  v1::KeepAliveResponse response;
  const bool answered = stream->Write(request) && stream->Read(&response);
  stream->WritesDone();
  const grpc::Status status = stream->Finish();
  if (on_wait_) on_wait_(false);
  if (!status.ok()) return Explain(status);
  if (!answered) return absl::UnavailableError(absl::StrCat("no answer from ", server_));
  return response;
}

void Connection::NameUser(grpc::ClientContext& context) const {
  if (!user_.empty()) context.AddMetadata(kUserKey, user_);
}

absl::Status Connection::Explain(const grpc::Status& status) const {
  const absl::Status converted = FromGrpcStatus(status);
  if (converted.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(absl::StrCat("no answer from ", server_, " within ",
                                                    absl::FormatDuration(deadline_),
                                                    "; allow more time, or see the daemon's log"));
  }
  if (converted.code() != absl::StatusCode::kUnavailable || !status.error_details().empty()) {
    return converted;
  }
  // Behind what gRPC says before it.
  if (const size_t munge = converted.message().find(kMungeFailure); munge != std::string::npos) {
    return absl::UnavailableError(converted.message().substr(munge));
  }
  return absl::UnavailableError(absl::StrCat("no answer from ", server_, ": ", converted.message(),
                                             " (is coppiced running there?)"));
}

std::string DefaultAgent() { return FromEnvironment("COPPICE_AGENT", kDefaultAgent); }

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
