#include "daemon/rpc/listen/unix_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <tuple>
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

namespace {

// Who connects faster than that is refused: opening and shutting costs more than that.
constexpr absl::Duration kMinIdle = absl::Seconds(1);

ino_t SocketOf(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

}  // namespace

void UnixConnections::SetBounds(const ConnectionBounds& bounds) {
  std::lock_guard lock(mutex_);
  bounds_ = bounds;
}

bool UnixConnections::Admit(int fd, uid_t uid) {
  std::lock_guard lock(mutex_);
  const size_t number = static_cast<size_t>(fd);
  if (number >= connections_.size()) connections_.resize(number + 1);
  Forget(connections_[number]);
  if (of_user_[uid] >= bounds_.of_user && !ShutIdlest(&uid)) return false;
  if (open_ >= bounds_.of_all && !ShutIdlest(nullptr)) return false;
  connections_[number] = {true, uid, SocketOf(fd), false, 0, clock_->Monotonic()};
  ++of_user_[uid];
  ++open_;
  return true;
}

bool UnixConnections::IsAdmitted(int fd) const {
  std::lock_guard lock(mutex_);
  const size_t number = static_cast<size_t>(fd);
  return number < connections_.size() && connections_[number].is_open && IsOpen(fd);
}

void UnixConnections::CallBegins(int fd) {
  std::lock_guard lock(mutex_);
  const size_t number = static_cast<size_t>(fd);
  if (number >= connections_.size()) return;
  connections_[number].has_called = true;
  ++connections_[number].calls;
}

void UnixConnections::CallEnds(int fd) {
  std::lock_guard lock(mutex_);
  const size_t number = static_cast<size_t>(fd);
  // Not of a later connection: a descriptor is closed after the last call of its connection.
  if (number >= connections_.size() || connections_[number].calls == 0) return;
  if (--connections_[number].calls == 0) connections_[number].idle_since = clock_->Monotonic();
}

void UnixConnections::Tick() {
  std::lock_guard lock(mutex_);
  Look();
  const absl::Duration now = clock_->Monotonic();
  for (size_t i = 0; i < connections_.size() && open_ > 0; ++i) {
    Connection& connection = connections_[i];
    if (!connection.is_open || connection.has_called) continue;
    if (now - connection.idle_since > bounds_.longest_silence) Shut(static_cast<int>(i));
  }
}

size_t UnixConnections::size() const {
  std::lock_guard lock(mutex_);
  return open_;
}

void UnixConnections::Look() {
  for (size_t i = 0; i < connections_.size(); ++i) {
    if (connections_[i].is_open && !IsOpen(static_cast<int>(i))) Forget(connections_[i]);
  }
}

bool UnixConnections::IsOpen(int fd) const {
  return SocketOf(fd) == connections_[static_cast<size_t>(fd)].socket;
}

bool UnixConnections::ShutIdlest(const uid_t* uid) {
  int idlest = -1;
  for (size_t i = 0; i < connections_.size(); ++i) {
    const Connection& connection = connections_[i];
    if (!connection.is_open || connection.calls > 0) continue;
    if (uid != nullptr && connection.uid != *uid) continue;
    if (idlest >= 0) {
      const Connection& other = connections_[static_cast<size_t>(idlest)];
      if (std::tie(other.has_called, other.idle_since) <=
          std::tie(connection.has_called, connection.idle_since)) {
        continue;
      }
    }
    idlest = static_cast<int>(i);
  }
  if (idlest < 0) return false;
  const absl::Duration since = connections_[static_cast<size_t>(idlest)].idle_since;
  if (clock_->Monotonic() - since < kMinIdle) return false;
  Shut(idlest);
  return true;
}

void UnixConnections::Forget(Connection& connection) {
  if (!connection.is_open) return;
  connection.is_open = false;
  connection.calls = 0;
  --open_;
  --of_user_[connection.uid];
}

void UnixConnections::Shut(int fd) {
  // Its owner closes it when it sees that. A descriptor that has been closed since and is another's
  // is left alone but for an instant.
  if (IsOpen(fd)) shutdown(fd, SHUT_RDWR);
  Forget(connections_[static_cast<size_t>(fd)]);
}

}  // namespace coppice
