#include "daemon/mapping/search/partition/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_search.h"

namespace coppice {
namespace {

// Recursive bisection cuts less into few parts; k-way is faster on large graphs. Into many neither
// is always better, and tries take turns: up to kManyParts bisection comes first, which is quicker.
constexpr uint32_t kRecursiveUpTo = 20000;
constexpr size_t kBisectedParts = 16, kManyParts = 64;
// Graphs of at most so many vertices, and so many for each part, are cut without METIS.
constexpr uint32_t kTinyGraph = 256;
constexpr size_t kTinyParts = 4;
constexpr size_t kFewParts = 8;  // which METIS cuts quickly, and better, unless some stay empty
// What parts may exceed their capacity by while they are refined: moves need room.
constexpr double kRoomToMove = 0.005;
constexpr double kRoomOfWays = 0.01;

// What moving vertices between parts costs, and who is to move next.
class Fitting final {
 public:
  Fitting(const WeightedGraph& graph, absl::Span<const uint32_t> capacities,
          std::vector<uint32_t>& parts)
      : graph_(graph),
        parts_(parts),
        room_(capacities.begin(), capacities.end()),
        links_(capacities.size(), 0) {
    for (uint32_t v = 0; v < parts.size(); ++v) room_[parts[v]] -= graph.vertex_sizes[v];
    for (uint32_t p = 0; p < room_.size(); ++p) {
      if (room_[p] > 0) by_room_.insert({-room_[p], p});
    }
  }

  void Run(const SearchControl& control) {
    for (uint32_t v = 0; v < parts_.size(); ++v) {
      if (room_[parts_[v]] < 0) Push(v);
    }
    while (!queue_.empty()) {
      if (control.stopped()) return MoveAny();
      const Entry entry = queue_.top();
      queue_.pop();
      const uint32_t v = entry.vertex;
      if (room_[parts_[v]] >= 0) continue;
      const auto [to, cost] = BestTarget(v);
      if (to == parts_[v]) continue;
      if (cost > entry.cost) {  // its neighbours or the room have changed
        queue_.push({cost, v});
        continue;
      }
      Move(v, to);
      for (size_t e = graph_.begin[v]; e < graph_.begin[v + 1]; ++e) {
        const uint32_t u = graph_.neighbours[e];
        if (room_[parts_[u]] < 0) Push(u);
      }
    }
  }

 private:
  struct Entry {
    double cost;
    uint32_t vertex;
    bool operator<(const Entry& other) const {
      return std::pair(cost, vertex) > std::pair(other.cost, other.vertex);
    }
  };

  void Push(uint32_t v) {
    const auto [to, cost] = BestTarget(v);
    if (to != parts_[v]) queue_.push({cost, v});
  }

  void AddRoom(uint32_t part, int64_t size) {
    if (room_[part] > 0) by_room_.erase({-room_[part], part});
    room_[part] += size;
    if (room_[part] > 0) by_room_.insert({-room_[part], part});
  }

  void Move(uint32_t v, uint32_t to) {
    AddRoom(parts_[v], graph_.vertex_sizes[v]);
    AddRoom(to, -int64_t{graph_.vertex_sizes[v]});
    parts_[v] = to;
  }

  // In the order of their numbers, to the part with the most room.
  void MoveAny() {
    for (uint32_t v = 0; v < parts_.size() && !by_room_.empty(); ++v) {
      if (room_[parts_[v]] >= 0 || -by_room_.begin()->first < graph_.vertex_sizes[v]) continue;
      Move(v, by_room_.begin()->second);
    }
  }

