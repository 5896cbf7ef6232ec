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

}  // namespace coppice
