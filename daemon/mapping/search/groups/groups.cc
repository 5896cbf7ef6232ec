#include "daemon/mapping/search/groups/groups.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <queue>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/search/random.h"

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

constexpr double kWider = 1.25;  // widths up to this factor apart are of one level

struct Join {
  uint32_t a, b;    // the two groups: switches, or from there on joins in their order
  double strength;  // the width of what was between them, then as above
};

// Groups of switches: 0..switches-1 are the switches themselves, those above the joins in order.
class Contraction final {
 public:
  explicit Contraction(const MappingProblem& problem) {
    const Fabric& fabric = *problem.snapshot->fabric;
    const std::vector<double> capacities = ChannelCapacities(problem);
    widths_.resize(fabric.switch_count());
    group_of_ = Numbers(fabric.switch_count());
    next_group_ = fabric.switch_count();
    for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
      for (const Channel& channel : fabric.switch_channels(SwitchIndex(s))) {
        // A trunk is as wide as its two directions are in the mean; each is seen from one end.
        const uint32_t to = channel.to.value();
        if (to != s) Widen(s, to, capacities[channel.index.value()] / 2);
      }
    }
    for (uint32_t s = 0; s < widths_.size(); ++s) Offer(s);
  }

  std::vector<Join> Run() {
    std::vector<Join> joins;
    while (!widest_.empty()) {
      const auto [width, a, b] = widest_.top();
      widest_.pop();
      const auto found = widths_[a].find(b);
      if (found == widths_[a].end() || found->second != width) continue;  // joined since
      joins.push_back({group_of_[a], group_of_[b], width});
      Merge(a, b);
    }
    return joins;
  }

 private:
  struct Trunk {
    double width;
    uint32_t a, b;
    // The widest first, then by number.
    bool operator<(const Trunk& o) const {
      return width != o.width ? width < o.width : std::pair(a, b) > std::pair(o.a, o.b);
    }
  };

  void Widen(uint32_t a, uint32_t b, double width) {
    widths_[a][b] += width;
    widths_[b][a] += width;
  }

  // Each trunk from its end of the lower number.
  void Offer(uint32_t group) {
    for (const auto& [other, width] : widths_[group]) {
      if (other > group) widest_.push({width, group, other});
    }
  }

  // The one with fewer neighbours becomes part of the other, so that a hub costs no more than its
  // cables.
  void Merge(uint32_t small, uint32_t big) {
    if (widths_[small].size() > widths_[big].size()) std::swap(small, big);
    widths_[big].erase(small);
    for (const auto& [other, width] : widths_[small]) {
      if (other == big) continue;
      widths_[other].erase(small);
      const double sum = widths_[big][other] += width;
      widths_[other][big] = sum;
      widest_.push({sum, std::min(big, other), std::max(big, other)});
    }
    widths_[small].clear();
    group_of_[big] = next_group_++;
  }

  std::vector<absl::flat_hash_map<uint32_t, double>> widths_;  // [switch that stands for a group]
  std::vector<uint32_t> group_of_;                             // [switch that stands for it]
  uint32_t next_group_ = 0;
  std::priority_queue<Trunk> widest_;
};

uint32_t RootOf(std::vector<uint32_t>& parents, uint32_t s) {
  while (parents[s] != s) s = parents[s] = parents[parents[s]];
  return s;
}

// [switch] the least switch that joins of this strength connect it with.
Labels Connected(const std::vector<Join>& joins, uint32_t switches, double strength) {
  std::vector<uint32_t> parents = Numbers(switches), member = parents;
  for (size_t j = 0; j < joins.size(); ++j) {
    const uint32_t a = RootOf(parents, member[joins[j].a]);
    const uint32_t b = RootOf(parents, member[joins[j].b]);
    member.push_back(member[joins[j].a]);
    if (joins[j].strength >= strength) parents[std::max(a, b)] = std::min(a, b);
  }
  Labels labels(switches);
  for (uint32_t s = 0; s < switches; ++s) labels[s] = RootOf(parents, s);
  return labels;
}

// [place] a number for its group: from the group with the most slots.
Labels NumberedByRoom(const Places& places, const Labels& groups) {
  absl::flat_hash_map<uint32_t, std::pair<int64_t, uint32_t>> rooms;  // less its slots, its number
  for (uint32_t p = 0; p < places.count(); ++p) {
    auto& [room, number] = rooms.try_emplace(groups[p], 0, groups[p]).first->second;
    room -= places.capacity(PlaceIndex(p));
  }
  std::vector<std::pair<int64_t, uint32_t>> order;
  for (const auto& [group, room] : rooms) order.push_back(room);
  std::sort(order.begin(), order.end());
  absl::flat_hash_map<uint32_t, uint32_t> number;
  for (const auto& [room, group] : order) {
    number.emplace(group, static_cast<uint32_t>(number.size()));
  }
  Labels labels;
  for (const uint32_t group : groups) labels.push_back(number[group]);
  return labels;
}

