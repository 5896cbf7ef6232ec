#include "daemon/mapping/output/busy_links.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/link_traffic.h"

namespace coppice {

absl::StatusOr<std::vector<BusyLink>> FindBusyLinks(const MappingProblem& problem,
                                                    absl::Span<const PlaceIndex> mapping,
                                                    size_t most) {
  ASSIGN_OR_RETURN(const LinkTraffic traffic, CountLinkTraffic(problem, mapping));
  const std::vector<double> capacities = ChannelCapacities(problem);
  std::vector<std::pair<double, uint32_t>> order;  // less its congestion, so that it sorts first
  for (uint32_t c = 0; c < capacities.size(); ++c) {
    if (traffic.bytes[c] > 0) order.emplace_back(-traffic.bytes[c] / capacities[c], c);
  }
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), most));
  const Fabric& fabric = *problem.snapshot->fabric;
  std::vector<BusyLink> links;
  for (const auto& [less, number] : order) {
    const ChannelIndex c(number);
    links.push_back({Describe(fabric, fabric.channel_from(c)),
                     Describe(fabric, fabric.channel_to(c)), traffic.bytes[number],
                     capacities[number], -less, less / order[0].first});
  }
  return links;
}

}  // namespace coppice
