// Contraction of the widest trunk, again and again; the order of contractions is a tree:
//
//     widths when joined    288  288  288  32  32         a, b, c, d, e: switches
//     after each            ab   abc  abcd abcde ...
//
//     strength(join) = max(its width, strength of the join above it)
//
// since a group that was joined by less than what joins it to others is no group of its own. The
// labels at a threshold are what joins of at least that strength connect.
#include "daemon/mapping/search/groups/capacity_groups.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "daemon/mapping/link_traffic.h"

namespace coppice {
namespace {

using Labels = std::vector<uint32_t>;

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
    group_of_.resize(fabric.switch_count());
    std::iota(group_of_.begin(), group_of_.end(), 0);
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
  std::vector<uint32_t> parents(switches), member(switches + joins.size());
  std::iota(parents.begin(), parents.end(), 0);
  std::iota(member.begin(), member.begin() + switches, 0);
  for (size_t j = 0; j < joins.size(); ++j) {
    const uint32_t a = RootOf(parents, member[joins[j].a]);
    const uint32_t b = RootOf(parents, member[joins[j].b]);
    member[switches + j] = member[joins[j].a];
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

}  // namespace

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
  Labels& leaves = by_switch.emplace_back(switches);
  std::iota(leaves.begin(), leaves.end(), 0);
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

}  // namespace coppice
