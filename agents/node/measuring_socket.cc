#include "agents/node/measuring_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

// How soon a stop is noticed.
constexpr int kLookEveryMs = 50;
constexpr int kBacklog = 64;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(const std::string& address, int flags) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port > 0xffff) {
    return absl::InvalidArgumentError(absl::StrCat("address \"", address, "\": give HOST:PORT"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), absl::StrCat(port).c_str(),
                                &hints, &found);
  if (error == 0) return Addresses(found);
  return absl::UnavailableError(absl::StrCat("address ", address, ": ", gai_strerror(error)));
}

absl::Status Broken(const std::string& what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

}  // namespace

absl::Status WaitForAny(pollfd* descriptors, size_t count, const MeasuringSocket::Limit& limit) {
  for (;;) {
    if (limit.is_stopped != nullptr && *limit.is_stopped) {
      return absl::CancelledError("it was broken off: the agent stops, or has a newer task");
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        limit.deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return absl::DeadlineExceededError("the peer did not answer in time");
    const int wait = static_cast<int>(std::min<int64_t>(left.count(), kLookEveryMs));
    if (poll(descriptors, count, wait) > 0) return absl::OkStatus();
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
  const absl::StatusOr<Addresses> found = Resolve(address, 0);
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
  const absl::StatusOr<Addresses> found = Resolve(address, AI_PASSIVE);
  if (!found.ok()) return found.status();
  absl::Status status = absl::UnavailableError(absl::StrCat("address ", address, ": is none"));
  for (const addrinfo* one = found->get(); one != nullptr; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd >= 0 && bind(fd, one->ai_addr, one->ai_addrlen) == 0 && listen(fd, kBacklog) == 0) {
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
