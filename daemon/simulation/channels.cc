#include "daemon/simulation/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace coppice {
namespace {

// The queue's memory fades as exp(-t / r), r = D / (1 - sqrt(u))^2 (J. Cohen, "The Single Server
// Queue", III.7.3, an upper bound here, where service is constant). After 32 r nothing is left.
constexpr double kRelaxations = 32;

}  // namespace

Noise::Noise(NoisePattern pattern, double share, double service_us, RandomStream random)
    : pattern_(pattern),
      share_(share),
      service_us_(service_us),
      next_us_(std::numeric_limits<double>::infinity()),
      random_(random) {
  if (service_us_ <= 0) share_ = 0;  // an endless bandwidth has no share to lose
  if (share_ <= 0) return;
  gap_us_ = service_us_ / share_;
  const double rest = 1 - std::sqrt(share_);
  forgets_after_us_ = kRelaxations * service_us_ / (rest * rest);
}

double Noise::Gap() {
  return pattern_ == NoisePattern::kPeriodic ? gap_us_ : -gap_us_ * std::log1p(-random_.Uniform());
}

double Noise::Begin(double now) {
  if (share_ <= 0) return 0;
  if (pattern_ == NoisePattern::kPeriodic) {
    const double until_next = gap_us_ * random_.Uniform();
    next_us_ = now + until_next;
    return std::max(0.0, until_next - gap_us_ + service_us_);
  }
  double work_us = 0;
  while (random_.Uniform() < share_) work_us += service_us_ * random_.Uniform();
  next_us_ = now + Gap();
  return work_us;
}

void Noise::Advance() { next_us_ += Gap(); }

uint32_t WaitingPackets::CountAt(double now) {
  while (first_ < starts_us_.size() && starts_us_[first_] <= now) ++first_;
  if (first_ == starts_us_.size()) {
    starts_us_.clear();
    first_ = 0;
  } else if (2 * first_ > starts_us_.size()) {
    starts_us_.erase(starts_us_.begin(), starts_us_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
  return static_cast<uint32_t>(starts_us_.size() - first_);
}

Channels::Channels(const Layout& layout, uint64_t seed) : layout_(layout) {
  wires_.reserve(layout.channels.size());
  for (const ChannelLayout& channel : layout.channels) {
    const double service_us = channel.us_per_byte * layout.profile.mtu_bytes;
    wires_.push_back({.noise = Noise(layout.pattern, channel.noise, service_us,
                                     RandomStream(seed, channel.index.value())),
                      .waiting = {},
                      .use = {.channel = channel.index}});
  }
}

void Channels::Enqueue(Wire& wire, double now, double start_us) {
  if (start_us <= now) return;
  const uint32_t ahead = wire.waiting.CountAt(now);
  wire.waiting.Add(start_us);
  wire.use.longest_queue = std::max(wire.use.longest_queue, ahead + 1);
}

// Others have used the wire all the time, whether anybody looked or not.
void Channels::BeginNoise(Wire& wire, double now) {
  const double work_us = wire.noise.Begin(now);
  wire.free_us = std::max(wire.free_us, now + work_us);
  const double service_us = wire.noise.service_us();
  double start_us = now + work_us;  // of the last in the queue, then of those before it
  while (start_us - service_us > now) start_us -= service_us;
  for (; start_us < now + work_us; start_us += service_us) Enqueue(wire, now, start_us);
}

void Channels::LetNoiseIn(Wire& wire, double now) {
  const double pause_us = now - std::max(wire.used_us, wire.free_us);
  if (wire.used_us < 0 || pause_us > wire.noise.forgets_after_us()) BeginNoise(wire, now);
  wire.used_us = now;
  while (wire.noise.next_us() <= now) {
    const double at = wire.noise.next_us();
    const double start_us = std::max(at, wire.free_us);
    Enqueue(wire, at, start_us);
    wire.free_us = start_us + wire.noise.service_us();
    ++wire.use.noise_packets;
    wire.noise.Advance();
  }
}

Crossing Channels::Cross(uint32_t channel, double now, double lag_us, uint64_t bytes) {
  Wire& wire = wires_[channel];
  LetNoiseIn(wire, now);
  const double us_per_byte = layout_.channels[channel].us_per_byte;
  const uint64_t with_header = bytes + layout_.header_bytes;
  const double wire_us = us_per_byte * static_cast<double>(with_header);
  const double start_us = std::max(now, wire.free_us);
  Enqueue(wire, now, start_us);
  wire.free_us = start_us + wire_us;
  ++wire.use.packets;
  wire.use.bytes += with_header;
  wire.use.busy_us += wire_us;
  const double tail_us =
      std::max(start_us + us_per_byte * static_cast<double>(bytes), now + lag_us);
  return {start_us, tail_us, wire.free_us};
}

std::vector<ChannelTraffic> Channels::Uses() const {
  std::vector<ChannelTraffic> uses;
  uses.reserve(wires_.size());
  for (const Wire& wire : wires_) uses.push_back(wire.use);
  return uses;
}

}  // namespace coppice
