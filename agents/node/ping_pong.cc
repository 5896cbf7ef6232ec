#include "agents/node/ping_pong.h"

#include <endian.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agents/node/perftest.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxSamples = 1'000'000;
constexpr uint32_t kMaxBytes = 1u << 30;

constexpr size_t kPingBytes = PingPongNumbers::kPingBytes;
constexpr size_t kReceiveBytes = size_t{1} << 20;
// Connections that have not said who they are.
constexpr size_t kMaxStrangers = 16;

constexpr size_t kTokenBytes = 32;
constexpr size_t kGreetingBytes = 20 + kTokenBytes;
constexpr char kWelcome = 'K';

// The first is that of TCP alone, the third the one with which perftest measures over verbs. The
// second was that of agents with a ping-pong of their own over verbs, and is turned away.
std::string GreetingOf(bool wants_verbs, absl::string_view token) {
  return absl::StrCat("coppice-ping-pong/", wants_verbs ? 3 : 1, " ", token);
}

// Whether it is one or its beginning, with whatever token.
bool MayBeGreeting(absl::string_view said) {
  for (const bool wants_verbs : {false, true}) {
    const std::string greeting = GreetingOf(wants_verbs, "");
    if (absl::StartsWith(said, absl::string_view(greeting).substr(0, said.size()))) return true;
  }
  return false;
}

