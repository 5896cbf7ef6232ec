#include "agents/node/measuring_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <system_error>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr int kMeasuringBacklog = 64;
constexpr char kLate[] = "the peer did not answer in time";

absl::Status Broken(const std::string& what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

// Names that hang, each on a thread: one a measurement, each as long as the resolver's own
// patience.
constexpr int kMaxLookUps = 16;

struct HostAndPort {
  std::string host;  // empty: any
  std::string port;
};

absl::StatusOr<HostAndPort> Split(const std::string& address) {
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
  return HostAndPort{std::move(host), absl::StrCat(port)};
}

struct LookedUp {
  int error = 0;  // getaddrinfo's
  Addresses addresses{};
};

LookedUp LookUp(const HostAndPort& at, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error =
      getaddrinfo(at.host.empty() ? nullptr : at.host.c_str(), at.port.c_str(), &hints, &list);
  return {error, Addresses(error == 0 ? list : nullptr)};
}

absl::Status Unknown(const std::string& address, int error) {
  return absl::UnavailableError(absl::StrCat("address ", address, ": ", gai_strerror(error)));
}

absl::StatusOr<std::future<LookedUp>> BeginLookUp(const HostAndPort& at) {
  static std::atomic<int> under_way{0};
  std::packaged_task<LookedUp()> ask([at] {
    LookedUp found = LookUp(at, 0);
    --under_way;
    return found;
  });
  std::future<LookedUp> answer = ask.get_future();
  if (++under_way > kMaxLookUps) {
    --under_way;
    return absl::UnavailableError(absl::StrCat(
        "the names of ", kMaxLookUps, " peers are still looked up; is the name server there?"));
  }
  try {
    std::thread(std::move(ask)).detach();
  } catch (const std::system_error& error) {
    --under_way;
    return absl::UnavailableError(absl::StrCat("no thread to look a name up: ", error.what()));
  }
  return answer;
}

constexpr absl::string_view kKinds = "ONDET";

size_t MostTextOf(PingPongWord::Kind kind) {
  return kind == PingPongWord::Kind::kData ? PingPongWord::kMaxData : PingPongWord::kMaxText;
}

absl::Status NoWord() {
  return absl::InvalidArgumentError("the peer says what no agent of this release says");
}

}  // namespace

absl::Status WaitForAny(pollfd* descriptors, size_t count, const MeasuringLimit& limit) {
  for (;;) {
    const auto wait = limit.NextWait(kLate);
    if (!wait.ok()) return wait.status();
    if (poll(descriptors, count, static_cast<int>(wait->count())) > 0) return absl::OkStatus();
  }
}

