// Long messages (spec: beyond 3): a payload longer than one packet goes packet by packet, each on
// the heels of the one before.
//
//   packet 0   leaf ==phi==links==> root ==links==> leaf        T(first packet)
//   packet 1       ########                                     one slowest stage later
//   packet 2               ########                             and one more
//
//   T = T(first packet) + (packets - 1) * slowest stage
//
// A stage is what one packet of everybody costs one resource that takes packets one by one:
//
//   node up     sum over its children of max(theta + S*gamma, S / B_port)
//   node down   sum over its children of max(c_send, S / B_port)
//   edge        S / B_min each way
//   NIC port    S / B_port of all that enter it, or leave it, in both directions of the tree
//
// Where as many packets go down as come up, packet i goes down as soon as the root has reduced it:
// both directions are under way at once, and the slowest stage of all counts once. Else the result
// leaves when everything is reduced: each direction has its own packets and slowest stage, and the
// port is no stage of its own (its packets of one direction are in the node's). phi is latency: a
// node stores and forwards as many packets at a time as come. What packets do to each other beyond
// that is what packet_metrics.h follows them for.
#ifndef COPPICE_DAEMON_TREE_PIPELINING_H_
#define COPPICE_DAEMON_TREE_PIPELINING_H_

#include <algorithm>
#include <cstdint>

#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

// S / B: what the payload of a packet adds to its time under way; 0 where the rate is unknown.
inline double SerialisationUs(uint64_t bytes, double gbps) {
  return gbps > 0 ? static_cast<double>(bytes) * 8e-3 / gbps : 0;
}
// How long a packet keeps a wire or port from others: its header does so, too. (That one header is
// under way is in l and phi, which are measured with whole packets.)
inline double WireUs(const CostProfile& profile, uint64_t bytes, double gbps) {
  return SerialisationUs(bytes + profile.header_bytes, gbps);
}

// Slowest stages, per packet.
struct Stages {
  double up_us = 0, down_us = 0;
  double port_us = 0;  // of both directions together; counts where they overlap
};

// How a payload is cut.
struct Pipeline {
  Payload packet;                       // the first, longest one
  uint64_t more_up = 0, more_down = 0;  // packets after it
  bool streams = false;                 // both directions are under way at once

  bool is_one_packet() const { return more_up == 0 && more_down == 0; }

  // What the packets after the first add to aggregation, and to both directions together.
  double AggregateUs(const Stages& stages) const {
    return static_cast<double>(more_up) *
           (streams ? std::max(stages.up_us, stages.port_us) : stages.up_us);
  }
  double TotalUs(const Stages& stages) const {
    if (streams) {
      return static_cast<double>(more_up) *
             std::max({stages.up_us, stages.down_us, stages.port_us});
    }
    return static_cast<double>(more_up) * stages.up_us +
           static_cast<double>(more_down) * stages.down_us;
  }
};

// The slowest stages of a tree for `packet`, each edge's wires and each NIC's port for themselves:
// where edges share links, contended_metrics.h knows slower ones. O(nodes).
Stages SlowestStages(const CostProfile& profile, const AggregationTree& tree,
                     absl::Span<const EdgeCost> edges, const Payload& packet);

// `first` is of the first packet; makes it that of all.
void AddPackets(const Pipeline& pipeline, const Stages& stages, Prediction& first);

// mtu_bytes = 0 counts as no limit. O(1).
Pipeline PipelineOf(const CostProfile& profile, const Payload& payload);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_PIPELINING_H_