// Sends `size` bytes and waits for the answer; microseconds that it took.
absl::StatusOr<double> RoundTrip(MeasuringSocket& socket, const std::vector<char>& bytes,
                                 size_t size) {
  char answer[kPingBytes];
  const auto start = std::chrono::steady_clock::now();
  if (absl::Status status = socket.Send(bytes.data(), size); !status.ok()) return status;
  if (absl::Status status = socket.Receive(answer, sizeof answer); !status.ok()) return status;
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

absl::Status Introduce(MeasuringSocket& socket, bool wants_verbs, const std::string& token,
                       const PingPongNumbers& numbers) {
  const std::string hello = GreetingOf(wants_verbs, token);
  if (absl::Status status = socket.Send(hello.data(), hello.size()); !status.ok()) return status;
  char answer = 0;
  if (absl::Status status = socket.Receive(&answer, 1); !status.ok()) {
    if (!absl::IsUnavailable(status)) return status;
    return absl::PermissionDeniedError("the peer does not take the token of this measurement");
  }
  if (answer != kWelcome) return absl::UnavailableError("the peer is no agent of this release");
  const uint32_t header[] = {htole32(numbers.pings), htole32(numbers.transfers),
                             htole32(numbers.transfer_bytes)};
  return socket.Send(header, sizeof header);
}

// Answers pings, then transfers, as many as the active side says.
absl::Status AnswerOverTcp(MeasuringSocket& socket, const PingPongNumbers& numbers) {
  char ping[kPingBytes];
  for (uint32_t i = 0; i < numbers.all_pings(); ++i) {
    if (absl::Status status = socket.Receive(ping, sizeof ping); !status.ok()) return status;
    if (absl::Status status = socket.Send(ping, sizeof ping); !status.ok()) return status;
  }
  std::vector<char> bytes(std::min<size_t>(kReceiveBytes, numbers.transfer_bytes));
  for (uint32_t i = 0; i < numbers.all_transfers(); ++i) {
    for (size_t left = numbers.transfer_bytes; left > 0;) {
      const size_t part = std::min(left, bytes.size());
      if (absl::Status status = socket.Receive(bytes.data(), part); !status.ok()) return status;
      left -= part;
    }
    if (absl::Status status = socket.Send(ping, sizeof ping); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ServeRounds(MeasuringSocket& socket, bool wants_verbs, const PingPongPlan& plan) {
  if (absl::Status status = socket.Send(&kWelcome, 1); !status.ok()) return status;
  uint32_t header[3];
  if (absl::Status status = socket.Receive(header, sizeof header); !status.ok()) return status;
  const PingPongNumbers numbers{le32toh(header[0]), le32toh(header[1]), le32toh(header[2])};
  if (!numbers.are_good()) {
    return absl::InvalidArgumentError("the active side asks for what nobody measures");
  }
  if (wants_verbs) {
    const absl::StatusOr<bool> is_over = AnswerOverVerbs(socket, plan.port, numbers);
    if (!is_over.ok() || *is_over) return is_over.status();
  }
  return AnswerOverTcp(socket, numbers);
}

absl::StatusOr<PingPongFigures> MeasureOverTcp(MeasuringSocket& socket,
                                               const PingPongNumbers& numbers) {
  const std::vector<char> bytes(std::max<size_t>(kPingBytes, numbers.transfer_bytes), 'p');
  std::vector<double> latencies, rates;
  for (uint32_t i = 0; i < numbers.all_pings(); ++i) {
    const auto took = RoundTrip(socket, bytes, kPingBytes);
    if (!took.ok()) return took.status();
    if (i >= PingPongNumbers::kWarmUps) latencies.push_back(*took / 2);
  }
  PingPongFigures figures;
  figures.latency_us = SpreadOf(std::move(latencies), /*low_is_bad=*/false);
  for (uint32_t i = 0; i < numbers.all_transfers(); ++i) {
    const auto took = RoundTrip(socket, bytes, numbers.transfer_bytes);
    if (!took.ok()) return took.status();
    // The answer's way back; never more than half, however the latency swings.
    const double way_us = *took - std::min(figures.latency_us.mean, *took / 2);
    const double bits = 8.0 * numbers.transfer_bytes;
    if (i > 0) rates.push_back(bits / std::max(way_us, 1e-3) / 1000);
  }
  figures.bandwidth_gbps = SpreadOf(std::move(rates), /*low_is_bad=*/true);
  return figures;
}

// Reads what is there, up to a whole greeting; false: it has left.
bool Hear(int fd, std::string& said) {
  char bytes[kGreetingBytes];
  if (said.size() == kGreetingBytes) return true;
  const ssize_t count = recv(fd, bytes, kGreetingBytes - said.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
  if (count <= 0) return false;
  said.append(bytes, static_cast<size_t>(count));
  return true;
}

bool IsToken(const std::string& token) {
  return token.size() == kTokenBytes && absl::c_all_of(token, absl::ascii_isxdigit);
}

MeasuringLimit LimitOf(const PingPongPlan& plan) { return {plan.deadline, plan.is_stopped}; }

absl::Status BadPlan() {
  return absl::InvalidArgumentError(
      "ping-pong: give a token of 32 hex digits, 1 to 1000000 samples and at most 1 GiB of bytes");
}

}  // namespace

bool PingPongNumbers::are_good() const {
  return pings > 0 && pings <= kMaxSamples && transfers <= kMaxSamples &&
         transfer_bytes <= kMaxBytes && (transfers == 0 || transfer_bytes > 0);
}

Spread SpreadOf(std::vector<double> samples, bool low_is_bad) {
  Spread spread;
  if (samples.empty()) return spread;
  absl::c_sort(samples);
  if (low_is_bad) absl::c_reverse(samples);
  const size_t dropped = samples.size() == 1 ? 0 : (samples.size() + 9) / 10;
  samples.resize(samples.size() - dropped);
  const double count = static_cast<double>(samples.size());
  spread.mean = absl::c_accumulate(samples, 0.0) / count;
  double squares = 0;
  for (const double sample : samples) squares += (sample - spread.mean) * (sample - spread.mean);
  spread.deviation = std::sqrt(squares / count);
  spread.samples = static_cast<uint32_t>(samples.size());
  return spread;
}

absl::StatusOr<PingPongFigures> MeasureTo(const std::string& address, const PingPongPlan& plan) {
  const PingPongNumbers numbers{plan.latency_samples, plan.bandwidth_samples, plan.bandwidth_bytes};
  if (!numbers.are_good() || !IsToken(plan.token)) return BadPlan();
  const bool is_verbs = plan.transport == PingPongTransport::kVerbs;
  auto socket = MeasuringSocket::Connect(address, LimitOf(plan));
  if (!socket.ok()) return socket.status();
  absl::Status status = Introduce(*socket, is_verbs, plan.token, numbers);
  if (!status.ok()) return status;
  if (!is_verbs) return MeasureOverTcp(*socket, numbers);
  const auto over_verbs = MeasureOverVerbs(*socket, plan.port, numbers);
  if (!absl::IsFailedPrecondition(over_verbs.status()) || !plan.or_tcp) return over_verbs;
  if (status = TurnToTcp(*socket); !status.ok()) return status;
  auto figures = MeasureOverTcp(*socket, numbers);
  if (figures.ok()) figures->remark = std::string(over_verbs.status().message());
  return figures;
}

absl::StatusOr<PingPongListener> PingPongListener::Listen(const std::string& address) {
  absl::StatusOr<OwnedFd> fd = MeasuringSocket::Listen(address);
  if (!fd.ok()) return fd.status();
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(fd->get(), reinterpret_cast<sockaddr*>(&bound), &size);
  const uint16_t port = bound.ss_family == AF_INET6
                            ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                            : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port;
  return PingPongListener(*std::move(fd), ntohs(port));
}

std::optional<PingPongListener::Active> PingPongListener::HearStrangers(const std::string& token) {
  for (size_t i = strangers_.size(); i-- > 0;) {
    Stranger& stranger = strangers_[i];
    const auto at = strangers_.begin() + static_cast<std::ptrdiff_t>(i);
    const bool is_there = Hear(stranger.fd.get(), stranger.said);
    for (const bool wants_verbs : {false, true}) {
      if (!is_there || stranger.said != GreetingOf(wants_verbs, token)) continue;
      Active active{std::move(stranger.fd), wants_verbs};
      strangers_.erase(at);
      return active;
    }
    if (!is_there || !MayBeGreeting(stranger.said)) strangers_.erase(at);
  }
  return std::nullopt;
}

// Hears all who connect at once: one that says nothing keeps nobody out.
absl::StatusOr<PingPongListener::Active> PingPongListener::AwaitActive(const PingPongPlan& plan) {
  for (;;) {
    if (auto active = HearStrangers(plan.token); active) return *std::move(active);
    std::vector<pollfd> descriptors{{fd_.get(), POLLIN, 0}};
    for (const Stranger& stranger : strangers_) {
      if (stranger.said.size() < kGreetingBytes)
        descriptors.push_back({stranger.fd.get(), POLLIN, 0});
    }
    if (absl::Status ready = WaitForAny(descriptors.data(), descriptors.size(), LimitOf(plan));
        !ready.ok()) {
      return ready;
    }
    OwnedFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.get() < 0) continue;
    if (strangers_.size() >= kMaxStrangers) strangers_.erase(strangers_.begin());
    strangers_.push_back({std::move(fd)});
  }
}

absl::Status PingPongListener::Serve(const PingPongPlan& plan) {
  if (!IsToken(plan.token)) return BadPlan();
  absl::StatusOr<Active> active = AwaitActive(plan);
  absl::Status served = active.status();
  if (active.ok()) {
    MeasuringSocket socket(std::move(active->fd), LimitOf(plan));
    served = ServeRounds(socket, active->wants_verbs, plan);
  }
  if (!absl::IsCancelled(served)) strangers_.clear();
  return served;
}

}  // namespace coppice
