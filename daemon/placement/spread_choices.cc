#include "daemon/placement/spread_choices.h"

#include <algorithm>
#include <map>
#include <utility>

#include "daemon/placement/placement_search.h"

namespace coppice {
namespace {

uint32_t MostOnALeaf(const PlacementIndex& index, const std::vector<HostIndex>& hosts) {
  std::map<uint32_t, uint32_t> count;
  uint32_t most = 0;
  for (const HostIndex h : hosts) most = std::max(most, ++count[index.leaf_of(h)]);
  return most;
}

}  // namespace

std::vector<Choice> SpreadChoices(const PlacementQuestion& question, const Choice& best) {
  std::vector<Choice> choices;
  if (question.request.constraints.hosts_per_leaf > 0) return choices;
  SearchLimits limits;
  limits.exact_patience = 0;  // which is best matters little, as traffic is not looked at
  for (uint32_t most = MostOnALeaf(question.index, best.hosts) / 2; most > 0; most /= 2) {
    PlacementRequest request = question.request;
    request.pattern = nullptr;
    request.constraints.max_hosts_per_leaf = most;
    const auto open = FindOpenHosts(question.index, question.occupancy, request.constraints);
    if (!open.ok()) break;
    const PlacementQuestion spread = {question.snapshot, question.index, question.occupancy,
                                      request, *open};
    choices.push_back(std::move(SearchPlacement(spread, limits).choices.front()));
  }
  return choices;
}

}  // namespace coppice
