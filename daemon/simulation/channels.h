// The wires: every channel that some tree crosses, with its queue and its noise.
//
// Packets are offered in order of time, so that first in, first out needs no queue of packets: one
// that comes at t starts at max(t, end of the one before). One that comes from a slower channel
// takes no more of the wire than others do, size / bandwidth; its tail may leave later, in between
// packets that follow. Knows nothing of trees.
#ifndef COPPICE_DAEMON_SIMULATION_CHANNELS_H_
#define COPPICE_DAEMON_SIMULATION_CHANNELS_H_

#include <cstdint>
#include <vector>

#include "daemon/simulation/layout.h"
#include "daemon/simulation/noise.h"
#include "daemon/simulation/simulator.h"

namespace coppice {

// Start times of the packets that wait for one wire, in order; forgets those that have started.
class WaitingPackets final {
 public:
  void Add(double start_us) { starts_us_.push_back(start_us); }
  uint32_t CountAt(double now);

 private:
  std::vector<double> starts_us_;
  size_t first_ = 0;
};

// When a packet is on one channel.
struct Crossing {
  double head_us;  // its head enters
  double tail_us;  // its tail has entered, not counting the header: that is in link_us
  double free_us;  // the next one may enter
};

class Channels final {
 public:
  Channels(const Layout& layout, uint64_t seed);

  // Offers a packet whose head comes at `now`, not before any that was offered to this channel
  // before, and whose tail comes `lag_us` later; `bytes` of payload. `channel` is a position in
  // Layout::channels.
  Crossing Cross(uint32_t channel, double now, double lag_us, uint64_t bytes);

  std::vector<ChannelTraffic> Uses() const;

 private:
  struct Wire {
    double free_us = 0;
    double used_us = -1;  // last looked at; < 0: never
    Noise noise;
    WaitingPackets waiting;
    ChannelTraffic use;
  };

  static void LetNoiseIn(Wire& wire, double now);
  static void BeginNoise(Wire& wire, double now);
  static void Enqueue(Wire& wire, double now, double start_us);

  const Layout& layout_;
  std::vector<Wire> wires_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_SIMULATION_CHANNELS_H_
