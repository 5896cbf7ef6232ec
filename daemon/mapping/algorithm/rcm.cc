// RCM mapping (Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel
// architectures", ICS 2011, section 3.3): both graphs are numbered so that edges are near the
// diagonal (E. Cuthill and J. McKee, "Reducing the bandwidth of sparse symmetric matrices", 1969),
// and equal numbers meet.
//
//     pattern        ranks   by number    4 1 0 3 2
//                                         | | | | |         pi = pi_H o pi_G^-1
//     fabric         slots   by number    7 6 2 3 0
//
//     Cuthill-McKee: breadth first from a vertex at the rim, of every vertex the new neighbours of
//     lower degree first; reversed at the end. The rim: from a vertex of least degree go to one of
//     least degree in the farthest layer while that adds layers (A. George and J. Liu, "An
//     implementation of a pseudoperipheral node finder", 1979).
//
// Departures. Hoefler removes the switches from H, which would leave nothing between hosts. We
// number the switches of the whole fabric and take the places in the order of their switches: hosts
// of one leaf, and leaves of one pod, stay together. Weights are not looked at. If there are fewer
// ranks than slots, the last slots of the order stay empty.
//
// O(sum over vertices of degree * log(degree)), for the pattern and for the switches.
#include <algorithm>
#include <vector>

#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search/random.h"

namespace coppice {
namespace {

constexpr uint32_t kUnnumbered = 0xffffffff;

class CuthillMcKee {
 public:
  explicit CuthillMcKee(const WeightedGraph& graph)
      : begin_(graph.begin),
        neighbours_(graph.neighbours),
        layer_(graph.vertex_count(), kUnnumbered) {}

  // All vertices, component after component, reversed.
  std::vector<uint32_t> ReverseOrder() {
    for (const uint32_t v : NumbersBy(layer_.size(), [&](uint32_t u) { return Degree(u); })) {
      if (layer_[v] == kUnnumbered) Number(AtTheRim(v));
    }
    std::reverse(order_.begin(), order_.end());
    return std::move(order_);
  }

 private:
  size_t Degree(uint32_t v) const { return begin_[v + 1] - begin_[v]; }

  // Appends the component of `root` to order_.
  void Number(uint32_t root) {
    size_t next = order_.size();
    layer_[root] = 0;
    order_.push_back(root);
    for (; next < order_.size(); ++next) {
      const uint32_t v = order_[next];
      const size_t first = order_.size();
      for (size_t e = begin_[v]; e < begin_[v + 1]; ++e) {
        const uint32_t n = neighbours_[e];
        if (layer_[n] != kUnnumbered) continue;
        layer_[n] = layer_[v] + 1;
        order_.push_back(n);
      }
      const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(first);
      const auto lower = [&](uint32_t a, uint32_t b) { return Degree(a) < Degree(b); };
      // Switches are often all alike, and sorting would be most of the time.
      if (!std::is_sorted(begin, order_.end(), lower)) {
        std::stable_sort(begin, order_.end(), lower);
      }
    }
  }

  void Forget(size_t first) {
    for (size_t i = first; i < order_.size(); ++i) layer_[order_[i]] = kUnnumbered;
    order_.resize(first);
  }

  uint32_t AtTheRim(uint32_t root) {
    const size_t first = order_.size();
    for (uint32_t layers = 0;;) {
      Number(root);
      const uint32_t last = layer_[order_.back()];
      uint32_t farthest = order_.back();
      for (size_t i = order_.size(); i > first && layer_[order_[i - 1]] == last; --i) {
        if (Degree(order_[i - 1]) <= Degree(farthest)) farthest = order_[i - 1];
      }
      Forget(first);
      if (last <= layers) return root;
      layers = last;
      root = farthest;
    }
  }

  const std::vector<size_t>& begin_;
  const std::vector<uint32_t>& neighbours_;
  std::vector<uint32_t> layer_;  // [vertex] of the search that numbers it
  std::vector<uint32_t> order_;
};

std::vector<uint32_t> OrderOfSwitches(const Fabric& fabric) {
  WeightedGraph graph;
  graph.begin.assign(1, 0);
  std::vector<uint32_t> met_by(fabric.switch_count(), kUnnumbered);  // [switch] the last neighbour
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    met_by[s] = s;
    for (const Channel& channel : fabric.switch_channels(SwitchIndex(s))) {
      const uint32_t n = channel.to.value();
      if (met_by[n] == s) continue;  // a parallel cable
      met_by[n] = s;
      graph.neighbours.push_back(n);
    }
    graph.begin.push_back(graph.neighbours.size());
  }
  return CuthillMcKee(graph).ReverseOrder();
}

// The places by their switches; those without one last.
std::vector<uint32_t> OrderOfPlaces(const Places& places, const Fabric& fabric) {
  const std::vector<uint32_t> switches = OrderOfSwitches(fabric);
  std::vector<uint32_t> position(switches.size());
  for (uint32_t i = 0; i < switches.size(); ++i) position[switches[i]] = i;
  return NumbersBy(places.count(), [&](uint32_t p) {
    const auto at = fabric.attached_switch(places.endpoint(PlaceIndex(p)));
    return at ? position[at->value()] : kUnnumbered;
  });
}

}  // namespace

absl::StatusOr<Mapped> RunRcm(const MappingProblem& problem, const Mapping&, const MethodOptions&,
                              const SearchControl&) {
  const std::vector<uint32_t> ranks = CuthillMcKee(GraphOf(*problem.pattern)).ReverseOrder();
  Mapped mapped;
  mapped.mapping.resize(ranks.size());
  size_t next = 0;
  for (const uint32_t p : OrderOfPlaces(*problem.places, *problem.snapshot->fabric)) {
    const PlaceIndex place(p);
    for (uint32_t i = 0; i < problem.places->capacity(place) && next < ranks.size(); ++i) {
      mapped.mapping[ranks[next++]] = place;
    }
  }
  return mapped;
}

}  // namespace coppice
