#include "daemon/tree/width_candidates.h"

#include <algorithm>

#include "daemon/tree/contended_metrics.h"

namespace coppice {

WidthInterval WidthCandidates(const CostProfile& profile, const TreeRequest& request,
                              uint32_t nic_degree) {
  if (request.width) return {*request.width, *request.width, *request.width};
  const auto members = static_cast<uint32_t>(request.members.size());
  const LevelCost level = BothWays(profile, TreeType::kTypeI, request.operation, request.sizes);
  return WidthsWithin(level, members, 2 * profile.width_tolerance_us,
                      std::min(nic_degree, members - 1));
}

namespace {

bool NeedsLadder(const CostProfile& profile, const TreeRequest& request) {
  const size_t members = request.members.size();
  if (members > kMaxRanksForLadder) return false;
  const bool is_long =
      std::any_of(request.sizes.begin(), request.sizes.end(),
                  [&](const SizeShare& share) { return share.bytes > profile.mtu_bytes; });
  return members <= kFewRanks || is_long ||
         QueuesMayMatter(profile, request.operation, request.sizes, static_cast<uint32_t>(members),
                         profile.port_gbps);
}

}  // namespace

std::vector<uint32_t> WidthsToTry(const CostProfile& profile, const TreeRequest& request,
                                  uint32_t nic_degree) {
  const WidthInterval interval = WidthCandidates(profile, request, nic_degree);
  std::vector<uint32_t> widths;
  for (uint64_t width = interval.min; width <= interval.max; ++width) {
    widths.push_back(static_cast<uint32_t>(width));
  }
  if (request.width || !NeedsLadder(profile, request)) return widths;
  const auto members = static_cast<uint32_t>(request.members.size());
  const LevelCost level = BothWays(profile, TreeType::kTypeI, request.operation, request.sizes);
  const double most_us = 1.5 * LevelsUs(level, members, interval.best);
  for (const uint32_t width : {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64}) {
    if (width > std::min(nic_degree, members - 1)) break;
    if (LevelsUs(level, members, width) <= most_us) widths.push_back(width);
  }
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  return widths;
}

}  // namespace coppice
