#include "daemon/tree/width_candidates.h"

#include <algorithm>
#include <cmath>

#include "daemon/tree/closed_form.h"

namespace coppice {
namespace {

constexpr uint32_t kFewWidthsFrom = 4096;

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
  const LevelCost level = BothWays(profile, TreeType::kTypeI, request.operation, request.sizes);
  // The tolerance is one direction's; `level` holds both.
  const WidthInterval within = WidthsWithin(level, members, 2 * profile.width_tolerance_us,
                                            std::min(nic_degree, members - 1));

  std::vector<uint32_t> widths = {within.best};
  if (members < kFewWidthsFrom) widths = {within.min, within.best, within.max};
  std::vector<uint32_t> whole_groups = {MostRanksOnOneLeaf(request, places)};
  if (members < kFewWidthsFrom) {
    whole_groups.push_back(static_cast<uint32_t>(places.leaf_switches.size()));
    whole_groups.push_back(static_cast<uint32_t>(std::ceil(std::sqrt(members))));
  }
  for (const uint32_t k : whole_groups) {
    if (k >= within.min && k <= within.max) widths.push_back(k);
  }
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  return widths;
}

}  // namespace coppice
