// All trees of one simulation as flat arrays, checked: what a run reads and never changes.
#ifndef COPPICE_DAEMON_SIMULATION_LAYOUT_H_
#define COPPICE_DAEMON_SIMULATION_LAYOUT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/simulation/simulator.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_SIMULATION_LAYOUT_H_