constexpr uint32_t kMaxLooks = 4096;  // at cables, for one unit

}  // namespace

PlaceGroups GroupsOfLabels(const Places& places, absl::Span<const Labels> labels) {
  PlaceGroups groups;
  groups.order = Numbers(places.count());
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

// Contraction of the widest trunk, again and again; the order of contractions is a tree:
//
//     widths when joined    288  288  288  32  32         a, b, c, d, e: switches
//     after each            ab   abc  abcd abcde ...
//
//     strength(join) = max(its width, strength of the join above it)
//
// since a group that was joined by less than what joins it to others is no group of its own. The
// labels at a threshold are what joins of at least that strength connect.

std::vector<Labels> CapacityLevels(const MappingProblem& problem) {
  const uint32_t switches = problem.snapshot->fabric->switch_count();
  std::vector<Join> joins = Contraction(problem).Run();
  for (size_t j = joins.size(); j-- > 0;) {  // joins above come later
    for (const uint32_t part : {joins[j].a, joins[j].b}) {
      if (part < switches) continue;
      Join& below = joins[part - switches];
      below.strength = std::max(below.strength, joins[j].strength);
    }
  }
  std::vector<double> strengths;
  for (const Join& join : joins) strengths.push_back(join.strength);
  std::sort(strengths.begin(), strengths.end());
  std::vector<Labels> levels;
  double last = strengths.empty() ? 0 : strengths[0];
  for (const double strength : strengths) {
    if (strength < last * kWider) continue;
    levels.push_back(Connected(joins, switches, strength));
    last = strength;
  }
  return levels;
}

PlaceGroups GroupByCapacity(const MappingProblem& problem) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const Places& places = *problem.places;
  const uint32_t switches = fabric.switch_count();
  std::vector<Labels> by_switch = CapacityLevels(problem);
  by_switch.push_back(Numbers(switches));
  std::vector<Labels> levels;
  for (const Labels& of_switch : by_switch) {
    Labels groups;
    for (uint32_t p = 0; p < places.count(); ++p) {
      const std::optional<SwitchIndex> leaf =
          fabric.attached_switch(places.endpoint(PlaceIndex(p)));
      groups.push_back(leaf ? of_switch[leaf->value()] : switches + p);
    }
    levels.push_back(NumberedByRoom(places, groups));
  }
  return GroupsOfLabels(places, levels);
}

LeafRings::LeafRings(const Fabric& fabric, const Places& places)
    : fabric_(fabric), unit_of_(fabric.switch_count(), kNobody), seen_(fabric.switch_count(), 0) {
  for (uint32_t p = 0; p < places.count(); ++p) {
    const std::optional<SwitchIndex> leaf = fabric.attached_switch(places.endpoint(PlaceIndex(p)));
    complete_ = complete_ && leaf.has_value();
    if (leaf && unit_of_[leaf->value()] == kNobody) {
      unit_of_[leaf->value()] = count();
      switch_of_.push_back(leaf->value());
    }
    unit_of_place_.push_back(leaf ? unit_of_[leaf->value()] : kNobody);
  }
}

const std::vector<uint32_t>& LeafRings::Around(uint32_t unit, absl::Span<const uint32_t> weights,
                                               uint64_t wanted) {
  ++turn_;
  found_.clear();
  ring_.assign(1, switch_of_[unit]);
  seen_[switch_of_[unit]] = turn_;
  uint32_t looks = 0;
  for (uint64_t weight = 0; !ring_.empty() && weight < wanted && looks < kMaxLooks;) {
    next_.clear();
    for (const uint32_t s : ring_) {
      if (unit_of_[s] != kNobody) {
        found_.push_back(unit_of_[s]);
        weight += weights[unit_of_[s]];
      }
      if (looks >= kMaxLooks) continue;
      for (const Channel& channel : fabric_.switch_channels(SwitchIndex(s))) {
        ++looks;
        uint32_t& seen = seen_[channel.to.value()];
        if (seen == turn_) continue;
        seen = turn_;
        next_.push_back(channel.to.value());
      }
    }
    ring_.swap(next_);
  }
  return found_;
}

}  // namespace coppice
