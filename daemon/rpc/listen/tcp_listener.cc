#include "daemon/rpc/listen/tcp_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/listen/peer_names.h"

namespace coppice {
namespace {

constexpr int kTcpBacklog = 4096;  // connections, capped by net.core.somaxconn
// A client that does not take what was sent to it for so long has gone.
constexpr unsigned kLongestUnheardMs = 20'000;
// A look at 32,768 descriptors takes some 10 ms.
constexpr absl::Duration kLookPeriod = absl::Milliseconds(100);
constexpr absl::Duration kRefusalLogPeriod = absl::Seconds(10);

ino_t InodeOf(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

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
  const unsigned longest = kLongestUnheardMs;
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
      listen(fd, kTcpBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

void TcpConnections::SetBounds(const ConnectionBounds& bounds) {
  std::lock_guard lock(mutex_);
  bounds_ = bounds;
}

bool TcpConnections::HasRoom(const std::string& network) const {
  const auto found = of_network_.find(network);
  return connections_.size() < std::min<size_t>(bounds_.tcp_of_all, most_descriptors_) &&
         (found == of_network_.end() || found->second < bounds_.tcp_of_address);
}

bool TcpConnections::Admit(int fd, const std::string& network) {
  std::lock_guard lock(mutex_);
  if (const auto before = connections_.find(fd); before != connections_.end()) Forget(before);
  if (!HasRoom(network)) Look();
  if (!HasRoom(network)) return false;
  connections_[fd] = {network, InodeOf(fd)};
  ++of_network_[network];
  return true;
}

void TcpConnections::Look() {
  const absl::Duration now = clock_->Monotonic();
  if (now - looked_ < kLookPeriod) return;
  looked_ = now;
  for (auto next = connections_.begin(); next != connections_.end();) {
    const auto found = next++;
    if (InodeOf(found->first) != found->second.socket) Forget(found);
  }
}

void TcpConnections::Forget(Connections::iterator found) {
  const auto count = of_network_.find(found->second.network);
  if (--count->second == 0) of_network_.erase(count);
  connections_.erase(found);
}

size_t TcpConnections::size() const {
  std::lock_guard lock(mutex_);
  return connections_.size();
}

TcpListener::TcpListener(const ConnectionBounds& bounds)
    : connections_(bounds, MostDescriptors(), &SystemClock()) {}

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Open(
    const std::vector<std::string>& addresses, const ConnectionBounds& bounds) {
  std::unique_ptr<TcpListener> listener(new TcpListener(bounds));
  ASSIGN_OR_RETURN(listener->loop_, AcceptLoop::Create("tcp"));
  for (const std::string& address : addresses) RETURN_IF_ERROR(listener->Add(address));
  return listener;
}

absl::Status TcpListener::Add(const std::string& address) {
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
    sockets_.push_back({fd, ports_.size()});
    port = BoundPort(fd);
  }
  if (port == 0) return CannotListen(address, "cannot be bound", why);
  ports_.push_back(port);
  return absl::OkStatus();
}

TcpListener::~TcpListener() {
  Stop();
  for (const Socket& socket : sockets_) close(socket.fd);
}

void TcpListener::Start(OnConnection on_connection) {
  std::vector<int> listening;
  for (const Socket& socket : sockets_) listening.push_back(socket.fd);
  loop_->Start(listening, 1,
               [this, on_connection = std::move(on_connection)](size_t index, int fd) {
                 sockaddr_storage peer{};
                 socklen_t size = sizeof(peer);
                 std::string network;
                 if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0)
                   network = NetworkOf(peer);
                 if (network.empty() || !connections_.Admit(fd, network)) {
                   close(fd);
                   if (!network.empty()) LogRefused(network);  // else it has gone already
                   return;
                 }
                 on_connection(sockets_[index].address, sockets_[index].fd, fd, network);
               });
}

void TcpListener::LogRefused(const std::string& network) {
  const absl::Time now = absl::Now();
  if (now < next_word_) {
    ++untold_;
    return;
  }
  next_word_ = now + kRefusalLogPeriod;
  spdlog::warn(
      "tcp: a connection of {} was closed, as it or all have too many (limits.tcp_connections); {} "
      "others since the last word",
      network, std::exchange(untold_, 0));
}

void TcpListener::Stop() {
  if (loop_ != nullptr) loop_->Stop();
}

}  // namespace coppice
