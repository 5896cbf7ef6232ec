#include "agents/node/local_server.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/status_conversion.h"

namespace coppice {
namespace {

// The allow-list: methods of the daemon that a process of the node may call through the agent. What
// users may do and what everybody may read; nothing that administers the daemon. Of a stream of
// requests (KeepAlive) it passes one.
constexpr struct {
  absl::string_view service, methods;
} kAllowedMethods[] = {
    {"/coppice.v1.Admin/", "GetQuota GetStatus ListAccounts"},
    {"/coppice.v1.Agents/", "ListAgents ListDistances"},
    {"/coppice.v1.Fabric/",
     "ExportTopology GetFabric GetPortHistory GetRoute GetTypeTable ListEvents "
     "ListLinks ListNodes ListPartitions ListPortCounters ListSwitches WatchEvents"},
    {"/coppice.v1.Jobs/", "EndJob GetJob KeepAlive ListJobs RegisterJob"},
    {"/coppice.v1.Mapping/",
     "DeletePattern EvaluateMapping GetMappingProblem GetOrder GetPattern "
     "ListAlgorithms ListPatterns MapRanks PutOrder PutPattern"},
    {"/coppice.v1.Placements/",
     "AdvisePlacement BatchCreatePlacements CreatePlacement GetNodeDistances "
     "GetPlacement ListPlacements ReleasePlacement RenewPlacement StartPlacement"},
    {"/coppice.v1.Trees/",
     "AdviseTree BatchCreateTrees CreateTree GetTree ListTrees ReleaseTree "
     "WatchTrees"},
};

bool IsAllowed(absl::string_view method) {
  for (const auto& [service, methods] : kAllowedMethods) {
    if (!absl::ConsumePrefix(&method, service)) continue;
    const std::vector<absl::string_view> names = absl::StrSplit(methods, ' ');
    return absl::c_linear_search(names, method);
  }
  return false;
}

constexpr size_t kReadBytes = 64 << 10;
// Streams pause above this much unwritten output, and requests are not read.
constexpr size_t kHighOutput = size_t{1} << 20;
// Of one connection; each may hold one answer.
constexpr size_t kMaxCalls = 256;
// Answers that were on their way when output got high; more are not taken.
constexpr size_t kMaxOutput = 3 * kMaxFrameBytes;
// Memory of output is given back when it was larger.
constexpr size_t kKeptOutput = size_t{1} << 20;

constexpr char kGetAgent[] = "/coppice.v1.Local/GetAgent";
constexpr char kHoldJob[] = "/coppice.v1.Local/HoldJob";

v1::LocalReply EndOf(uint64_t id, const grpc::Status& status) {
  v1::LocalReply reply;
  reply.set_call(id);
  v1::LocalEnd& end = *reply.mutable_end();
  end.set_code(static_cast<uint32_t>(status.error_code()));
  end.set_message(status.error_message());
  end.set_details(status.error_details());
  return reply;
}

}  // namespace

LocalConnection::LocalConnection(OwnedFd fd, LocalCaller caller, const LocalParts* parts,
                                 std::function<void()> on_closed)
    : fd_(std::move(fd)),
      caller_(std::move(caller)),
      parts_(parts),
      on_closed_(std::move(on_closed)),
      interest_(EPOLLIN) {
  parts_->loop->Watch(fd_.get(), interest_, [this](uint32_t events) { OnReady(events); });
}

LocalConnection::~LocalConnection() {
  if (!is_closed_) parts_->loop->Forget(fd_.get());
  for (const auto& [id, call] : calls_) Drop(call);
  parts_->limits->Change(caller_.uid, told_bytes_, 0);
  parts_->limits->Disconnect(caller_.uid);
}

void LocalConnection::Close() {
  if (is_closed_) return;
  is_closed_ = true;
  parts_->loop->Forget(fd_.get());
  on_closed_();
}

void LocalConnection::OnReady(uint32_t events) {
  if ((events & EPOLLOUT) != 0) Write();
  if (is_closed_) return;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) Read();
  if (!is_closed_) Account();
}

