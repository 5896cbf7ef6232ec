// Packet by packet, what collectives on given trees take on a given fabric: the independent judge
// of the exact evaluation (spec: beyond 1 to 3), which knows no contention, and the place where
// contention, noise and pipelining are seen. Shares no code with tree_metrics.h.
//
//   channel  bandwidth, an endless FIFO queue, one packet on the wire at a time. A head goes on
//            link_us after it entered; a packet takes size / bandwidth of each channel, and its
//            tail is never ahead of where it was on a slower channel before: alone on its way it
//            pays link_us per link and S / B_min once.
//   node     upwards takes packets in order of arrival, one per max(theta + S*gamma, S / B_port),
//            and hands packet i on phi after it has its own and every child's packet i. Downwards
//            it copies packet i to its children in order of node number, one copy per
//            max(c_send, S / B_port); a copy enters the fabric c_send + phi after its turn.
//   units    that match and copy belong to a tree's node, so that collectives meet on channels
//            only; those of a forest to the rank, with shared_units to the port or switch: all
//            trees there take turns, first come, first served, one packet or copy at a time.
//   packets  payloads beyond the MTU are split; nothing to send is one packet of 0 bytes. Packet i
//            of the result leaves the root when it is reduced, if as many go down as come up, else
//            when everything is.
//   noise    channels.h; on each channel by itself, a share of its bandwidth.
//
// Packets between two ports of one host on one switch cross no channel: same_host_us is in place of
// phi, links and wire; they are matched, reduced and copied as all others are, and a leaf offers
// the next one when its parent has taken the one before. Where the profile's
// phi contains S / B_min, a packet counts as received when its head is.
//
// Equal arguments give equal results, to the last bit: events of one instant are handled in order
// of collective, node, direction and packet.
#ifndef COPPICE_DAEMON_SIMULATION_SIMULATOR_H_
#define COPPICE_DAEMON_SIMULATION_SIMULATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

struct SimulatedCollective {
  AggregationTree tree;
  Payload payload;
  double start_us = 0;
  std::vector<double> skew_us;  // [rank] from the start until its data is there; empty: 0
  // Trees of one forest, of the same ranks: what one rank matches and copies, it does for all of
  // them in turn.
  std::optional<uint32_t> forest = std::nullopt;
};

enum class NoisePattern : uint8_t { kPoisson, kPeriodic };

struct SimulationOptions {
  double noise = 0;  // share of every channel's bandwidth, on top of the snapshot's load
  NoisePattern pattern = NoisePattern::kPoisson;
  // What every packet of a collective carries on the wire beside its payload: keeps wires and ports
  // busy. nullopt: what the profile says.
  std::optional<uint32_t> header_bytes = std::nullopt;
  bool shared_units = false;
  uint64_t max_events = 100'000'000;  // noise is not counted
};

// Microseconds from the collective's start.
struct CollectiveTimes {
  double aggregate_us = 0;        // until the root has reduced the last packet
  double distribute_us = 0;       // from then until the last rank has the last packet
  double total_us = 0;            // init + aggregate + distribute
  std::vector<double> finish_us;  // [rank] when it has the last packet, init included
};

// One channel that some tree crosses. All but `noise_packets` and `longest_queue` count packets of
// collectives alone.
struct ChannelTraffic {
  ChannelIndex channel;
  uint64_t packets = 0, bytes = 0;  // bytes with headers
  uint64_t up_packets = 0;          // of these packets, those towards a root
  double busy_us = 0;               // bytes / bandwidth
  uint64_t noise_packets = 0;       // that came before the last packet of a collective
  uint32_t longest_queue = 0;       // packets waiting for the wire, of noise too
};

struct SimulationResult {
  std::vector<CollectiveTimes> collectives;
  std::vector<ChannelTraffic> channels;  // by index
  uint64_t events = 0;
};

struct Layout;

// Trees laid out on a fabric once, to be run with many seeds. Immutable; thread-safe.
class Simulator final {
 public:
  // Walks the route of every edge both ways. INVALID_ARGUMENT: a tree that is none, a payload that
  // reduces more than it moves up, times that are negative or not finite, a profile without an MTU,
  // noise and load that leave a channel nothing; NOT_FOUND: an edge without a route;
  // RESOURCE_EXHAUSTED: more events than the options allow. Messages name collective, node or link.
  static absl::StatusOr<Simulator> Prepare(const Snapshot& snapshot, const CostProfile& profile,
                                           absl::Span<const SimulatedCollective> collectives,
                                           const SimulationOptions& options);

  // O(events log nodes) and the noise packets that crossed channels see meanwhile.
  SimulationResult Run(uint64_t seed) const;

  // Of one run, without noise.
  uint64_t event_count() const;

 private:
  explicit Simulator(std::shared_ptr<const Layout> layout) : layout_(std::move(layout)) {}
  std::shared_ptr<const Layout> layout_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_SIMULATION_SIMULATOR_H_