  // The part with room for `v` that it is best connected to, of equals the one with the most room,
  // and the cut that it costs per size; its own part if none has room.
  std::pair<uint32_t, double> BestTarget(uint32_t v) {
    const uint32_t from = parts_[v];
    if (graph_.vertex_sizes[v] == 0) return {from, 0};
    for (size_t e = graph_.begin[v]; e < graph_.begin[v + 1]; ++e) {
      links_[parts_[graph_.neighbours[e]]] += graph_.weights[e];
    }
    uint32_t best = from;
    const auto look = [&](uint32_t p) {
      if (p == from || room_[p] < graph_.vertex_sizes[v]) return;
      if (best == from ||
          std::tuple(-links_[p], -room_[p], p) < std::tuple(-links_[best], -room_[best], best)) {
        best = p;
      }
    };
    for (size_t e = graph_.begin[v]; e < graph_.begin[v + 1]; ++e) {
      look(parts_[graph_.neighbours[e]]);
    }
    for (auto it = by_room_.begin(); it != by_room_.end(); ++it) {
      if (it->second == from) continue;
      look(it->second);  // the first that is not its own has the most room
      break;
    }
    const double cost = (links_[from] - links_[best]) / graph_.vertex_sizes[v];
    for (size_t e = graph_.begin[v]; e < graph_.begin[v + 1]; ++e) {
      links_[parts_[graph_.neighbours[e]]] = 0;
    }
    return {best, cost};
  }

  const WeightedGraph& graph_;
  std::vector<uint32_t>& parts_;
  std::vector<int64_t> room_;                       // [part], below 0: too full
  std::set<std::pair<int64_t, uint32_t>> by_room_;  // (-room, part) of those that have any
  std::vector<double> links_;                       // [part] scratch, all 0 between calls
  std::priority_queue<Entry> queue_;
};

// Parts of a few vertices each, filled one after the other: whoever exchanges most with the part
// comes next; a part begins with the free vertex that exchanges most with those before.
// O(vertices^2 + edges): for small graphs, where METIS spends its time on getting ready.
std::vector<uint32_t> GrowParts(const WeightedGraph& graph, absl::Span<const uint32_t> most) {
  const uint32_t count = graph.vertex_count();
  const auto none = static_cast<uint32_t>(most.size());
  std::vector<uint32_t> parts(count, none);
  std::vector<double> to_part(count, 0), to_all(count, 0);
  uint64_t left = count, room = std::accumulate(most.begin(), most.end(), uint64_t{0});
  for (uint32_t part = 0; part < none && left > 0; ++part) {
    room -= most[part];
    // Evenly, but no less than what the parts after it have no room for.
    const uint64_t even = (left + none - part - 1) / (none - part);
    const uint64_t size =
        std::min<uint64_t>(most[part], std::max(even, left > room ? left - room : 0));
    std::fill(to_part.begin(), to_part.end(), 0.0);
    for (uint64_t i = 0; i < size && left > 0; ++i, --left) {
      uint32_t best = count;
      for (uint32_t v = 0; v < count; ++v) {
        if (parts[v] != none) continue;
        if (best == count ||
            std::pair(to_part[v], to_all[v]) > std::pair(to_part[best], to_all[best])) {
          best = v;
        }
      }
      parts[best] = part;
      for (size_t e = graph.begin[best]; e < graph.begin[best + 1]; ++e) {
        to_part[graph.neighbours[e]] += graph.weights[e];
        to_all[graph.neighbours[e]] += graph.weights[e];
      }
    }
  }
  return parts;
}

struct CutOptions {
  uint64_t seed = 1;
  double imbalance = 0.001;                          // that METIS may use
  uint32_t tries = 1, cycles = 0, combinations = 0;  // see MultisectionOptions
  uint32_t samples = 1;  // partitions of which the first try is the best
};

// [vertex] part, about `targets` large and none larger than `most`; vertices are of size 1.
// Errors as Partition, CANCELLED only for the first cut. Once stopped, it refines no more.
class Cutting final {
 public:
  Cutting(const WeightedGraph& graph, absl::Span<const uint32_t> targets,
          absl::Span<const uint32_t> most, const CutOptions& options, const SearchControl& control)
      : graph_(graph),
        targets_(targets),
        most_(most),
        options_(options),
        control_(control),
        random_(options.seed) {}

