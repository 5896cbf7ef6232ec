#include "daemon/mapping/link_traffic.h"

#include <algorithm>

#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

absl::StatusOr<LinkTraffic> OverRoutes(const MappingProblem& problem,
                                       absl::Span<const PlaceIndex> mapping) {
  const Fabric& fabric = *problem.snapshot->fabric;
  LinkTraffic traffic;
  traffic.bytes.resize(fabric.channel_count(), 0.0);
  std::vector<ChannelIndex> path;
  for (uint32_t rank = 0; rank < problem.rank_count(); ++rank) {
    const EndpointIndex from = problem.places->endpoint(mapping[rank]);
    for (const Exchange& exchange : problem.pattern->exchanges(rank)) {
      if (exchange.out_bytes == 0) continue;
      const EndpointIndex to = problem.places->endpoint(mapping[exchange.peer]);
      path.clear();
      RETURN_IF_ERROR(
          problem.snapshot->routes->Append(fabric.Vertex(from), fabric.Vertex(to), path));
      for (const ChannelIndex c : path) traffic.bytes[c.value()] += exchange.out_bytes;
      traffic.longest = std::max(traffic.longest, static_cast<uint32_t>(path.size()));
    }
  }
  return traffic;
}

}  // namespace

std::vector<double> ChannelCapacities(const MappingProblem& problem) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const double least = fabric.least_capacity_gbps();
  std::vector<double> capacities(fabric.channel_count());
  for (uint32_t c = 0; c < fabric.channel_count(); ++c) {
    const double known = fabric.capacity_gbps(ChannelIndex(c));
    const double capacity = known > 0 ? known : least > 0 ? least : 1.0;
    const double load = problem.use_load ? problem.snapshot->utilisation(ChannelIndex(c)) : 0.0;
    capacities[c] = capacity * std::max(0.01, 1.0 - load);
  }
  return capacities;
}

absl::StatusOr<LinkTraffic> CountLinkTraffic(const MappingProblem& problem,
                                             absl::Span<const PlaceIndex> mapping) {
  return OverRoutes(problem, mapping);
}

}  // namespace coppice
