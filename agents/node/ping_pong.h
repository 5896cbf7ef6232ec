// One measurement between two nodes: they meet over TCP, and measure over it, or run perftest over
// verbs.
//
//   active                                passive
//     | -- "coppice-ping-pong/1 " token ---> |  others than the token's holder are turned away
//     | <------------- 'K' ----------------- |
//     | -- number of pings, transfers, size ->|
//     | -- 8 B --> <-- 8 B --   x pings      |  latency: half of each round trip
//     | -- size --> <-- 8 B --  x transfers  |  bandwidth: size over the time less one latency
//
// That is TCP alone. Where verbs are wanted the greeting is "coppice-ping-pong/3 ", and after the
// numbers each side runs perftest's programs (perftest/perftest.h); if that fails, pings and
// transfers come over TCP as above. The passive side serves both. The daemon asks for verbs only
// agents that have said that they know them so.
//
// Blocks with a deadline; prints nothing. Knows neither gRPC nor the daemon.
#ifndef COPPICE_AGENTS_NODE_PING_PONG_H_
#define COPPICE_AGENTS_NODE_PING_PONG_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/node/measuring_socket.h"
#include "agents/node/node_facts.h"

namespace coppice {

// What the active side asks of the passive one: how many samples. Of those over TCP the worst tenth
// (rounded up) is dropped (Wang 2015, 4.2): what the operating system took away.
struct PingPongNumbers {
  static constexpr size_t kPingBytes = 8;
  // Not measured: the first ones fill caches and wake the peer.
  static constexpr uint32_t kWarmUps = 8;

  uint32_t pings = 0, transfers = 0, transfer_bytes = 0;

  // With those that are not measured.
  uint32_t all_pings() const { return pings + kWarmUps; }
  uint32_t all_transfers() const { return transfers == 0 ? 0 : transfers + 1; }
  // Whether anybody measures that, whoever holds the token.
  bool are_good() const;
};

struct Spread {
  double mean = 0;
  double deviation = 0;  // standard deviation of the samples kept
  uint32_t samples = 0;  // kept
};

enum class PingPongTransport { kTcp, kVerbs };

struct PingPongFigures {
  Spread latency_us;
  Spread bandwidth_gbps;
  PingPongTransport transport = PingPongTransport::kTcp;
  std::string remark;  // why it is not over verbs, though it was to be; else empty
};

// Of the samples less the worst tenth: the greatest ones, or with `low_is_bad` the least.
Spread SpreadOf(std::vector<double> samples, bool low_is_bad);

struct PingPongPlan {
  std::string token;  // 32 hex digits
  uint32_t latency_samples = 0;
  uint32_t bandwidth_samples = 0;
  uint32_t bandwidth_bytes = 0;
  std::chrono::steady_clock::time_point deadline;
  const std::atomic<bool>* is_stopped = nullptr;  // set: give up soon; null: never
  // Of the active side, which says it to the passive one.
  PingPongTransport transport = PingPongTransport::kTcp;
  bool or_tcp = false;  // where verbs fail
  PortChoice port{};    // this side's, for verbs
};

// Measures the way to `address` ("HOST:PORT"). INVALID_ARGUMENT: the plan has no samples, too many,
// or a bad token or address. UNAVAILABLE: nobody is there, or the peer broke off.
// PERMISSION_DENIED: the peer does not take the token. FAILED_PRECONDITION: it was to be over verbs
// alone, and why it cannot be, naming port and program. DEADLINE_EXCEEDED. CANCELLED: stopped.
absl::StatusOr<PingPongFigures> MeasureTo(const std::string& address, const PingPongPlan& plan);

// The passive side.
class PingPongListener final {
 public:
  // `address`: "HOST:PORT"; port 0 is any free one. INVALID_ARGUMENT, UNAVAILABLE.
  static absl::StatusOr<PingPongListener> Listen(const std::string& address);

  uint16_t port() const { return port_; }
  // Serves the one who names the plan's token, to the end. DEADLINE_EXCEEDED: nobody came, or not
  // in time. UNAVAILABLE: the active side broke off. FAILED_PRECONDITION: it did so because verbs
  // failed on this side. CANCELLED: stopped; who names another's token meanwhile may have come for
  // what is served next, so it is kept until that ends.
  absl::Status Serve(const PingPongPlan& plan);

 private:
  // One that connected and has not named the token.
  struct Stranger {
    OwnedFd fd;
    std::string said{};
  };
  struct Active {
    OwnedFd fd;
    bool wants_verbs;
  };

  PingPongListener(OwnedFd fd, uint16_t port) : fd_(std::move(fd)), port_(port) {}

  // The one that has named the token, taken out of strangers_; none: none has yet.
  std::optional<Active> HearStrangers(const std::string& token);
  absl::StatusOr<Active> AwaitActive(const PingPongPlan& plan);

  OwnedFd fd_;
  uint16_t port_;
  std::vector<Stranger> strangers_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PING_PONG_H_
