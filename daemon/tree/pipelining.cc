#include "daemon/tree/pipelining.h"

#include <vector>

namespace coppice {
namespace {

uint64_t PacketsAfterFirst(uint64_t bytes, uint64_t mtu) {
  return mtu == 0 || bytes <= mtu ? 0 : (bytes - 1) / mtu;
}

}  // namespace

Pipeline PipelineOf(const CostProfile& profile, const Payload& payload) {
  const uint64_t mtu = profile.mtu_bytes;
  Pipeline pipeline;
  pipeline.more_up = PacketsAfterFirst(payload.up_bytes, mtu);
  pipeline.more_down = PacketsAfterFirst(payload.down_bytes, mtu);
  pipeline.streams = pipeline.more_up == pipeline.more_down;
  pipeline.packet = payload;
  if (pipeline.more_up > 0) {
    // Of every packet the same share is reduced: mostly all or nothing.
    const double share =
        static_cast<double>(payload.reduced_bytes) / static_cast<double>(payload.up_bytes);
    pipeline.packet.up_bytes = mtu;
    pipeline.packet.reduced_bytes = static_cast<uint64_t>(share * static_cast<double>(mtu));
  }
  if (pipeline.more_down > 0) pipeline.packet.down_bytes = mtu;
  return pipeline;
}

Stages SlowestStages(const CostProfile& profile, const AggregationTree& tree,
                     absl::Span<const EdgeCost> edges, const Payload& packet) {
  struct Busy {  // what one packet of everybody costs a node
    double up_us = 0, down_us = 0, enter_us = 0, leave_us = 0;
    bool has_port_in_use = false;
  };
  std::vector<Busy> busy(tree.node_count());
  Stages slowest;
  for (uint32_t child = 0; child < tree.node_count(); ++child) {
    if (tree.parents[child] == AggregationTree::kNoParent) continue;
    const auto node = static_cast<uint32_t>(tree.parents[child]);
    const NodeCost& cost = tree.IsRank(node) ? profile.nic : profile.switch_;
    const EdgeCost& edge = edges[child];
    const double match_us =
        cost.match_us + static_cast<double>(packet.reduced_bytes) * cost.reduce_us_per_byte;
    const double enter_us = WireUs(profile, packet.up_bytes, edge.port_gbps_up);
    const double leave_us = WireUs(profile, packet.down_bytes, edge.port_gbps_down);
    Busy& at = busy[node];
    at.up_us += std::max(match_us, enter_us);
    at.down_us += std::max(cost.send_us, leave_us);
    slowest.up_us =
        std::max({slowest.up_us, at.up_us, WireUs(profile, packet.up_bytes, edge.min_gbps_up)});
    slowest.down_us = std::max(
        {slowest.down_us, at.down_us, WireUs(profile, packet.down_bytes, edge.min_gbps_down)});
    if (!tree.IsRank(node)) continue;  // a switch has a port for every link
    at.enter_us += enter_us;
    at.leave_us += leave_us;
    if (edge.links_up > 0 && !at.has_port_in_use) {
      at.has_port_in_use = true;
      const bool has_parent = tree.parents[node] != AggregationTree::kNoParent;
      if (has_parent && edges[node].links_up > 0) {  // through the same port
        at.enter_us += WireUs(profile, packet.down_bytes, edge.port_gbps_up);
        at.leave_us += WireUs(profile, packet.up_bytes, edge.port_gbps_down);
      }
    }
    slowest.port_us = std::max({slowest.port_us, at.enter_us, at.leave_us});
  }
  return slowest;
}

void AddPackets(const Pipeline& pipeline, const Stages& stages, Prediction& first) {
  const double aggregate = pipeline.AggregateUs(stages), total = pipeline.TotalUs(stages);
  first.aggregate_us += aggregate;
  first.distribute_us += total - aggregate;
  first.total_us += total;
}

}  // namespace coppice
