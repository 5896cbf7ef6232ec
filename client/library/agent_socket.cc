#include "client/library/agent_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>
#include <system_error>
#include <utility>

namespace coppice {
namespace {

// Held for a system call or a step in the list, and by fork().
std::mutex mu;
OwnDescriptor* first = nullptr;  // guarded by mu

}  // namespace

// In a child, with mu held since before fork().
void OwnDescriptor::CloseAll() {
  for (OwnDescriptor* each = first; each != nullptr; each = each->after_) {
    close(each->fd_);
    each->fd_ = -1;
  }
  mu.unlock();
}

void OwnDescriptor::Watch() {
  static const int watched = pthread_atfork([] { mu.lock(); }, [] { mu.unlock(); }, CloseAll);
  static_cast<void>(watched);  // without memory for it a child keeps what it has
}

bool OwnDescriptor::Keep(int fd) {
  if (fd < 0) return false;
  fd_ = fd;
  after_ = first;
  if (first != nullptr) first->before_ = this;
  first = this;
  return true;
}

bool OwnDescriptor::OpenUnixSocket() {
  Watch();
  const std::lock_guard<std::mutex> lock(mu);
  return Keep(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

bool OwnDescriptor::OpenEvent() {
  Watch();
  const std::lock_guard<std::mutex> lock(mu);
  return Keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

OwnDescriptor::~OwnDescriptor() {
  const std::lock_guard<std::mutex> lock(mu);
  if (fd_ < 0) return;
  if (first == this) first = after_;
  if (before_ != nullptr) before_->after_ = after_;
  if (after_ != nullptr) after_->before_ = before_;
  close(fd_);
}

namespace {

constexpr size_t kReadBytes = 64 << 10;

Outcome NoAgent(const std::string& path, int error) {
  return {COPPICE_UNAVAILABLE, "no agent at " + path + ": " +
                                   std::generic_category().message(error) +
                                   " (is coppice-agent running on this node?)"};
}

// A full queue of connections makes connect(2) wait no longer than this says, but for EINTR.
void LimitConnect(int fd, SteadyTime deadline) {
  const int milliseconds = std::max(MillisecondsUntil(deadline), 1);
  timeval limit{};
  limit.tv_sec = milliseconds / 1000;
  limit.tv_usec = milliseconds % 1000 * 1000;
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// EAGAIN: not before the deadline.
int ConnectTo(int fd, const sockaddr_un& address, SteadyTime deadline) {
  for (;;) {
    LimitConnect(fd, deadline);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
    if (errno != EINTR) return errno;
    // A program with a timer is interrupted for ever.
    if (MillisecondsUntil(deadline) == 0) return EAGAIN;
  }
}

}  // namespace

int MillisecondsUntil(SteadyTime deadline) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
}

Outcome AgentSocket::Connect(const std::string& path, SteadyTime deadline,
                             std::shared_ptr<AgentSocket>& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return {COPPICE_INVALID_ARGUMENT,
            "agent socket \"" + path + "\": a path of 1 to 107 characters is needed"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  std::shared_ptr<AgentSocket> made(new AgentSocket);
  if (!made->fd_.OpenUnixSocket()) return NoAgent(path, errno);
  const int fd = made->fd_.get();
  if (const int error = ConnectTo(fd, address, deadline); error != 0) {
    if (error == EAGAIN) {
      return {COPPICE_DEADLINE_EXCEEDED,
              "agent at " + path + ": it does not accept connections; allow more time"};
    }
    return NoAgent(path, error);
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  socket = std::move(made);
  return {};
}

AgentSocket::Io AgentSocket::Send(std::string_view& bytes) {
  const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) {
    bytes.remove_prefix(static_cast<size_t>(sent));
    return Io::kSome;
  }
  if (errno == EINTR) return Io::kSome;
  return errno == EAGAIN || errno == EWOULDBLOCK ? Io::kNotNow : Io::kLost;
}

AgentSocket::Io AgentSocket::Receive() {
  char bytes[kReadBytes];
  const ssize_t count = recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count > 0) {
    frames_.Append(std::string_view(bytes, static_cast<size_t>(count)));
    return Io::kSome;
  }
  if (count == 0) return Io::kLost;
  if (errno == EINTR) return Io::kSome;
  return errno == EAGAIN || errno == EWOULDBLOCK ? Io::kNotNow : Io::kLost;
}

bool AgentSocket::Wait(short events, SteadyTime deadline, int wake) const {
  pollfd descriptors[2] = {{fd_.get(), events, 0}, {wake, POLLIN, 0}};
  for (;;) {
    const int ready = poll(descriptors, wake < 0 ? 1 : 2, MillisecondsUntil(deadline));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

void AgentSocket::Shut() { shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace coppice
