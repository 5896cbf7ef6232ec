#include "daemon/rpc/listen/listeners.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/listen/unix_users.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";
constexpr int kMaxPort = 65535;
constexpr size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;  // 107 on Linux

absl::Status BadAddress(absl::string_view address, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("listen address \"", address, "\": ", what));
}

absl::Status CheckSocketPath(absl::string_view address) {
  const std::string path = SocketPath(address);
  if (path.empty()) return BadAddress(address, "give the path of the socket: unix:/PATH");
  if (absl::StartsWith(address, "unix://") && path.front() != '/') {
    return BadAddress(address, "a path after unix:// must be absolute");
  }
  if (path.size() > kMaxSocketPath) {
    return BadAddress(address, absl::StrCat("the path has ", path.size(),
                                            " bytes; a socket's may have ", kMaxSocketPath));
  }
  return absl::OkStatus();
}

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// True if a process accepts connections at `path`.
bool IsAlive(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const sockaddr_un address = UnixAddress(path);
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = errno;
  close(fd);
  return result == 0 || error == EAGAIN;  // EAGAIN: its queue of connections is full
}

absl::Status CheckDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0               ? "/"
                                                           : path.substr(0, slash);
  if (access(directory.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("socket ", path, ": its directory ", directory, ": ", std::strerror(errno),
                   "; create it, writable for the daemon, or listen elsewhere"));
}

constexpr int kPauseMs = 100;  // when no descriptor is left; poll would return at once

constexpr int kBacklog = 4096;  // connections, capped by net.core.somaxconn
// When so many wait the kernel refuses everybody: whoever floods is not to connect faster than we
// accept.
constexpr int kAcceptThreads = 2;

absl::Status Failed(const std::string& path, const char* what) {
  return absl::UnavailableError(absl::StrCat("listen address unix:", path, ": ", what, ": ",
                                             std::strerror(errno),
                                             "; see that its directory is the daemon's to write"));
}

// Gives the file at `path` to the group; the mode that it may have then.
absl::StatusOr<mode_t> GiveToGroup(const std::string& path, const AccessOptions& access) {
  constexpr mode_t kGroup = 070, kOthers = 07;
  if (access.socket_group.empty() || (access.socket_mode & kGroup) == 0) return access.socket_mode;
  const std::optional<gid_t> group = UnixUsers::FindGroup(access.socket_group);
  if (group && chown(path.c_str(), static_cast<uid_t>(-1), *group) == 0) return access.socket_mode;
  const std::string why =
      group ? absl::StrCat("cannot be given to the group ", access.socket_group, ": ",
                           std::strerror(errno), "; run the daemon as root or as a member of it")
            : absl::StrCat("there is no group ", access.socket_group,
                           " on this host; make it (groupadd --system ", access.socket_group, ")");
  if (access.needs_socket_group) {
    return absl::FailedPreconditionError(absl::StrCat("socket ", path, ": ", why));
  }
  // What everybody may the group may, too.
  const mode_t mode = access.socket_mode & (~kGroup | ((access.socket_mode & kOthers) << 3));
  if (mode == access.socket_mode) return mode;
  spdlog::warn(
      "socket {}: {}, or name another (socket_group); only the daemon's user and root can connect",
      path, why);
  return mode;
}

// A client that does not take what was sent to it for so long has gone.
constexpr unsigned kMaxUnheardMs = 20'000;

// Half of what the process may have: the rest is for Unix sockets, which users and administrators
// of this machine come by, and for files.
size_t MostDescriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur / 2;
}

absl::Status CannotListen(const std::string& address, absl::string_view what,
                          absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("listen address ", address, ": ", what, ": ", why,
                   "; is another process there, or is the name not one of this host?"));
}

// What accepted sockets have, too.
bool SetOptions(int fd, int family) {
  const int on = 1, off = 0;
  const unsigned longest = kMaxUnheardMs;
  return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
         setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
         setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &longest, sizeof(longest)) == 0 &&
         (family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0);
}

uint16_t BoundPort(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  // In the same place of both kinds.
  return ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

// A socket that listens at `found`, whose port, unless 0, is `port`; -1, with errno.
int ListenAt(const addrinfo& found, uint16_t port) {
  const int fd = socket(found.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  sockaddr_storage address{};
  std::memcpy(&address, found.ai_addr, found.ai_addrlen);
  if (port != 0) reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  if (SetOptions(fd, found.ai_family) &&
      bind(fd, reinterpret_cast<const sockaddr*>(&address), found.ai_addrlen) == 0 &&
      listen(fd, kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

bool IsUnixAddress(absl::string_view address) { return absl::StartsWith(address, kUnixPrefix); }

std::string SocketPath(absl::string_view address) {
  absl::string_view path = address.substr(kUnixPrefix.size());
  absl::ConsumePrefix(&path, "//");
  return std::string(path);
}

absl::Status CheckListenAddress(absl::string_view address, bool may_be_tcp) {
  if (IsUnixAddress(address)) return CheckSocketPath(address);
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0) {
    return BadAddress(address, "give unix:PATH or HOST:PORT");
  }
  if (!absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > kMaxPort) {
    return BadAddress(address, "the port must be a number from 0 (any free one) to 65535");
  }
  if (may_be_tcp) return absl::OkStatus();
  return BadAddress(
      address,
      "TCP without TLS is refused: give [tls] certificate and key, or state "
      "insecure_tcp = true (--insecure-tcp) to let anybody who reaches it use the daemon");
}

absl::Status PrepareListenAddress(const std::string& address) {
  if (!IsUnixAddress(address)) return absl::OkStatus();
  const std::string path = SocketPath(address);
  if (absl::Status status = CheckDirectory(path); !status.ok()) return status;
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();  // nothing there
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "socket ", path, ": a file that is no socket is there; remove it or listen elsewhere"));
  }
  if (IsAlive(path)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "socket ", path, ": another process listens there; stop it or listen elsewhere"));
  }
  if (unlink(path.c_str()) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("socket ", path, ": cannot remove the stale file: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status Listener::Prepare() {
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ >= 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("eventfd: ", std::strerror(errno)));
}

