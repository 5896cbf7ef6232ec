#include "daemon/tree/contended_metrics.h"

#include <algorithm>
#include <limits>

#include "daemon/base/status_macros.h"
#include "daemon/tree/closed_form.h"
#include "daemon/tree/packet_bound.h"
#include "daemon/tree/packet_metrics.h"
#include "daemon/tree/pipelining.h"

namespace coppice {
namespace {

constexpr double kNoCutoff = std::numeric_limits<double>::infinity();
constexpr double kBoundRounding = 1e-6;  // of LeastContendedUs

bool IsLong(const CostProfile& profile, const Payload& payload) {
  return !PipelineOf(profile, payload).is_one_packet();
}

}  // namespace

Prediction EvaluateContendedMix(const CostProfile& profile, const AggregationTree& tree,
                                absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                                Operation operation, absl::Span<const SizeShare> sizes,
                                double cutoff_us) {
  if (tree.parents.empty() || sizes.empty()) return {};
  const double one_cutoff_us = sizes.size() == 1 ? cutoff_us : kNoCutoff;
  return MeanOver(sizes, [&](uint64_t bytes) {
    return EvaluatePackets(profile, tree, edges, routes, PayloadOf(operation, bytes),
                           one_cutoff_us);
  });
}

double LeastContendedUs(const CostProfile& profile, const AggregationTree& tree,
                        absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                        Operation operation, absl::Span<const SizeShare> sizes) {
  if (tree.parents.empty() || sizes.empty()) return 0;
  const Prediction least = MeanOver(sizes, [&](uint64_t bytes) {
    const Payload payload = PayloadOf(operation, bytes);
    if (!IsLong(profile, payload)) return Evaluate(profile, tree, edges, payload);
    return Prediction{.total_us = BoundPackets(profile, tree, routes, payload).least_us};
  });
  return least.total_us;
}

bool AnyIsLong(const CostProfile& profile, Operation operation, absl::Span<const SizeShare> sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [&](const SizeShare& share) {
    return share.weight > 0 && IsLong(profile, PayloadOf(operation, share.bytes));
  });
}

bool QueuesMayMatter(const CostProfile& profile, Operation operation,
                     absl::Span<const SizeShare> sizes, uint32_t nodes, double slowest_gbps) {
  constexpr double kNoticed = 0.1;
  const Prediction most = MeanOver(sizes, [&](uint64_t bytes) {
    const Payload payload = PayloadOf(operation, bytes);
    const Pipeline pipeline = PipelineOf(profile, payload);
    const double packets =
        2 + static_cast<double>(pipeline.more_up) + static_cast<double>(pipeline.more_down);
    const double bytes_both_ways = static_cast<double>(payload.up_bytes) +
                                   static_cast<double>(payload.down_bytes) +
                                   packets * profile.header_bytes;
    return Prediction{.total_us = bytes_both_ways * SerialisationUs(1, slowest_gbps) * nodes};
  });
  return most.total_us > kNoticed * BothWays(profile, TreeType::kTypeI, operation, sizes).once_us;
}

bool FollowsPackets(const CostProfile& profile, Operation operation,
                    absl::Span<const SizeShare> sizes, uint32_t ranks) {
  return ranks <= kMaxRanksContended && AnyIsLong(profile, operation, sizes) &&
         PacketsToFollow(profile, operation, sizes, ranks) <= kMaxPacketsJudged;
}

absl::Status AddContention(const Snapshot& snapshot, const CostProfile& profile,
                           const AggregationTree& tree, absl::Span<const EdgeCost> edges,
                           Operation operation, absl::Span<const SizeShare> sizes,
                           Prediction& predicted, double cutoff_us) {
  if (tree.rank_count > kMaxRanksContended || sizes.empty()) return absl::OkStatus();
  double slowest_gbps = 0;
  for (const EdgeCost& edge : edges) {
    for (const double gbps : {edge.min_gbps_up, edge.min_gbps_down}) {
      if (gbps > 0 && (slowest_gbps == 0 || gbps < slowest_gbps)) slowest_gbps = gbps;
    }
  }
  const bool any_is_long = AnyIsLong(profile, operation, sizes);
  if (any_is_long && !FollowsPackets(profile, operation, sizes, tree.rank_count)) {
    return absl::OkStatus();
  }
  if (!any_is_long &&
      !QueuesMayMatter(profile, operation, sizes, tree.node_count(), slowest_gbps)) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const TreeRoutes routes, FindRoutes(snapshot, profile, tree));
  if (!any_is_long && !routes.shares) return absl::OkStatus();
  if (any_is_long && cutoff_us < kNoCutoff) {
    const double least_us =
        LeastContendedUs(profile, tree, edges, routes, operation, sizes) * (1 - kBoundRounding);
    if (least_us >= cutoff_us) {
      predicted.total_us = least_us;
      return absl::OkStatus();
    }
  }
  const Prediction contended =
      EvaluateContendedMix(profile, tree, edges, routes, operation, sizes, cutoff_us);
  if (any_is_long || contended.total_us > predicted.total_us) predicted = contended;
  return absl::OkStatus();
}

}  // namespace coppice
