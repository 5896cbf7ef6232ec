#include "daemon/tree/width_candidates.h"

#include <algorithm>

namespace coppice {

WidthInterval WidthCandidates(const CostProfile& profile, const TreeRequest& request,
                              uint32_t nic_degree) {
  if (request.width) return {*request.width, *request.width, *request.width};
  const auto members = static_cast<uint32_t>(request.members.size());
  const LevelCost level = BothWays(profile, TreeType::kTypeI, request.operation, request.sizes);
  return WidthsWithin(level, members, 2 * profile.width_tolerance_us,
                      std::min(nic_degree, members - 1));
}

std::vector<uint32_t> WidthsToTry(const CostProfile& profile, const TreeRequest& request,
                                  uint32_t nic_degree) {
  const WidthInterval interval = WidthCandidates(profile, request, nic_degree);
  std::vector<uint32_t> widths;
  for (uint64_t width = interval.min; width <= interval.max; ++width) {
    widths.push_back(static_cast<uint32_t>(width));
  }
  if (request.width || request.members.size() > kMostRanksForLadder) return widths;
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
