#include "agents/node/ping_pong_samples.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace coppice {
namespace {

constexpr uint32_t kMostSamples = 1'000'000;
constexpr uint32_t kMostBytes = 1u << 30;

}  // namespace

bool PingPongNumbers::are_good() const {
  return pings > 0 && pings <= kMostSamples && transfers <= kMostSamples &&
         transfer_bytes <= kMostBytes && (transfers == 0 || transfer_bytes > 0);
}

std::array<unsigned char, 12> Encode(const PingPongNumbers& numbers) {
  const uint32_t words[] = {numbers.pings, numbers.transfers, numbers.transfer_bytes};
  std::array<unsigned char, 12> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(words[i / 4] >> (8 * (i % 4)));
  }
  return bytes;
}

PingPongNumbers Decode(const std::array<unsigned char, 12>& bytes) {
  uint32_t words[3] = {0, 0, 0};
  for (size_t i = 0; i < bytes.size(); ++i) {
    words[i / 4] |= static_cast<uint32_t>(bytes[i]) << (8 * (i % 4));
  }
  return {words[0], words[1], words[2]};
}

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

absl::StatusOr<PingPongFigures> TakeSamples(
    const PingPongNumbers& numbers,
    const std::function<absl::StatusOr<double>(size_t bytes)>& round_trip) {
  std::vector<double> latencies, rates;
  for (uint32_t i = 0; i < numbers.all_pings(); ++i) {
    const auto took = round_trip(PingPongNumbers::kPingBytes);
    if (!took.ok()) return took.status();
    if (i >= PingPongNumbers::kWarmUps) latencies.push_back(*took / 2);
  }
  PingPongFigures figures;
  figures.latency_us = SpreadOf(std::move(latencies), /*low_is_bad=*/false);
  for (uint32_t i = 0; i < numbers.all_transfers(); ++i) {
    const auto took = round_trip(numbers.transfer_bytes);
    if (!took.ok()) return took.status();
    // The answer's way back; never more than half, however the latency swings.
    const double way_us = *took - std::min(figures.latency_us.mean, *took / 2);
    const double bits = 8.0 * numbers.transfer_bytes;
    if (i > 0) rates.push_back(bits / std::max(way_us, 1e-3) / 1000);
  }
  figures.bandwidth_gbps = SpreadOf(std::move(rates), /*low_is_bad=*/true);
  return figures;
}

}  // namespace coppice