void LocalConnection::Read() {
  char bytes[kReadBytes];
  const ssize_t count = recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (count <= 0) return Close();
  if (is_refused_) return;
  frames_->Append(std::string_view(bytes, static_cast<size_t>(count)));
  TakeFrames();
}

void LocalConnection::Account() {
  const size_t before =
      std::exchange(told_bytes_, frames_->buffered() + request_bytes_ + Unwritten());
  if (parts_->limits->Change(caller_.uid, before, told_bytes_) || is_refusing_) return;
  RefuseWith({grpc::StatusCode::RESOURCE_EXHAUSTED,
              absl::StrCat("connection to the agent: the processes of user ", caller_.user,
                           " have more bytes under way than the agent holds for a user; it is "
                           "closed. Ask for less at a time")});
}

void LocalConnection::TakeFrames() {
  while (!is_closed_ && !is_refused_) {
    const std::optional<std::string_view> frame = frames_->Next();
    if (!frame) break;
    v1::LocalRequest request;
    if (!request.ParseFromArray(frame->data(), static_cast<int>(frame->size()))) {
      return Refuse("the frame holds no LocalRequest");
    }
    Take(request);
  }
  if (frames_->is_broken()) {
    Refuse(absl::StrCat("a frame has at most ", kMaxFrameBytes, " bytes"));
  }
}

void LocalConnection::Refuse(absl::string_view why) {
  RefuseWith({grpc::StatusCode::INVALID_ARGUMENT,
              absl::StrCat("connection to the agent: ", why,
                           "; it is closed. Is this libcoppice of the agent's release?")});
}

void LocalConnection::RefuseWith(const grpc::Status& status) {
  if (is_closed_ || std::exchange(is_refusing_, true)) return;
  End(0, status);
  is_refused_ = true;
  for (const auto& [id, call] : calls_) Drop(call);
  calls_.clear();
  request_bytes_ = 0;
  frames_.emplace();
  if (!is_closed_ && Unwritten() == 0) Close();
}

void LocalConnection::Take(const v1::LocalRequest& request) {
  const auto open = calls_.find(request.call());
  if (request.cancel()) {
    if (open != calls_.end() && open->second.forwarded != nullptr) open->second.forwarded->Cancel();
  } else if (open != calls_.end()) {
    Refuse(absl::StrCat("call ", request.call(), " is still open"));
  } else if (request.method() == kGetAgent) {
    Reply(request.call(), parts_->describe().SerializeAsString());
    End(request.call(), grpc::Status::OK);
  } else if (request.method() != kHoldJob && !IsAllowed(request.method())) {
    End(request.call(), {grpc::StatusCode::UNIMPLEMENTED,
                         absl::StrCat("method ", request.method(),
                                      ": the agent does not pass it on; ask the daemon itself")});
  } else if (calls_.size() >= kMaxCalls) {
    End(request.call(),
        {grpc::StatusCode::RESOURCE_EXHAUSTED,
         absl::StrCat("this connection has ", kMaxCalls, " calls open; wait for some to end")});
  } else if (!parts_->limits->MayBeginCall(caller_.uid)) {
    End(request.call(),
        {grpc::StatusCode::RESOURCE_EXHAUSTED,
         absl::StrCat("the node's processes, or those of user ", caller_.user,
                      ", have too many calls in flight at the agent; wait for some to end")});
  } else if (request.method() == kHoldJob) {
    Hold(request);
  } else {
    Forward(request);
  }
}

LocalConnection::OpenCall& LocalConnection::Open(const v1::LocalRequest& request) {
  OpenCall& call = calls_[request.call()];
  call.bytes = request.message().size();
  request_bytes_ += call.bytes;
  parts_->limits->BeginCall(caller_.uid);
  return call;
}

bool LocalConnection::Over(uint64_t id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return false;
  request_bytes_ -= found->second.bytes;
  calls_.erase(found);
  parts_->limits->EndCall(caller_.uid);
  return true;
}

