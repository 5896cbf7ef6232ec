#include "daemon/mapping/search/groups/groups.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <variant>

#include "daemon/mapping/search/groups/groups_linkage.h"

namespace coppice {
namespace {

using Labels = std::vector<uint32_t>;

// Appends to `groups` the children of `node`: the runs of equal labels at `level`, or at the first
// deeper level that tells the places of the node apart; below the last level, the places.
void Split(absl::Span<const Labels> labels, uint32_t node, size_t level, PlaceGroups& groups,
           std::vector<size_t>& next_level) {
  const uint32_t begin = groups.nodes[node].begin, end = groups.nodes[node].end;
  if (end - begin == 1) return;
  const auto label = [&](uint32_t i) { return labels[level][groups.order[i]]; };
  while (level < labels.size() && label(begin) == label(end - 1)) ++level;
  groups.nodes[node].first_child = static_cast<uint32_t>(groups.nodes.size());
  for (uint32_t i = begin; i < end;) {
    uint32_t j = i + 1;
    while (level < labels.size() && j < end && label(j) == label(i)) ++j;
    PlaceGroups::Node child;
    child.parent = node;
    child.begin = i;
    child.end = j;
    groups.nodes.push_back(child);
    next_level.push_back(level + 1);
    ++groups.nodes[node].child_count;
    i = j;
  }
}

// One level for every width at which the distance changes: the places that agree above it.
PlaceGroups OfLevels(const Places& places, const LevelDistances& d) {
  uint64_t differ = 0;
  for (const uint64_t code : d.codes) differ |= code ^ d.codes[0];
  std::vector<Labels> labels;
  bool grows = true;
  for (int width = std::bit_width(differ) - 1; width >= 1; --width) {
    grows = grows && d.by_width[width] <= d.by_width[width + 1];
    if (d.by_width[width] == d.by_width[width + 1]) continue;
    std::vector<uint64_t> above(d.codes);
    for (uint64_t& code : above) code >>= width;
    std::vector<uint64_t> distinct(above);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    Labels& label = labels.emplace_back();
    for (const uint64_t code : above) {
      label.push_back(static_cast<uint32_t>(
          std::lower_bound(distinct.begin(), distinct.end(), code) - distinct.begin()));
    }
  }
  PlaceGroups groups = GroupsOfLabels(places, labels);
  groups.exact = grows;
  return groups;
}

}  // namespace

PlaceGroups GroupsOfLabels(const Places& places, absl::Span<const Labels> labels) {
  PlaceGroups groups;
  groups.order.resize(places.count());
  std::iota(groups.order.begin(), groups.order.end(), 0);
  for (size_t level = labels.size(); level-- > 0;) {
    std::stable_sort(groups.order.begin(), groups.order.end(),
                     [&](uint32_t a, uint32_t b) { return labels[level][a] < labels[level][b]; });
  }
  groups.nodes.emplace_back();
  groups.nodes[0].end = places.count();
  std::vector<size_t> next_level = {0};
  for (uint32_t node = 0; node < groups.nodes.size(); ++node) {
    Split(labels, node, next_level[node], groups, next_level);
  }
  groups.leaf.resize(places.count());
  for (uint32_t n = static_cast<uint32_t>(groups.nodes.size()); n-- > 0;) {
    PlaceGroups::Node& node = groups.nodes[n];
    if (node.child_count == 0) {
      groups.leaf[groups.order[node.begin]] = n;
      node.capacity = places.capacity(PlaceIndex(groups.order[node.begin]));
    }
    if (n > 0) groups.nodes[node.parent].capacity += node.capacity;
  }
  return groups;
}

PlaceGroups MakePlaceGroups(const Places& places, const PlaceDistances& distances,
                            const Hierarchy* hierarchy, const Fabric* fabric,
                            const SearchControl& control) {
  if (const auto* levels = std::get_if<LevelDistances>(&distances.form())) {
    return OfLevels(places, *levels);
  }
  return LinkPlaces(places, distances, hierarchy, fabric, control);
}

}  // namespace coppice
