// The samples of one measurement, whatever they are taken over: how many, how they are asked of the
// peer, and what is made of them.
//
// The worst tenth of the samples (rounded up) is dropped (Wang 2015, 4.2): what the operating
// system took away.
#ifndef COPPICE_AGENTS_NODE_PING_PONG_SAMPLES_H_
#define COPPICE_AGENTS_NODE_PING_PONG_SAMPLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace coppice {

// What the active side asks of the passive one.
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

// As three numbers of 32 bits, the least byte first.
std::array<unsigned char, 12> Encode(const PingPongNumbers& numbers);
PingPongNumbers Decode(const std::array<unsigned char, 12>& bytes);

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

// `round_trip` sends so many bytes and waits for an answer of kPingBytes: microseconds that it
// took. Its first error ends the measurement.
absl::StatusOr<PingPongFigures> TakeSamples(
    const PingPongNumbers& numbers,
    const std::function<absl::StatusOr<double>(size_t bytes)>& round_trip);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PING_PONG_SAMPLES_H_
