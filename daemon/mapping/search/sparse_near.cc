#include "daemon/mapping/search/sparse_near.h"

#include <numeric>
#include <utility>
#include <variant>

namespace coppice {
namespace {

// The `listed` nearest places to each, itself first, ties in the order of the groups.
template <class Distances>
std::vector<uint32_t> NearestLists(const PlaceGroups& groups, const Distances& d, uint32_t listed) {
  const auto count = static_cast<uint32_t>(groups.order.size());
  std::vector<uint32_t> lists(size_t{count} * listed);
  std::vector<std::pair<double, uint32_t>> by_distance(count);
  for (uint32_t p = 0; p < count; ++p) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t q = groups.order[i];
      by_distance[i] = {p == q ? -1.0 : 0.5 * (d(p, q) + d(q, p)), i};
    }
    std::nth_element(by_distance.begin(), by_distance.begin() + (listed - 1), by_distance.end());
    std::sort(by_distance.begin(), by_distance.begin() + listed);
    for (uint32_t i = 0; i < listed; ++i) {
      lists[size_t{p} * listed + i] = groups.order[by_distance[i].second];
    }
  }
  return lists;
}

}  // namespace

NearPlaces::NearPlaces(const PlaceGroups& groups, const PlaceDistances& distances)
    : groups_(&groups) {
  if (groups.exact) return;
  listed_ = std::min<uint32_t>(kListed, distances.count());
  std::visit([&](const auto& d) { lists_ = NearestLists(groups, d, listed_); }, distances.form());
}

}  // namespace coppice
