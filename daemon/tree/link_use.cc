#include "daemon/tree/link_use.h"

#include <algorithm>
#include <memory>

#include "absl/algorithm/container.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/even_routes.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {
namespace {

constexpr uint32_t kNowhere = UINT32_MAX;

}  // namespace

void LinkUseCounter::Begin(const Snapshot& snapshot) {
  for (const uint32_t c : crossed_) counts_[c] = {};
  crossed_.clear();
  snapshot_ = &snapshot;
  counts_.resize(snapshot.fabric->channel_count());
}

void LinkUseCounter::Cross(ChannelIndex channel, uint32_t up, uint32_t down) {
  Count& count = counts_[channel.value()];
  if (count.up + count.down == 0) crossed_.push_back(channel.value());
  count.up += up;
  count.down += down;
}

absl::Status LinkUseCounter::AddEdge(VertexIndex child, VertexIndex parent) {
  up_path_.clear();
  down_path_.clear();
  RETURN_IF_ERROR(snapshot_->routes->Append(child, parent, up_path_));
  RETURN_IF_ERROR(snapshot_->routes->Append(parent, child, down_path_));
  for (const ChannelIndex c : up_path_) Cross(c, 1, 0);
  for (const ChannelIndex c : down_path_) Cross(c, 0, 1);
  return absl::OkStatus();
}

void LinkUseCounter::PlacePhysical(const PhysicalTree& physical) {
  position_.assign(snapshot_->fabric->vertex_count(), kNowhere);
  for (uint32_t p = 0; p < physical.vertices.size(); ++p) {
    const uint32_t vertex = physical.vertices[p].value();
    if (vertex < position_.size()) position_[vertex] = p;
  }
}

// False, and nothing counted: the physical tree breaks off between the two.
bool LinkUseCounter::Climb(const PhysicalTree& physical, VertexIndex child, VertexIndex parent) {
  up_path_.clear();
  for (uint32_t p = position_[child.value()]; p == kNowhere || physical.vertices[p] != parent;) {
    if (p == kNowhere || physical.parents[p] < 0 || physical.up[p] == kNoChannel) return false;
    up_path_.push_back(physical.up[p]);
    p = static_cast<uint32_t>(physical.parents[p]);
  }
  for (const ChannelIndex c : up_path_) {
    Cross(c, 1, 0);
    Cross(Fabric::Reverse(c), 0, 1);
  }
  return true;
}

absl::Status LinkUseCounter::AddTree(const AggregationTree& tree, const PhysicalTree* physical) {
  const bool climbs = physical != nullptr && snapshot_->routes->kind() == RouteKind::kShortestPath;
  if (climbs) PlacePhysical(*physical);
  absl::Status status;
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    if (tree.parents[node] == AggregationTree::kNoParent) continue;
    const VertexIndex child = tree.vertices[node], parent = tree.vertices[tree.parents[node]];
    if (!climbs || !Climb(*physical, child, parent)) status.Update(AddEdge(child, parent));
  }
  return status;
}

void LinkUseCounter::Take(std::vector<ChannelUse>& uses) {
  absl::c_sort(crossed_);
  uses.clear();
  uses.reserve(crossed_.size());
  for (const uint32_t c : crossed_) {
    uses.push_back({ChannelIndex(c), counts_[c].up, counts_[c].down});
    counts_[c] = {};
  }
  crossed_.clear();
}

MessageBytes BytesOfMessages(const CostProfile& profile, const CollectiveMix& mix) {
  const auto on_wire = [&](uint64_t bytes, uint64_t packets) {
    return static_cast<double>(bytes) + static_cast<double>(packets) * profile.header_bytes;
  };
  MessageBytes mean;
  ForEachPayload(mix, [&](const Payload& payload, double weight) {
    const Pipeline pipeline = PipelineOf(profile, payload);
    mean.up += weight * on_wire(payload.up_bytes, pipeline.more_up + 1);
    mean.down += weight * on_wire(payload.down_bytes, pipeline.more_down + 1);
  });
  return mean;
}

BusiestLink FindBusiestLink(const Snapshot& snapshot, const CostProfile& profile,
                            const MessageBytes& bytes, absl::Span<const ChannelUse> uses) {
  BusiestLink busiest;
  for (const ChannelUse& use : uses) {
    const double gbps = KnownCapacity(snapshot, profile, use.channel);
    if (gbps <= 0) continue;
    const double u = std::clamp<double>(snapshot.utilisation(use.channel), 0, kMaxUtilisation);
    const double on_wire = use.up * bytes.up + use.down * bytes.down;
    const double us = on_wire * 8e-3 / (gbps * (1 - u));
    if (us <= busiest.us) continue;
    busiest = {use.channel, us, use.up + use.down};
  }
  return busiest;
}

Snapshot ForPrediction(const Snapshot& snapshot, const CostProfile& profile) {
  static const auto* const kIdle =
      new std::shared_ptr<const LinkLoad>(std::make_shared<const LinkLoad>());
  Snapshot with = snapshot;
  if (snapshot.load->empty()) return with;
  double slowest = snapshot.fabric->least_capacity_gbps();
  if (slowest <= 0 || (profile.port_gbps > 0 && profile.port_gbps < slowest)) {
    slowest = profile.port_gbps;
  }
  if (slowest > 0 && WaitUs(profile, slowest, snapshot.load->greatest()) < kMinWaitUs) {
    with.load = *kIdle;
  }
  return with;
}

}  // namespace coppice