MeasuringSocket::MeasuringSocket(OwnedFd fd, MeasuringLimit limit)
    : fd_(std::move(fd)), limit_(limit) {
  const int yes = 1;
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

absl::StatusOr<MeasuringSocket> MeasuringSocket::Connect(const std::string& address,
                                                         MeasuringLimit limit) {
  const absl::StatusOr<Addresses> found = Resolve(address, limit);
  if (!found.ok()) return found.status();
  absl::Status status = absl::UnavailableError(absl::StrCat("address ", address, ": is none"));
  for (const addrinfo* one = found->get(); one != nullptr; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    MeasuringSocket socket{OwnedFd(fd), limit};
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

absl::StatusOr<OwnedFd> MeasuringSocket::Listen(const std::string& address) {
  const absl::StatusOr<Addresses> found = ResolveOwn(address);
  if (!found.ok()) return found.status();
  absl::Status status = absl::UnavailableError(absl::StrCat("address ", address, ": is none"));
  for (const addrinfo* one = found->get(); one != nullptr; one = one->ai_next) {
    OwnedFd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    if (fd.get() >= 0) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd.get() >= 0 && bind(fd.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        listen(fd.get(), kMeasuringBacklog) == 0) {
      return fd;
    }
    status = Broken(absl::StrCat("address ", address, ": cannot be listened at"), errno);
  }
  return status;
}

absl::Status MeasuringSocket::Wait(short events) const {
  pollfd descriptor{fd_.get(), events, 0};
  return WaitForAny(&descriptor, 1, limit_);
}

absl::Status MeasuringSocket::Transfer(char* next, size_t size, short events) {
  while (size > 0) {
    const ssize_t count = events == POLLOUT
                              ? send(fd_.get(), next, size, MSG_NOSIGNAL | MSG_DONTWAIT)
                              : recv(fd_.get(), next, size, MSG_DONTWAIT);
    if (count > 0) {
      next += count;
      size -= static_cast<size_t>(count);
    } else if (count == 0) {
      return absl::UnavailableError("the peer broke off");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (absl::Status status = Wait(events); !status.ok()) return status;
    } else if (errno != EINTR) {
      return Broken("the peer broke off", errno);
    }
  }
  return absl::OkStatus();
}

absl::Status MeasuringSocket::Send(const void* bytes, size_t size) {
  return Transfer(const_cast<char*>(static_cast<const char*>(bytes)), size, POLLOUT);
}

absl::Status MeasuringSocket::Receive(void* bytes, size_t size) {
  return Transfer(static_cast<char*>(bytes), size, POLLIN);
}

absl::StatusOr<Addresses> Resolve(const std::string& address, const MeasuringLimit& limit) {
  const absl::StatusOr<HostAndPort> at = Split(address);
  if (!at.ok()) return at.status();
  LookedUp found = LookUp(*at, AI_NUMERICHOST);  // asks nobody
  if (found.error == 0) return std::move(found.addresses);
  absl::StatusOr<std::future<LookedUp>> answer = BeginLookUp(*at);
  if (!answer.ok()) return answer.status();
  const std::string late = absl::StrCat("address ", address, ": no answer of the name server");
  for (;;) {
    const auto wait = limit.NextWait(late);
    if (!wait.ok()) return wait.status();
    if (answer->wait_for(*wait) == std::future_status::ready) break;
  }
  found = answer->get();
  if (found.error != 0) return Unknown(address, found.error);
  return std::move(found.addresses);
}

absl::StatusOr<Addresses> ResolveOwn(const std::string& address) {
  const absl::StatusOr<HostAndPort> at = Split(address);
  if (!at.ok()) return at.status();
  LookedUp found = LookUp(*at, AI_PASSIVE);
  if (found.error != 0) return Unknown(address, found.error);
  return std::move(found.addresses);
}

absl::Status SendWord(MeasuringSocket& socket, PingPongWord::Kind kind, absl::string_view text) {
  text = text.substr(0, MostTextOf(kind));
  std::string bytes;
  bytes.push_back(static_cast<char>(kind));
  bytes.push_back(static_cast<char>(text.size() >> 8));
  bytes.push_back(static_cast<char>(text.size()));
  absl::StrAppend(&bytes, text);
  return socket.Send(bytes.data(), bytes.size());
}

absl::StatusOr<PingPongWord> ReceiveWord(MeasuringSocket& socket) {
  char head[3];
  if (absl::Status status = socket.Receive(head, sizeof head); !status.ok()) return status;
  if (!absl::StrContains(kKinds, head[0])) return NoWord();
  PingPongWord word;
  word.kind = static_cast<PingPongWord::Kind>(head[0]);
  const size_t size = static_cast<size_t>(static_cast<unsigned char>(head[1])) << 8 |
                      static_cast<unsigned char>(head[2]);
  if (size > MostTextOf(word.kind)) return NoWord();
  word.text.resize(size);
  if (absl::Status status = socket.Receive(word.text.data(), word.text.size()); !status.ok()) {
    return status;
  }
  if (word.kind != PingPongWord::Kind::kData) {
    std::replace_if(
        word.text.begin(), word.text.end(),
        [](char c) { return !absl::ascii_isprint(static_cast<unsigned char>(c)); }, '?');
  }
  return word;
}

}  // namespace coppice
