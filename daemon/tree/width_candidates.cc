// F(k) = (a + b k) ln P / ln k, summed over both directions and the mix of sizes: a sum of such
// terms is one again, so a and b add up. F falls to k* and rises after it (formula (6)); the scan
// below needs no root finding, because k never exceeds a NIC's degree limit.
#include "daemon/tree/width_candidates.h"

#include <algorithm>
#include <cmath>

namespace coppice {
namespace {

constexpr uint32_t kFewWidthsFrom = 4096;

struct Line {
  double a = 0, b = 0;
};

Line CostLine(const CostProfile& profile, const TreeRequest& request) {
  Line line;
  double weights = 0;
  const NodeCost& nic = profile.nic;
  for (const SizeShare& share : request.sizes) {
    const Payload payload = PayloadOf(request.operation, share.bytes);
    const double forwarded = static_cast<double>(payload.up_bytes + payload.down_bytes);
    line.a += share.weight * (2 * profile.mean_route_links * profile.link_us + 2 * nic.forward_us +
                              forwarded * nic.forward_us_per_byte);
    line.b += share.weight *
              (nic.match_us + static_cast<double>(payload.reduced_bytes) * nic.reduce_us_per_byte +
               nic.send_us);
    weights += share.weight;
  }
  if (weights > 0) line = {line.a / weights, line.b / weights};
  return line;
}

uint32_t MostRanksOnOneLeaf(const TreeRequest& request, const MemberPlaces& places) {
  std::vector<uint32_t> ranks(places.leaf_switches.size() + 1, 0);
  for (size_t rank = 0; rank < request.members.size(); ++rank) {
    ++ranks[places.leaf_of_endpoint[places.endpoint_of_rank[rank]]];
  }
  return *std::max_element(ranks.begin(), ranks.end());
}

}  // namespace

std::vector<uint32_t> WidthCandidates(const CostProfile& profile, const TreeRequest& request,
                                      const MemberPlaces& places, uint32_t nic_degree) {
  const auto members = static_cast<uint32_t>(request.members.size());
  if (request.width) return {*request.width};
  const uint32_t most = std::max(2U, std::min(nic_degree, members - 1));
  const Line line = CostLine(profile, request);
  std::vector<double> cost(most + 1, 0);
  uint32_t best = 2;
  for (uint32_t k = 2; k <= most; ++k) {
    cost[k] = (line.a + line.b * k) * std::log(members) / std::log(k);
    if (cost[k] < cost[best]) best = k;
  }
  uint32_t low = best, high = best;
  while (low > 2 && cost[low - 1] <= cost[best] + profile.width_tolerance_us) --low;
  while (high < most && cost[high + 1] <= cost[best] + profile.width_tolerance_us) ++high;

  std::vector<uint32_t> widths = {best};
  if (members < kFewWidthsFrom) widths = {low, best, high};
  std::vector<uint32_t> whole_groups = {MostRanksOnOneLeaf(request, places)};
  if (members < kFewWidthsFrom) {
    whole_groups.push_back(static_cast<uint32_t>(places.leaf_switches.size()));
    whole_groups.push_back(static_cast<uint32_t>(std::ceil(std::sqrt(members))));
  }
  for (const uint32_t k : whole_groups) {
    if (k >= low && k <= high) widths.push_back(k);
  }
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  return widths;
}

}  // namespace coppice