void LocalConnection::Forward(const v1::LocalRequest& request) {
  const uint64_t id = request.call();
  ForwardedCall::Request forwarded;
  forwarded.method = request.method();
  forwarded.user = caller_.user;
  forwarded.message = request.message();
  forwarded.timeout = std::chrono::milliseconds(request.timeout_ms());
  ForwardedCall::Events events;
  events.on_message = [this, id](const std::string& message) { OnMessage(id, message); };
  events.on_end = [this, id](const grpc::Status& status) {
    if (Over(id)) End(id, status);
  };
  Open(request).forwarded = parts_->link->Call(forwarded, std::move(events));
}

void LocalConnection::Hold(const v1::LocalRequest& request) {
  v1::HoldJobRequest hold;
  if (!hold.ParseFromString(request.message())) {
    return End(request.call(), {grpc::StatusCode::INVALID_ARGUMENT, "not a HoldJobRequest"});
  }
  Open(request);
  const auto done = [this, id = request.call(),
                     alive = std::weak_ptr<bool>(alive_)](const absl::Status& status) {
    if (alive.expired() || !Over(id)) return;
    if (status.ok()) Reply(id, v1::HoldJobResponse().SerializeAsString());
    End(id, ToGrpcStatus(status));
  };
  parts_->keeper->Hold(caller_, hold, done);
}

void LocalConnection::Drop(const OpenCall& call) {
  if (call.forwarded != nullptr) call.forwarded->Abandon();
  parts_->limits->EndCall(caller_.uid);
}

void LocalConnection::OnMessage(uint64_t id, const std::string& message) {
  if (Unwritten() + message.size() > kMaxOutput) {
    const auto call = calls_.find(id);
    call->second.forwarded->Abandon();
    Over(id);
    return End(id, {grpc::StatusCode::RESOURCE_EXHAUSTED,
                    "the answers to this process wait to be read; read them, and ask again"});
  }
  Reply(id, message);
  const auto found = calls_.find(id);
  if (is_closed_ || found == calls_.end()) return;
  OpenCall& call = found->second;
  call.is_waiting = Unwritten() > kHighOutput;
  if (!call.is_waiting) call.forwarded->ReadMore();
}

void LocalConnection::Reply(uint64_t id, const std::string& message) {
  v1::LocalReply reply;
  reply.set_call(id);
  reply.set_message(message);
  Send(reply);
}

void LocalConnection::End(uint64_t id, const grpc::Status& status) { Send(EndOf(id, status)); }

void LocalConnection::Send(const v1::LocalReply& reply) {
  if (is_closed_ || is_refused_) return;
  AppendFrame(reply.SerializeAsString(), output_);
  Write();
  if (!is_closed_) Account();
}