Listener::~Listener() {
  for (const int fd : sockets_) close(fd);
  if (wake_ >= 0) close(wake_);
}

void Listener::Run(int threads, OnConnection on_connection) {
  on_connection_ = std::move(on_connection);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Accept(); });
}

void Listener::Stop() {
  if (threads_.empty()) return;
  eventfd_write(wake_, 1);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Listener::Accept() {
  std::vector<pollfd> watched = {{wake_, POLLIN, 0}};
  for (const int fd : sockets_) watched.push_back({fd, POLLIN, 0});
  while (true) {
    if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) {
      spdlog::error("{}: poll: {}; nobody can connect any more", what_, std::strerror(errno));
      return;
    }
    if (watched[0].revents != 0) return;
    bool can_go_on = true;
    for (size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0 && !AcceptAll(i - 1)) can_go_on = false;
    }
    if (!can_go_on) poll(watched.data(), 1, kPauseMs);
  }
}

bool Listener::AcceptAll(size_t index) {
  while (true) {
    const int fd = accept4(sockets_[index], nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return true;
      if (!is_short_.exchange(true)) {
        spdlog::error("{}: cannot accept: {}; connections wait", what_, std::strerror(errno));
      }
      return false;
    }
    is_short_ = false;
    on_connection_(index, fd);
  }
}

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Open(
    const std::vector<std::string>& paths, const AccessOptions& access) {
  std::unique_ptr<UnixListener> listener(new UnixListener);
  RETURN_IF_ERROR(listener->Prepare());
  for (const std::string& path : paths) RETURN_IF_ERROR(listener->Bind(path, access));
  return listener;
}

absl::Status UnixListener::Bind(const std::string& path, const AccessOptions& access) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Failed(path, "cannot make a socket");
  Add(fd);
  // The file takes the socket's mode: nobody can connect before it has the wanted one.
  if (fchmod(fd, 0) != 0) return Failed(path, "cannot set the mode of the socket");
  const sockaddr_un address = UnixAddress(path);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Failed(path, "cannot be bound");
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) files_.push_back({path, info.st_dev, info.st_ino});
  if (listen(fd, kBacklog) != 0) return Failed(path, "cannot be listened at");
  ASSIGN_OR_RETURN(const mode_t mode, GiveToGroup(path, access));
  if (chmod(path.c_str(), mode) != 0) return Failed(path, "cannot set the mode of the file");
  return absl::OkStatus();
}

UnixListener::~UnixListener() {
  Stop();
  for (const File& made : files_) {
    struct stat info {};
    const bool is_ours = lstat(made.path.c_str(), &info) == 0 && info.st_dev == made.device &&
                         info.st_ino == made.file;
    if (is_ours) unlink(made.path.c_str());
  }
}

void UnixListener::Start(OnUser on_user) {
  Run(kAcceptThreads, [on_user = std::move(on_user)](size_t, int fd) {
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) return on_user(fd, peer.uid);
    close(fd);  // who it is cannot be told
  });
}

TcpListener::TcpListener(const ConnectionBounds& bounds)
    : Listener("tcp"), connections_(Connections::kTcp, bounds, &SystemClock(), MostDescriptors()) {}

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Open(
    const std::vector<std::string>& addresses, const ConnectionBounds& bounds) {
  std::unique_ptr<TcpListener> listener(new TcpListener(bounds));
  RETURN_IF_ERROR(listener->Prepare());
  for (const std::string& address : addresses) RETURN_IF_ERROR(listener->Bind(address));
  return listener;
}

absl::Status TcpListener::Bind(const std::string& address) {
  const size_t colon = address.rfind(':');
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(std::string(host).c_str(), address.substr(colon + 1).c_str(), &wanted, &found);
  if (error != 0) return CannotListen(address, "there is no such host", gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  uint16_t port = 0;
  std::string why;
  for (; found != nullptr; found = found->ai_next) {
    const int fd = ListenAt(*found, port);
    if (fd < 0) {
      why = std::strerror(errno);
      // A name may have an address of a kind that this host has not.
      if (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL) continue;
      return CannotListen(address, "cannot be bound", why);
    }
    Add(fd);
    addresses_.push_back(ports_.size());
    port = BoundPort(fd);
  }
  if (port == 0) return CannotListen(address, "cannot be bound", why);
  ports_.push_back(port);
  return absl::OkStatus();
}

void TcpListener::Start(OnClient on_client) {
  Run(1, [this, on_client = std::move(on_client)](size_t index, int fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    std::string network;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0) network = NetworkOf(peer);
    if (!network.empty() && connections_.Admit(fd, network)) {
      return on_client(addresses_[index], socket(index), fd, network);
    }
    close(fd);
    if (network.empty()) return;  // it has gone already
    refused_.Say(absl::StrCat("tcp: a connection of ", network,
                              " was closed, as it or all have too many (limits.tcp_connections)"));
  });
}

}  // namespace coppice