  absl::StatusOr<std::vector<uint32_t>> Run() {
    RETURN_IF_ERROR(Try());
    for (uint32_t i = 1; i < options_.samples && !control_.stopped(); ++i) {
      const absl::Status status = Try();
      if (absl::IsCancelled(status)) break;
      RETURN_IF_ERROR(status);
      if (found_.back() < found_.front()) std::swap(found_.back(), found_.front());
      found_.pop_back();
    }
    if (options_.tries + options_.cycles + options_.combinations > 1) {
      RETURN_IF_ERROR(PrepareRefinement());
      Refine(found_.back(), nullptr);
      while (found_.size() < options_.tries && !control_.stopped()) {
        const absl::Status status = Try();
        if (absl::IsCancelled(status)) break;
        RETURN_IF_ERROR(status);
        Refine(found_.back(), nullptr);
      }
      for (uint32_t i = 0; found_.size() > 1 && i < options_.combinations; ++i) {
        if (control_.stopped()) break;
        Combine();
      }
    }
    return std::move(std::min_element(found_.begin(), found_.end())->parts);
  }

 private:
  struct Found {
    double cut;
    std::vector<uint32_t> parts;
    bool operator<(const Found& other) const { return cut < other.cut; }
  };

  bool BisectsNext() const {
    if (graph_.vertex_count() > kRecursiveUpTo) return false;
    const bool first = targets_.size() <= kManyParts;
    return targets_.size() <= kBisectedParts || (found_.size() % 2 == 0 ? first : !first);
  }

  absl::Status Try() {
    if (graph_.vertex_count() <= kTinyParts * targets_.size() &&
        graph_.vertex_count() <= kTinyGraph &&
        (targets_.size() > kFewParts || graph_.vertex_count() <= targets_.size())) {
      Add(GrowParts(graph_, most_));
      return absl::OkStatus();
    }
    PartitionOptions partition;
    partition.seed = random_();
    partition.method =
        BisectsNext() ? PartitionMethod::kRecursiveBisection : PartitionMethod::kWays;
    // K-way refinement without room to move takes long and finds little; FitParts does it better.
    partition.imbalance = partition.method == PartitionMethod::kWays
                              ? std::max(options_.imbalance, kRoomOfWays)
                              : options_.imbalance;
    ASSIGN_OR_RETURN(std::vector<uint32_t> parts, Partition(graph_, targets_, partition, control_));
    FitParts(graph_, most_, parts, control_);
    Add(std::move(parts));
    return absl::OkStatus();
  }

  void Add(std::vector<uint32_t> parts) { found_.push_back({CutOf(parts), std::move(parts)}); }

  // Parts as places that are all one apart.
  absl::Status PrepareRefinement() {
    const auto count = static_cast<uint32_t>(most_.size());
    ASSIGN_OR_RETURN(problem_.distances, PlaceDistances::Uniform({count}, {1.0}));
    problem_.graph.links = graph_;
    for (size_t i = 0; i < most_.size(); ++i) {
      problem_.capacities.push_back(
          std::max(most_[i], static_cast<uint32_t>(targets_[i] * (1 + kRoomToMove))));
    }
    return absl::OkStatus();
  }

  double CutOf(const std::vector<uint32_t>& parts) const {
    double cut = 0;
    for (uint32_t v = 0; v < parts.size(); ++v) {
      for (size_t e = graph_.begin[v]; e < graph_.begin[v + 1]; ++e) {
        if (parts[graph_.neighbours[e]] != parts[v]) cut += graph_.weights[e];
      }
    }
    return cut / 2;
  }

  // Keeps the best that fits on the way.
  void Refine(Found& found, const std::vector<uint32_t>* other) {
    std::vector<uint32_t> parts = found.parts;
    for (uint32_t i = 0; i < std::max(1U, options_.cycles) && !control_.stopped(); ++i) {
      RefineOnAllLevels(problem_, random_(), i == 0 ? other : nullptr, control_, parts);
    }
    FitParts(graph_, most_, parts, control_);
    const double cut = CutOf(parts);
    if (cut < found.cut) found = {cut, std::move(parts)};
  }

  void Combine() {
    const auto count = static_cast<uint32_t>(found_.size());
    uint32_t a = random_.Below(count), b = random_.Below(count - 1);
    if (b >= a) ++b;
    if (found_[b] < found_[a]) std::swap(a, b);
    Found child = found_[a];
    Refine(child, &found_[b].parts);
    if (child.cut < found_[a].cut) {
      // The better parent lives on in its child; the place of the worst goes to whom it displaces.
      auto worst = std::max_element(found_.begin(), found_.end());
      *worst = std::move(child);
    }
  }