void LocalConnection::Write() {
  while (Unwritten() > 0) {
    const ssize_t count =
        send(fd_.get(), output_.data() + written_, Unwritten(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      written_ += static_cast<size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      return Close();
    }
  }
  if (Unwritten() == 0) {
    output_.clear();
    written_ = 0;
    if (output_.capacity() > kKeptOutput) std::string().swap(output_);
  } else if (written_ > output_.size() / 2) {
    output_.erase(0, written_);
    written_ = 0;
  }
  if (is_refused_ && Unwritten() == 0) return Close();
  ResumeCalls();
  UpdateInterest();
}

void LocalConnection::ResumeCalls() {
  if (Unwritten() > kHighOutput) return;
  for (auto& [id, call] : calls_) {
    if (std::exchange(call.is_waiting, false)) call.forwarded->ReadMore();
  }
}

void LocalConnection::UpdateInterest() {
  const uint32_t interest = (Unwritten() > 0 ? uint32_t{EPOLLOUT} : 0u) |
                            (Unwritten() > kHighOutput ? 0u : uint32_t{EPOLLIN});
  if (interest == interest_) return;
  interest_ = interest;
  parts_->loop->Change(fd_.get(), interest);
}

namespace {

// All ranks of a large node may connect in the same moment.
constexpr int kBacklog = 4096;
// Of one kind of trouble, in the log.
constexpr std::chrono::seconds kSayEvery{10};
// Between two tries to accept when the process has no descriptor left.
constexpr std::chrono::milliseconds kPause{100};

absl::Status CannotListen(const std::string& path, int error) {
  return absl::UnavailableError(absl::StrCat("socket ", path, ": ", std::strerror(error)));
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(
        absl::StrCat("socket \"", path, "\": a path of 1 to 107 characters is needed"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// True: a socket that nobody listens at is in the way.
absl::StatusOr<bool> IsLeftover(const std::string& path) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  const OwnedFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.get() < 0) return CannotListen(path, errno);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&*address);
  const int error = connect(probe.get(), generic, sizeof *address) == 0 ? 0 : errno;
  if (error == 0 || error == EAGAIN) {
    return absl::FailedPreconditionError(
        absl::StrCat("socket ", path, ": another agent listens there; stop it, or use --socket"));
  }
  struct stat info {};
  if (error != ECONNREFUSED || lstat(path.c_str(), &info) != 0) return false;
  if (S_ISSOCK(info.st_mode)) return true;
  return absl::UnavailableError(
      absl::StrCat("socket ", path, ": a file that is no socket is there; move it away"));
}

}  // namespace

absl::Status LocalServer::Check(const std::string& path) {
  const absl::StatusOr<bool> is_leftover = IsLeftover(path);
  if (!is_leftover.ok()) return is_leftover.status();
  return access(std::filesystem::absolute(path).parent_path().c_str(), W_OK) == 0
             ? absl::OkStatus()
             : CannotListen(path, errno);
}

absl::StatusOr<std::unique_ptr<LocalServer>> LocalServer::Listen(const std::string& path,
                                                                 mode_t mode,
                                                                 const LocalParts* parts) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  const absl::StatusOr<bool> is_leftover = IsLeftover(path);
  if (!is_leftover.ok()) return is_leftover.status();
  if (*is_leftover) unlink(path.c_str());
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      chmod(path.c_str(), mode) != 0 || listen(fd.get(), kBacklog) != 0) {
    return CannotListen(path, errno);
  }
  return std::unique_ptr<LocalServer>(new LocalServer(std::move(fd), path, parts));
}

LocalServer::LocalServer(OwnedFd fd, std::string path, const LocalParts* parts)
    : fd_(std::move(fd)), path_(std::move(path)), parts_(parts) {
  parts_->loop->Watch(fd_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
}

LocalServer::~LocalServer() {
  // The file stays: who finds nobody behind it is refused, as without it, and a next agent that
  // has already put its own there keeps it.
  parts_->loop->Forget(fd_.get());
}

void LocalServer::Accept() {
  for (;;) {
    OwnedFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.get() >= 0) {
      Take(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      Say(absl::StrCat(std::strerror(errno), "; raise LimitNOFILE"));
      parts_->loop->Change(fd_.get(), 0);
      parts_->loop->After(kPause, [this, alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) parts_->loop->Change(fd_.get(), EPOLLIN);
      });
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

// Once in a while: who makes the trouble does not fill the log.
void LocalServer::Say(const std::string& trouble) {
  const auto now = std::chrono::steady_clock::now();
  if (said_ && now - *said_ < kSayEvery) return;
  said_ = now;
  spdlog::warn("socket {}: {}", path_, trouble);
}

void LocalServer::Refuse(const OwnedFd& fd, const LocalCaller& caller) {
  Say(absl::StrCat("connections of user ", caller.user, " are refused: there are too many"));
  const v1::LocalReply reply =
      EndOf(0, {grpc::StatusCode::RESOURCE_EXHAUSTED,
                absl::StrCat("connection to the agent: the node's processes, or those of user ",
                             caller.user, ", have too many already; close some")});
  std::string frame;
  AppendFrame(reply.SerializeAsString(), frame);
  (void)!send(fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void LocalServer::Take(OwnedFd fd) {
  absl::StatusOr<LocalCaller> caller = IdentifyCaller(fd.get());
  if (!caller.ok()) {
    return Say(absl::StrCat("a connection is refused: ", caller.status().message()));
  }
  if (!parts_->limits->Connect(caller->uid)) return Refuse(fd, *caller);
  const uint64_t id = ++last_connection_;
  const auto on_closed = [this, id] {
    parts_->loop->Post([this, id, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) connections_.erase(id);
    });
  };
  connections_[id] =
      std::make_unique<LocalConnection>(std::move(fd), *std::move(caller), parts_, on_closed);
}

}  // namespace coppice
