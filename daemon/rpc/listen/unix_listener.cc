#include "daemon/rpc/listen/unix_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/log.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/listen/unix_users.h"

namespace coppice {
namespace {

constexpr int kMaxBacklog = 4096;  // connections, capped by net.core.somaxconn
// When so many wait the kernel refuses everybody: whoever floods is not to connect faster than we
// accept.
constexpr int kAcceptThreads = 2;

absl::Status Failed(const std::string& path, const char* what) {
  return absl::UnavailableError(absl::StrCat("listen address unix:", path, ": ", what, ": ",
                                             std::strerror(errno),
                                             "; see that its directory is the daemon's to write"));
}

// Gives the file at `path` to the group; the mode that it may have then.
absl::StatusOr<mode_t> GiveToGroup(const std::string& path, const SocketAccess& access) {
  constexpr mode_t kGroup = 070, kOthers = 07;
  if (access.group.empty() || (access.mode & kGroup) == 0) return access.mode;
  const std::optional<gid_t> group = UnixUsers::FindGroup(access.group);
  if (group && chown(path.c_str(), static_cast<uid_t>(-1), *group) == 0) return access.mode;
  const std::string why =
      group ? absl::StrCat("cannot be given to the group ", access.group, ": ",
                           std::strerror(errno), "; run the daemon as root or as a member of it")
            : absl::StrCat("there is no group ", access.group,
                           " on this host; make it (groupadd --system ", access.group, ")");
  if (access.needs_the_group) {
    return absl::FailedPreconditionError(absl::StrCat("socket ", path, ": ", why));
  }
  // What everybody may the group may, too.
  const mode_t mode = access.mode & (~kGroup | ((access.mode & kOthers) << 3));
  if (mode == access.mode) return mode;
  spdlog::warn(
      "socket {}: {}, or name another (socket_group); only the daemon's user and root can connect",
      path, why);
  return mode;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Open(
    const std::vector<std::string>& paths, const SocketAccess& access) {
  std::unique_ptr<UnixListener> listener(new UnixListener);
  ASSIGN_OR_RETURN(listener->loop_, AcceptLoop::Create("unix sockets"));
  for (const std::string& path : paths) RETURN_IF_ERROR(listener->Add(path, access));
  return listener;
}

absl::Status UnixListener::Add(const std::string& path, const SocketAccess& access) {
  Socket& made = sockets_.emplace_back();
  made.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made.fd < 0) return Failed(path, "cannot make a socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  // The file takes the socket's mode: nobody can connect before it has the wanted one.
  if (fchmod(made.fd, 0) != 0) return Failed(path, "cannot set the mode of the socket");
  if (bind(made.fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Failed(path, "cannot be bound");
  }
  made.path = path;
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    made.device = info.st_dev;
    made.file = info.st_ino;
  }
  if (listen(made.fd, kMaxBacklog) != 0) return Failed(path, "cannot be listened at");
  ASSIGN_OR_RETURN(const mode_t mode, GiveToGroup(path, access));
  if (chmod(path.c_str(), mode) != 0) return Failed(path, "cannot set the mode of the file");
  return absl::OkStatus();
}

UnixListener::~UnixListener() {
  Stop();
  for (const Socket& socket : sockets_) {
    struct stat info {};
    const bool is_ours = !socket.path.empty() && lstat(socket.path.c_str(), &info) == 0 &&
                         info.st_dev == socket.device && info.st_ino == socket.file;
    if (is_ours) unlink(socket.path.c_str());
    if (socket.fd >= 0) close(socket.fd);
  }
}

void UnixListener::Start(OnConnection on_connection) {
  std::vector<int> listening;
  for (const Socket& socket : sockets_) listening.push_back(socket.fd);
  loop_->Start(listening, kAcceptThreads,
               [on_connection = std::move(on_connection)](size_t, int fd) {
                 ucred peer{};
                 socklen_t size = sizeof(peer);
                 if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
                   on_connection(fd, peer.uid);
                 } else {
                   close(fd);  // who it is cannot be told
                 }
               });
}

void UnixListener::Stop() {
  if (loop_ != nullptr) loop_->Stop();
}

}  // namespace coppice
