// What a simulation runs on: all its trees as flat arrays, and the channels that they cross.
//
// The wires: every channel that some tree crosses, with its queue and its noise.
//
// Packets are offered in order of time, so that first in, first out needs no queue of packets: one
// that comes at t starts at max(t, end of the one before). One that comes from a slower channel
// takes no more of the wire than others do, size / bandwidth; its tail may leave later, in between
// packets that follow. Knows nothing of trees.
#ifndef COPPICE_DAEMON_SIMULATION_CHANNELS_H_
#define COPPICE_DAEMON_SIMULATION_CHANNELS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/simulation/simulator.h"

namespace coppice {

// All trees of one simulation as flat arrays, checked: what a run reads and never changes.

// A payload cut into packets.
struct PacketTrain {
  uint32_t count = 1;         // at least 1
  uint64_t packet_bytes = 0;  // of all but the last
  uint64_t last_bytes = 0;
  uint64_t Bytes(uint32_t packet) const { return packet + 1 < count ? packet_bytes : last_bytes; }
  friend bool operator==(const PacketTrain&, const PacketTrain&) = default;
};

struct ChannelLayout {
  ChannelIndex index;
  double us_per_byte = 0;  // 0: no limit known
  double noise = 0;        // share of its bandwidth
};

struct CollectiveLayout {
  uint32_t first_node = 0, node_count = 0, rank_count = 0;
  uint32_t root = 0;  // in Layout::nodes
  double start_us = 0;
  PacketTrain up, down;
  double reduced_share = 0;  // of the bytes that go up
};

struct NodeLayout {
  static constexpr uint32_t kNoParent = UINT32_MAX;
  uint32_t parent = kNoParent;  // in Layout::nodes
  uint32_t collective = 0;
  uint32_t first_child = 0, child_count = 0;  // in Layout::children, by node number
  uint32_t up = 0, down = 0,
           end = 0;           // in Layout::hops: [up, down) to the parent, [down, end) back
  uint32_t first_packet = 0;  // of an inner node, in a run's counters of missing packets
  uint32_t unit = 0;          // that matches and copies for it
  bool is_rank = true;
  double own_data_us = 0;  // when its own data is there
};

struct Layout {
  CostProfile profile;
  NoisePattern pattern = NoisePattern::kPoisson;
  uint32_t header_bytes = 0;
  std::vector<CollectiveLayout> collectives;
  std::vector<NodeLayout> nodes;  // of all trees, one after another
  std::vector<uint32_t> children;
  std::vector<uint32_t> hops;           // positions in `channels`
  std::vector<ChannelLayout> channels;  // that some route crosses, by index
  uint64_t event_count = 0;
  uint32_t packet_counters = 0;
  uint32_t unit_count = 0;
};

// Errors as Simulator::Prepare.
absl::StatusOr<std::shared_ptr<const Layout>> LayOut(
    const Snapshot& snapshot, const CostProfile& profile,
    absl::Span<const SimulatedCollective> collectives, const SimulationOptions& options);

// Routes alone, for who plays other things over them than trees: `hops`, `channels` and what goes
// with them, and where each way begins.
struct RouteLayout {
  std::shared_ptr<const Layout> layout;
  std::vector<uint32_t> begin;  // [way + 1] in Layout::hops
};
struct Way {
  VertexIndex from, to;
};
// Errors as Simulator::Prepare.
absl::StatusOr<RouteLayout> LayOutRoutes(const Snapshot& snapshot, const CostProfile& profile,
                                         absl::Span<const Way> ways,
                                         const SimulationOptions& options);

// INVALID_ARGUMENT: a profile without an MTU or with a time that is none; noise that is no share.
absl::Status CheckConditions(const CostProfile& profile, const SimulationOptions& options);

// `bytes` in packets of `mtu_bytes` (not 0); nothing is one packet of 0 bytes. RESOURCE_EXHAUSTED:
// more than `max_events` packets.
absl::StatusOr<PacketTrain> SplitIntoPackets(uint64_t bytes, uint64_t mtu_bytes,
                                             uint64_t max_events);
absl::Status TooManyEvents(uint64_t max_events);

// What others send over one channel: packets of one size that arrive at random or in step, drawn
// only when somebody looks.
//
// Before a collective's first packet the channel has been busy for ever. What is then left in its
// queue is drawn at once from the stationary distribution, with no warm-up: for Poisson arrivals at
// utilisation u and constant service D, the unfinished work is the sum of N uniform shares of D,
// P(N = n) = (1 - u) u^n (Pollaczek-Khinchine; L. Kleinrock, "Queueing Systems" 1, 5.12). Its mean
// is D u / (2 (1 - u)), the w(u) of the cost model.

// Random numbers of one channel: SplitMix64 (G. Steele et al., OOPSLA 2014), its state from seed
// and channel alone, so that a channel sees the same noise whatever trees cross it.
class RandomStream final {
 public:
  RandomStream(uint64_t seed, uint64_t stream) : state_(Mix(seed) ^ Mix(~stream)) {}
  double Uniform() {  // [0, 1)
    state_ += kStep;
    return static_cast<double>(Mix(state_) >> 11) * 0x1p-53;
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

class Noise final {
 public:
  // `service_us` is how long one packet holds the channel, `share` in [0, 1) of the time.
  Noise(NoisePattern pattern, double share, double service_us, RandomStream random);

  // Starts afresh at `now`, in equilibrium. Returns the work that is then unfinished.
  double Begin(double now);

  // When the next packet arrives; infinite without noise.
  double next_us() const { return next_us_; }
  // Lets it arrive and draws the one after it.
  void Advance() { next_us_ += Gap(); }

  double service_us() const { return service_us_; }
  // After a pause this long, what is in the queue no longer depends on what was there before it.
  double forgets_after_us() const { return forgets_after_us_; }

 private:
  double Gap();

  NoisePattern pattern_;
  double share_, service_us_, gap_us_ = 0, forgets_after_us_ = 0, next_us_;
  RandomStream random_;
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
    std::deque<double> waiting_us;  // start times of the packets that wait, in order
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
