// One measurement between two nodes over TCP.
//
//   active                                passive
//     | -- "coppice-ping-pong/1 " token ---> |  others than the token's holder are turned away
//     | <------------- 'K' ----------------- |
//     | -- number of pings, transfers, size ->|
//     | -- 8 B --> <-- 8 B --   x pings      |  latency: half of each round trip
//     | -- size --> <-- 8 B --  x transfers  |  bandwidth: size over the time less one latency
//
// The worst tenth of the samples (rounded up) is dropped (Wang 2015, 4.2): what the operating
// system took away. Blocks with a deadline; prints nothing. Knows neither gRPC nor the daemon.
#ifndef COPPICE_AGENTS_NODE_PING_PONG_H_
#define COPPICE_AGENTS_NODE_PING_PONG_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace coppice {

struct PingPongPlan {
  std::string token;  // 32 hex digits
  uint32_t latency_samples = 0;
  uint32_t bandwidth_samples = 0;
  uint32_t bandwidth_bytes = 0;
  std::chrono::steady_clock::time_point deadline;
  const std::atomic<bool>* is_stopped = nullptr;  // set: give up soon; null: never
};

struct Spread {
  double mean = 0;
  double deviation = 0;  // standard deviation of the samples kept
  uint32_t samples = 0;  // kept
};

struct PingPongFigures {
  Spread latency_us;
  Spread bandwidth_gbps;
};

// Of the samples less the worst tenth: the greatest ones, or with `low_is_bad` the least.
Spread SpreadOf(std::vector<double> samples, bool low_is_bad);

// Measures the way to `address` ("HOST:PORT"). INVALID_ARGUMENT: the plan has no samples, too many,
// or a bad token or address. UNAVAILABLE: nobody is there, or the peer broke off.
// PERMISSION_DENIED: the peer does not take the token. DEADLINE_EXCEEDED. CANCELLED: stopped.
absl::StatusOr<PingPongFigures> MeasureTo(const std::string& address, const PingPongPlan& plan);

// The passive side.
class PingPongListener final {
 public:
  // `address`: "HOST:PORT"; port 0 is any free one. INVALID_ARGUMENT, UNAVAILABLE.
  static absl::StatusOr<PingPongListener> Listen(const std::string& address);
  PingPongListener(PingPongListener&& other) noexcept;
  ~PingPongListener();

  uint16_t port() const { return port_; }
  // Serves the one who names the plan's token, to the end. DEADLINE_EXCEEDED: nobody came, or not
  // in time. UNAVAILABLE: the active side broke off. CANCELLED: stopped; who names another's token
  // meanwhile may have come for what is served next, so it is kept until that ends.
  absl::Status Serve(const PingPongPlan& plan);

 private:
  // One that connected and has not named the token.
  struct Stranger {
    int fd;
    std::string said;
  };

  PingPongListener(int fd, uint16_t port) : fd_(fd), port_(port) {}

  // The one that has said all of `wanted`, taken out of strangers_; -1: none has yet.
  int HearStrangers(const std::string& wanted);
  void TurnAway(size_t stranger);
  absl::StatusOr<int> AwaitActive(const PingPongPlan& plan);

  int fd_;
  uint16_t port_;
  std::vector<Stranger> strangers_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PING_PONG_H_
