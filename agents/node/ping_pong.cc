#include "agents/node/ping_pong.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agents/node/measuring_socket.h"

namespace coppice {
namespace {

constexpr absl::string_view kGreeting = "coppice-ping-pong/1 ";
constexpr size_t kTokenBytes = 32;
constexpr size_t kHelloBytes = 20 + kTokenBytes;
static_assert(kGreeting.size() + kTokenBytes == kHelloBytes);
constexpr char kWelcome = 'K';
constexpr size_t kPingBytes = 8;
// Not measured: the first ones fill caches and wake the peer.
constexpr uint32_t kWarmUps = 8;
// What may be asked of a peer, whoever holds the token.
constexpr uint32_t kMostSamples = 1'000'000;
constexpr uint32_t kMostBytes = 1u << 30;
constexpr size_t kReceiveBytes = size_t{1} << 20;
// Connections that have not said who they are.
constexpr size_t kMostStrangers = 16;

using Clock = std::chrono::steady_clock;
using Numbers = std::array<uint32_t, 3>;  // pings, transfers, bytes of a transfer

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

bool AreGood(const Numbers& numbers) {
  return numbers[0] > 0 && numbers[0] <= kMostSamples && numbers[1] <= kMostSamples &&
         numbers[2] <= kMostBytes && (numbers[1] == 0 || numbers[2] > 0);
}

std::array<unsigned char, 12> Encode(const Numbers& numbers) {
  std::array<unsigned char, 12> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(numbers[i / 4] >> (8 * (i % 4)));
  }
  return bytes;
}

Numbers Decode(const std::array<unsigned char, 12>& bytes) {
  Numbers numbers{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    numbers[i / 4] |= static_cast<uint32_t>(bytes[i]) << (8 * (i % 4));
  }
  return numbers;
}

// Sends `size` bytes and waits for the answer; microseconds that it took.
absl::StatusOr<double> RoundTrip(MeasuringSocket& socket, const std::vector<char>& bytes,
                                 size_t size) {
  char answer[kPingBytes];
  const Clock::time_point start = Clock::now();
  if (absl::Status status = socket.Send(bytes.data(), size); !status.ok()) return status;
  if (absl::Status status = socket.Receive(answer, sizeof answer); !status.ok()) return status;
  return MicrosecondsSince(start);
}

absl::Status Introduce(MeasuringSocket& socket, const std::string& token, const Numbers& numbers) {
  const std::string hello = absl::StrCat(kGreeting, token);
  if (absl::Status status = socket.Send(hello.data(), hello.size()); !status.ok()) return status;
  char answer = 0;
  if (absl::Status status = socket.Receive(&answer, 1); !status.ok()) {
    if (!absl::IsUnavailable(status)) return status;
    return absl::PermissionDeniedError("the peer does not take the token of this measurement");
  }
  if (answer != kWelcome) return absl::UnavailableError("the peer is no agent of this release");
  const auto bytes = Encode(numbers);
  return socket.Send(bytes.data(), bytes.size());
}

// Answers pings, then transfers, as many as the active side says.
absl::Status Answer(MeasuringSocket& socket) {
  std::array<unsigned char, 12> header{};
  if (absl::Status status = socket.Receive(header.data(), header.size()); !status.ok()) {
    return status;
  }
  const Numbers numbers = Decode(header);
  if (!AreGood(numbers)) {
    return absl::InvalidArgumentError("the active side asks for what nobody measures");
  }
  char ping[kPingBytes];
  for (uint32_t i = 0; i < numbers[0] + kWarmUps; ++i) {
    if (absl::Status status = socket.Receive(ping, sizeof ping); !status.ok()) return status;
    if (absl::Status status = socket.Send(ping, sizeof ping); !status.ok()) return status;
  }
  std::vector<char> bytes(std::min<size_t>(kReceiveBytes, numbers[2]));
  const uint32_t transfers = numbers[1] == 0 ? 0 : numbers[1] + 1;
  for (uint32_t i = 0; i < transfers; ++i) {
    for (size_t left = numbers[2]; left > 0;) {
      const size_t part = std::min(left, bytes.size());
      if (absl::Status status = socket.Receive(bytes.data(), part); !status.ok()) return status;
      left -= part;
    }
    if (absl::Status status = socket.Send(ping, sizeof ping); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Reads what is there, up to a whole greeting; false: it has left.
bool Hear(int fd, std::string& said) {
  char bytes[kHelloBytes];
  if (said.size() == kHelloBytes) return true;
  const ssize_t count = recv(fd, bytes, kHelloBytes - said.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
  if (count <= 0) return false;
  said.append(bytes, static_cast<size_t>(count));
  return true;
}

bool IsToken(const std::string& token) {
  return token.size() == kTokenBytes &&
         std::all_of(token.begin(), token.end(), absl::ascii_isxdigit);
}

MeasuringSocket::Limit LimitOf(const PingPongPlan& plan) {
  return {plan.deadline, plan.is_stopped};
}

absl::Status BadPlan() {
  return absl::InvalidArgumentError(
      "ping-pong: give a token of 32 hex digits, 1 to 1000000 samples and at most 1 GiB of bytes");
}

}  // namespace

Spread SpreadOf(std::vector<double> samples, bool low_is_bad) {
  Spread spread;
  if (samples.empty()) return spread;
  if (low_is_bad) {
    std::sort(samples.begin(), samples.end(), std::greater<>());
  } else {
    std::sort(samples.begin(), samples.end());
  }
  const size_t dropped = samples.size() == 1 ? 0 : (samples.size() + 9) / 10;
  samples.resize(samples.size() - dropped);
  const double count = static_cast<double>(samples.size());
  for (const double sample : samples) spread.mean += sample / count;
  double squares = 0;
  for (const double sample : samples) squares += (sample - spread.mean) * (sample - spread.mean);
  spread.deviation = std::sqrt(squares / count);
  spread.samples = static_cast<uint32_t>(samples.size());
  return spread;
}

absl::StatusOr<PingPongFigures> MeasureTo(const std::string& address, const PingPongPlan& plan) {
  const Numbers numbers{plan.latency_samples, plan.bandwidth_samples, plan.bandwidth_bytes};
  if (!AreGood(numbers) || !IsToken(plan.token)) return BadPlan();
  auto socket = MeasuringSocket::Connect(address, LimitOf(plan));
  if (!socket.ok()) return socket.status();
  if (absl::Status status = Introduce(*socket, plan.token, numbers); !status.ok()) return status;
  const std::vector<char> bytes(std::max<size_t>(kPingBytes, plan.bandwidth_bytes), 'p');
  std::vector<double> latencies, rates;
  for (uint32_t i = 0; i < plan.latency_samples + kWarmUps; ++i) {
    const auto took = RoundTrip(*socket, bytes, kPingBytes);
    if (!took.ok()) return took.status();
    if (i >= kWarmUps) latencies.push_back(*took / 2);
  }
  PingPongFigures figures;
  figures.latency_us = SpreadOf(std::move(latencies), /*low_is_bad=*/false);
  const uint32_t transfers = plan.bandwidth_samples == 0 ? 0 : plan.bandwidth_samples + 1;
  for (uint32_t i = 0; i < transfers; ++i) {
    const auto took = RoundTrip(*socket, bytes, plan.bandwidth_bytes);
    if (!took.ok()) return took.status();
    // The answer's way back; never more than half, however the latency swings.
    const double way_us = *took - std::min(figures.latency_us.mean, *took / 2);
    const double bits = 8.0 * plan.bandwidth_bytes;
    if (i > 0) rates.push_back(bits / std::max(way_us, 1e-3) / 1000);
  }
  figures.bandwidth_gbps = SpreadOf(std::move(rates), /*low_is_bad=*/true);
  return figures;
}

absl::StatusOr<PingPongListener> PingPongListener::Listen(const std::string& address) {
  const absl::StatusOr<int> fd = MeasuringSocket::Listen(address);
  if (!fd.ok()) return fd.status();
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(*fd, reinterpret_cast<sockaddr*>(&bound), &size);
  const uint16_t port = bound.ss_family == AF_INET6
                            ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                            : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port;
  return PingPongListener(*fd, ntohs(port));
}

PingPongListener::PingPongListener(PingPongListener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      port_(other.port_),
      strangers_(std::exchange(other.strangers_, {})) {}

PingPongListener::~PingPongListener() {
  while (!strangers_.empty()) TurnAway(0);
  if (fd_ >= 0) close(fd_);
}

void PingPongListener::TurnAway(size_t stranger) {
  close(strangers_[stranger].fd);
  strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(stranger));
}

int PingPongListener::HearStrangers(const std::string& wanted) {
  for (size_t i = strangers_.size(); i-- > 0;) {
    Stranger& stranger = strangers_[i];
    const bool is_there = Hear(stranger.fd, stranger.said);
    if (is_there && stranger.said == wanted) {
      const int fd = stranger.fd;
      strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(i));
      return fd;
    }
    const absl::string_view greeting = kGreeting.substr(0, stranger.said.size());
    if (!is_there || !absl::StartsWith(stranger.said, greeting)) TurnAway(i);
  }
  return -1;
}

// Hears all who connect at once: one that says nothing keeps nobody out.
absl::StatusOr<int> PingPongListener::AwaitActive(const PingPongPlan& plan) {
  const std::string wanted = absl::StrCat(kGreeting, plan.token);
  for (;;) {
    const int active = HearStrangers(wanted);
    if (active >= 0) return active;
    std::vector<pollfd> descriptors{{fd_, POLLIN, 0}};
    for (const Stranger& stranger : strangers_) {
      if (stranger.said.size() < kHelloBytes) descriptors.push_back({stranger.fd, POLLIN, 0});
    }
    if (absl::Status ready = WaitForAny(descriptors.data(), descriptors.size(), LimitOf(plan));
        !ready.ok()) {
      return ready;
    }
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) continue;
    if (strangers_.size() >= kMostStrangers) TurnAway(0);
    strangers_.push_back({fd, ""});
  }
}

absl::Status PingPongListener::Serve(const PingPongPlan& plan) {
  if (!IsToken(plan.token)) return BadPlan();
  const absl::StatusOr<int> fd = AwaitActive(plan);
  absl::Status served = fd.status();
  if (fd.ok()) {
    MeasuringSocket socket(*fd, LimitOf(plan));
    served = socket.Send(&kWelcome, 1);
    if (served.ok()) served = Answer(socket);
  }
  while (!absl::IsCancelled(served) && !strangers_.empty()) TurnAway(0);
  return served;
}

}  // namespace coppice
