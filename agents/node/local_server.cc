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
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

// All ranks of a large node may connect in the same moment.
constexpr int kBacklog = 4096;
// Of one kind of trouble, in the log.
constexpr std::chrono::seconds kSayEvery{10};
// Between two tries to accept when the process has no descriptor left.
constexpr std::chrono::milliseconds kPause{100};

std::string Error(int number) { return std::strerror(number); }

absl::Status CannotListen(const std::string& path, int error) {
  return absl::UnavailableError(absl::StrCat("socket ", path, ": ", Error(error)));
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
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return CannotListen(path, errno);
  const int failed = connect(probe, reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
  const int error = failed != 0 ? errno : 0;
  close(probe);
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
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return CannotListen(path, errno);
  std::unique_ptr<LocalServer> server(new LocalServer(fd, path, parts));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      chmod(path.c_str(), mode) != 0 || listen(fd, kBacklog) != 0) {
    return CannotListen(path, errno);
  }
  return server;
}

LocalServer::LocalServer(int fd, std::string path, const LocalParts* parts)
    : fd_(fd), path_(std::move(path)), parts_(parts) {
  parts_->loop->Watch(fd_, EPOLLIN, [this](uint32_t) { Accept(); });
}

LocalServer::~LocalServer() {
  parts_->loop->Forget(fd_);
  // The file stays: who finds nobody behind it is refused, as without it, and a next agent that
  // has already put its own there keeps it.
  close(fd_);
}

void LocalServer::Accept() {
  for (;;) {
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      Take(fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      Say(absl::StrCat(Error(errno), "; raise LimitNOFILE"));
      parts_->loop->Change(fd_, 0);
      parts_->loop->After(kPause, [this, alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) parts_->loop->Change(fd_, EPOLLIN);
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

void LocalServer::Refuse(int fd, const LocalCaller& caller) {
  Say(absl::StrCat("connections of user ", caller.user, " are refused: there are too many"));
  v1::LocalReply reply;
  reply.mutable_end()->set_code(static_cast<uint32_t>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  reply.mutable_end()->set_message(
      absl::StrCat("connection to the agent: the node's processes, or those of user ", caller.user,
                   ", have too many already; close some"));
  std::string frame;
  AppendFrame(reply.SerializeAsString(), frame);
  (void)!send(fd, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  close(fd);
}

void LocalServer::Take(int fd) {
  absl::StatusOr<LocalCaller> caller = IdentifyCaller(fd);
  if (!caller.ok()) {
    Say(absl::StrCat("a connection is refused: ", caller.status().message()));
    close(fd);
    return;
  }
  if (!parts_->limits->Connect(caller->uid)) return Refuse(fd, *caller);
  const uint64_t id = ++last_connection_;
  const auto on_closed = [this, id] {
    parts_->loop->Post([this, id, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) connections_.erase(id);
    });
  };
  connections_[id] = std::make_unique<LocalConnection>(fd, *std::move(caller), parts_, on_closed);
}

}  // namespace coppice
