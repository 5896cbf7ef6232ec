#include "daemon/mapping/search/partition/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/partition/partition_cut.h"

namespace coppice {
namespace {

// The vertices of one group of places, waiting to be cut.
struct Piece {
  uint32_t node;
  std::vector<uint32_t> vertices;  // of the whole graph
  WeightedGraph graph;             // over them
};

class Multisection final {
 public:
  Multisection(const PlaceGroups& groups, const MultisectionOptions& options,
               const SearchControl& control)
      : groups_(groups), options_(options), control_(control), height_(groups.nodes.size(), 0) {
    for (size_t n = groups.nodes.size(); n-- > 1;) {
      uint32_t& above = height_[groups.nodes[n].parent];
      above = std::max(above, height_[n] + 1);
    }
  }

  absl::StatusOr<std::vector<uint32_t>> Run(const WeightedGraph& graph) {
    places_.resize(graph.vertex_count());
    std::vector<uint32_t> all(graph.vertex_count());
    std::iota(all.begin(), all.end(), 0);
    std::vector<Piece> waiting;
    waiting.push_back({0, std::move(all), graph});
    while (!waiting.empty()) {
      Piece piece = std::move(waiting.back());
      waiting.pop_back();
      const PlaceGroups::Node& node = groups_.nodes[piece.node];
      if (node.child_count == 0) {
        for (const uint32_t v : piece.vertices) places_[v] = groups_.order[node.begin];
        continue;
      }
      RETURN_IF_ERROR(Cut(piece, waiting));
    }
    return std::move(places_);
  }

 private:
  // How many of its children a group needs for `count` vertices, from the first.
  uint32_t ChildrenFor(const PlaceGroups::Node& node, uint64_t count) const {
    if (!options_.pack) return node.child_count;
    uint64_t room = 0;
    for (uint32_t i = 0; i < node.child_count; ++i) {
      room += groups_.nodes[node.first_child + i].capacity;
      if (room >= count) return i + 1;
    }
    return node.child_count;
  }

  absl::Status Cut(Piece& piece, std::vector<Piece>& waiting) {
    const PlaceGroups::Node& node = groups_.nodes[piece.node];
    const uint32_t children = ChildrenFor(node, piece.vertices.size());
    std::vector<uint64_t> capacities;
    for (uint32_t i = 0; i < children; ++i) {
      capacities.push_back(groups_.nodes[node.first_child + i].capacity);
    }
    ASSIGN_OR_RETURN(const std::vector<uint32_t> parts, Parts(piece, capacities));
    for (uint32_t i = 0; i < children; ++i) {
      Piece child;
      child.node = node.first_child + i;
      std::vector<uint32_t> kept;
      if (groups_.nodes[child.node].child_count > 0) {
        child.graph = Subgraph(piece.graph, parts, i, kept);
      } else {
        for (uint32_t v = 0; v < parts.size(); ++v) {
          if (parts[v] == i) kept.push_back(v);
        }
      }
      for (const uint32_t v : kept) child.vertices.push_back(piece.vertices[v]);
      if (!child.vertices.empty()) waiting.push_back(std::move(child));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<uint32_t>> Parts(const Piece& piece,
                                              const std::vector<uint64_t>& capacities) const {
    const uint64_t count = piece.vertices.size();
    if (capacities.size() == 1) return std::vector<uint32_t>(count, 0);
    const auto total = std::accumulate(capacities.begin(), capacities.end(), uint64_t{0});
    if (control_.stopped()) return PartsInOrder(piece.graph, capacities);
    const double free = static_cast<double>(total) / static_cast<double>(count);
    const double slack = std::pow(free, 1.0 / height_[piece.node]) - 1;
    std::vector<uint32_t> targets;
    std::vector<uint64_t> most;
    for (const uint64_t capacity : capacities) {
      const double share = static_cast<double>(capacity) / free;
      targets.push_back(std::max<uint32_t>(1, static_cast<uint32_t>(std::lround(share))));
      most.push_back(std::min(capacity, static_cast<uint64_t>(std::ceil(share * (1 + slack)))));
    }
    CutOptions cut;
    cut.seed = options_.seed * 1000003 + piece.node;
    cut.imbalance = std::min(0.5, slack);
    // The wider a group, the more its cut costs: three times the care at the root, half of it from
    // the second level down.
    const PlaceGroups::Node& node = groups_.nodes[piece.node];
    const double care = piece.node == 0 ? 3 : node.parent == 0 ? 1 : 0.5;
    cut.tries = options_.tries == 1 ? 1 : std::max(2U, Scaled(options_.tries, care));
    cut.cycles = options_.cycles;
    cut.samples = piece.node == 0 ? options_.root_samples : 1;
    cut.combinations = Scaled(options_.combinations, care);
    absl::StatusOr<std::vector<uint32_t>> parts =
        CutGraph(piece.graph, targets, most, cut, control_);
    // There may be time for the smaller graphs below.
    if (absl::IsCancelled(parts.status())) return PartsInOrder(piece.graph, capacities);
    return parts;
  }

  static uint32_t Scaled(uint32_t count, double factor) {
    return static_cast<uint32_t>(std::lround(count * factor));
  }

  const PlaceGroups& groups_;
  const MultisectionOptions options_;
  const SearchControl& control_;
  std::vector<uint32_t> height_;  // [node] levels below it
  std::vector<uint32_t> places_;
};

}  // namespace

absl::StatusOr<std::vector<uint32_t>> Multisect(const WeightedGraph& graph,
                                                const PlaceGroups& groups,
                                                const MultisectionOptions& options,
                                                const SearchControl& control) {
  return Multisection(groups, options, control).Run(graph);
}

}  // namespace coppice