  const WeightedGraph& graph_;
  absl::Span<const uint32_t> targets_;
  absl::Span<const uint32_t> most_;
  const CutOptions options_;
  const SearchControl& control_;
  Xoshiro random_;
  SparseProblem problem_;
  std::vector<Found> found_;
};

}  // namespace

void FitParts(const WeightedGraph& graph, absl::Span<const uint32_t> capacities,
              std::vector<uint32_t>& parts, const SearchControl& control) {
  Fitting(graph, capacities, parts).Run(control);
}

std::vector<uint32_t> PartsInOrder(const WeightedGraph& graph,
                                   absl::Span<const uint32_t> capacities) {
  std::vector<uint32_t> parts;
  uint64_t filled = 0;
  for (uint32_t v = 0, part = 0; v < graph.vertex_count(); ++v) {
    while (filled >= capacities[part] && part + 1 < capacities.size()) {
      filled -= capacities[part];
      ++part;
    }
    parts.push_back(part);
    filled += graph.vertex_sizes[v];
  }
  return parts;
}

absl::StatusOr<std::vector<uint32_t>> CutIntoSizes(const WeightedGraph& graph,
                                                   absl::Span<const uint32_t> sizes,
                                                   const PartitionOptions& options,
                                                   const SearchControl& control) {
  if (graph.neighbours.empty()) return PartsInOrder(graph, sizes);
  if (absl::c_linear_search(sizes, 0U)) {  // METIS takes no part of nothing
    std::vector<uint32_t> numbers, others;
    for (uint32_t part = 0; part < sizes.size(); ++part) {
      if (sizes[part] == 0) continue;
      numbers.push_back(part);
      others.push_back(sizes[part]);
    }
    ASSIGN_OR_RETURN(std::vector<uint32_t> parts, CutIntoSizes(graph, others, options, control));
    for (uint32_t& part : parts) part = numbers[part];
    return parts;
  }
  absl::StatusOr<std::vector<uint32_t>> parts = Partition(graph, sizes, options, control);
  if (absl::IsCancelled(parts.status())) parts = PartsInOrder(graph, sizes);
  RETURN_IF_ERROR(parts.status());
  FitParts(graph, sizes, *parts, control);
  return parts;
}

namespace {

// The vertices of one group of places, waiting to be cut.
struct Piece : GraphPart {
  uint32_t node;
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
    std::vector<Piece> waiting;
    waiting.push_back({{Numbers(graph.vertex_count()), graph}, 0});
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
    std::vector<uint32_t> capacities;
    for (uint32_t i = 0; i < children; ++i) {
      capacities.push_back(groups_.nodes[node.first_child + i].capacity);
    }
    ASSIGN_OR_RETURN(const std::vector<uint32_t> parts, Parts(piece, capacities));
    uint32_t child = node.first_child;
    for (GraphPart& part : SplitGraph(piece.graph, parts, children)) {
      for (uint32_t& v : part.vertices) v = piece.vertices[v];
      if (!part.vertices.empty()) waiting.push_back({std::move(part), child});
      ++child;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<uint32_t>> Parts(const Piece& piece,
                                              const std::vector<uint32_t>& capacities) const {
    const uint64_t count = piece.vertices.size();
    if (capacities.size() == 1) return std::vector<uint32_t>(count, 0);
    const auto total = std::accumulate(capacities.begin(), capacities.end(), uint64_t{0});
    if (control_.stopped()) return PartsInOrder(piece.graph, capacities);
    const double free = static_cast<double>(total) / static_cast<double>(count);
    const double slack = std::pow(free, 1.0 / height_[piece.node]) - 1;
    std::vector<uint32_t> targets;
    std::vector<uint32_t> most;
    for (const uint32_t capacity : capacities) {
      const double share = static_cast<double>(capacity) / free;
      targets.push_back(std::max<uint32_t>(1, static_cast<uint32_t>(std::lround(share))));
      most.push_back(std::min(capacity, static_cast<uint32_t>(std::ceil(share * (1 + slack)))));
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
        Cutting(piece.graph, targets, most, cut, control_).Run();
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
