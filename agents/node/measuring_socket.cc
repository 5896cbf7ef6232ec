#include "agents/node/measuring_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/node/name_resolution.h"

namespace coppice {
namespace {

constexpr int kMeasuringBacklog = 64;
constexpr char kLate[] = "the peer did not answer in time";

absl::Status Broken(const std::string& what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

}  // namespace

absl::Status WaitForAny(pollfd* descriptors, size_t count, const MeasuringSocket::Limit& limit) {
  for (;;) {
    const auto wait = limit.NextWait(kLate);
    if (!wait.ok()) return wait.status();
    if (poll(descriptors, count, static_cast<int>(wait->count())) > 0) return absl::OkStatus();
  }
}

MeasuringSocket::MeasuringSocket(int fd, Limit limit) : fd_(fd), limit_(limit) {
  const int yes = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

MeasuringSocket::MeasuringSocket(MeasuringSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), limit_(other.limit_) {}

MeasuringSocket::~MeasuringSocket() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<MeasuringSocket> MeasuringSocket::Connect(const std::string& address, Limit limit) {
  const absl::StatusOr<Addresses> found = Resolve(address, limit);
  if (!found.ok()) return found.status();
  absl::Status status = absl::UnavailableError(absl::StrCat("address ", address, ": is none"));
  for (const addrinfo* one = found->get(); one != nullptr; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    MeasuringSocket socket(fd, limit);
    int error = connect(fd, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      status = socket.Wait(POLLOUT);
      if (!status.ok()) return status;
      socklen_t size = sizeof error;
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) return socket;
    status = Broken(absl::StrCat("peer at ", address), error);
  }
  return status;
}

absl::StatusOr<int> MeasuringSocket::Listen(const std::string& address) {
  const absl::StatusOr<Addresses> found = ResolveOwn(address);
  if (!found.ok()) return found.status();
  absl::Status status = absl::UnavailableError(absl::StrCat("address ", address, ": is none"));
  for (const addrinfo* one = found->get(); one != nullptr; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd >= 0 && bind(fd, one->ai_addr, one->ai_addrlen) == 0 &&
        listen(fd, kMeasuringBacklog) == 0) {
      return fd;
    }
    status = Broken(absl::StrCat("address ", address, ": cannot be listened at"), errno);
    if (fd >= 0) close(fd);
  }
  return status;
}

absl::Status MeasuringSocket::Wait(short events) const {
  pollfd descriptor{fd_, events, 0};
  return WaitForAny(&descriptor, 1, limit_);
}

absl::Status MeasuringSocket::Send(const void* bytes, size_t size) {
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t count = send(fd_, next, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      next += count;
      size -= static_cast<size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (absl::Status status = Wait(POLLOUT); !status.ok()) return status;
    } else if (errno != EINTR) {
      return Broken("the peer broke off", errno);
    }
  }
  return absl::OkStatus();
}

absl::Status MeasuringSocket::Receive(void* bytes, size_t size) {
  char* next = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t count = recv(fd_, next, size, MSG_DONTWAIT);
    if (count > 0) {
      next += count;
      size -= static_cast<size_t>(count);
    } else if (count == 0) {
      return absl::UnavailableError("the peer broke off");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (absl::Status status = Wait(POLLIN); !status.ok()) return status;
    } else if (errno != EINTR) {
      return Broken("the peer broke off", errno);
    }
  }
  return absl::OkStatus();
}

}  // namespace coppice
