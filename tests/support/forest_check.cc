#include "tests/support/forest_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "tests/support/tree_check.h"

namespace coppice {
namespace {

constexpr double kNear = 1e-9;

// Mean bytes on the wire of one message of the mix, with a header for each packet.
double MeanWireBytes(const CostProfile& profile, const CollectiveMix& mix) {
  double weights = 0, bytes = 0;
  for (const SizeShare& size : mix.sizes) {
    const double packets =
        std::max(1.0, std::ceil(static_cast<double>(size.bytes) / profile.mtu_bytes));
    weights += size.weight;
    bytes += size.weight * (static_cast<double>(size.bytes) + packets * profile.header_bytes);
  }
  return bytes / weights;
}

// [channel] messages that cross it, by their shares.
absl::StatusOr<std::vector<double>> CountMessages(const Snapshot& snapshot,
                                                  const ForestPlan& plan) {
  std::vector<double> messages(snapshot.fabric->channel_count(), 0);
  std::vector<ChannelIndex> path;
  for (const ForestTree& one : plan.trees) {
    for (uint32_t n = 0; n < one.tree.node_count(); ++n) {
      if (one.tree.parents[n] < 0) continue;
      const VertexIndex child = one.tree.vertices[n];
      const VertexIndex parent = one.tree.vertices[static_cast<size_t>(one.tree.parents[n])];
      path.clear();
      RETURN_IF_ERROR(snapshot.routes->Append(child, parent, path));
      RETURN_IF_ERROR(snapshot.routes->Append(parent, child, path));
      for (const ChannelIndex channel : path) messages[channel.value()] += one.share;
    }
  }
  return messages;
}

absl::Status CheckBusiest(const Snapshot& snapshot, const CostProfile& profile,
                          const TreeRequest& request, const ForestPlan& plan) {
  ASSIGN_OR_RETURN(const std::vector<double> messages, CountMessages(snapshot, plan));
  const double bytes = MeanWireBytes(profile, request);
  double busiest_us = 0;
  for (uint32_t c = 0; c < messages.size(); ++c) {
    const double known = snapshot.fabric->capacity_gbps(ChannelIndex(c));
    const double left =
        (known > 0 ? known : profile.port_gbps) *
        (1 - std::min<double>(snapshot.utilisation(ChannelIndex(c)), kMaxUtilisation));
    const double us = left > 0 ? messages[c] * bytes * 8e-3 / left : 0;
    busiest_us = std::max(busiest_us, us);
    if (ChannelIndex(c) != plan.busiest.channel) continue;
    if (std::abs(us - plan.busiest.us) > kNear * (1 + us)) {
      return absl::InternalError(
          absl::StrCat("channel ", c, " is busy for ", us, " us, not ", plan.busiest.us));
    }
  }
  if (busiest_us > plan.busiest.us + kNear * (1 + busiest_us)) {
    return absl::InternalError(absl::StrCat("another channel is busy for ", busiest_us, " us"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckForest(const Snapshot& snapshot, const CostProfile& profile,
                         const TreeRequest& request, const ForestPlan& plan) {
  if (plan.trees.empty()) return absl::InternalError("no tree");
  double shares = 0;
  for (const ForestTree& one : plan.trees) {
    RETURN_IF_ERROR(CheckTree(*snapshot.fabric, one.tree, request.members));
    if (one.tree.type != TreeType::kTypeI) return absl::InternalError("a tree is of type II");
    const std::vector<uint32_t> children = ChildCounts(one.tree.parents);
    const uint32_t most = *std::max_element(children.begin(), children.end());
    if (most > request.nic_degree.value_or(profile.nic_degree)) {
      return absl::InternalError(absl::StrCat("a rank has ", most, " children"));
    }
    if (!(one.share > 0)) return absl::InternalError(absl::StrCat("a share of ", one.share));
    shares += one.share;
  }
  if (std::abs(shares - 1) > kNear) {
    return absl::InternalError(absl::StrCat("the shares add up to ", shares));
  }
  return CheckBusiest(snapshot, profile, request, plan);
}

}  // namespace coppice
