// Wang's hierarchical clustering map ("Optimization of process-to-core mapping based on clustering
// analysis", Chinese Journal of Computers 38(5), 2015, section 4.5 and figure 6).
//
//     all ranks                      level 2 switches as nodes: clusters of all ranks onto them
//       |-- switch 0                 level 1 switches as nodes: clusters of each one's ranks
//       |     |-- leaf 0
//       |     '-- leaf 1             ... down to the nodes, or for `levels` levels
//       '-- switch 1
//             |-- leaf 2
//             '-- leaf 3
//
//     Map(group, ranks):  nodes = children of the group, k = 2 x nodes
//                         one step of cp-nsc (cp_nsc.cc, 4.3 and 4.4) from ranks to nodes
//                         Map(child, its ranks) for every child
//
// Each step has few clusters, so that eigenvectors and k-means cost little: the sum of it all is
// O(levels * pairs) and a factor that depends on the children of a group, where one step at once
// has O(P * k * e) with k in proportion to P.
//
// Departures: levels are those of the groups of places (search/groups.h), which are the fabric's
// where distances are those of nested switches, and halves of who is nearest to whom on a torus. A
// step counts the bytes within its group alone; where groups do not say all that distances say,
// parts are turned round in the end (search/sparse_arrange.h). Then single ranks are exchanged near
// their partners, as in cp-nsc. A group of places that take one rank each is filled in the order of
// the ranks.
#include "daemon/mapping/algorithm/hierarchical_clustering.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/cluster/cluster_map_options.h"
#include "daemon/mapping/search/logical_workers.h"
#include "daemon/mapping/search/sparse/sparse_arrange.h"
#include "daemon/mapping/search/sparse/sparse_swaps.h"

namespace coppice {
namespace {

// A group of places and the ranks that are to sit there.
struct Step {
  uint32_t group = 0;
  std::vector<uint32_t> ranks;  // of the whole problem, ascending
  SparseGraph graph;            // among them
};

// The part of `graph` among the vertices for which part_of[vertex] is `part`: `kept`, ascending.
SparseGraph PartOf(const SparseGraph& graph, const std::vector<uint32_t>& part_of, uint32_t part,
                   std::vector<uint32_t>& kept) {
  SparseGraph among;
  among.links = Subgraph(graph.links, part_of, part, kept);
  for (const uint32_t u : kept) {
    if (!graph.self.empty()) among.self.push_back(graph.self[u]);
    if (graph.out.empty()) continue;
    for (size_t e = graph.links.begin[u]; e < graph.links.begin[u + 1]; ++e) {
      if (part_of[graph.links.neighbours[e]] != part) continue;
      among.out.push_back(graph.out[e]);
      among.in.push_back(graph.in[e]);
    }
  }
  return among;
}

class Descent final {
 public:
  Descent(const SparseProblem& problem, const ClusterMapOptions& options, uint32_t levels,
          const SearchControl& control)
      : problem_(problem), options_(options), levels_(levels), control_(control) {}

  Seats Run() {
    seats_.resize(problem_.graph.vertex_count());
    std::vector<Step> level(1);
    level[0].ranks.resize(seats_.size());
    std::iota(level[0].ranks.begin(), level[0].ranks.end(), 0);
    level[0].graph = problem_.graph;
    for (; !level.empty(); ++depth_) level = Descend(level);
    return std::move(seats_);
  }

  uint32_t depth() const { return depth_; }
  uint32_t steps() const { return steps_; }

 private:
  // All groups of one level; each writes the seats of its own ranks.
  std::vector<Step> Descend(const std::vector<Step>& level) {
    std::vector<std::vector<Step>> next(level.size());
    std::vector<uint32_t> clustered(level.size(), 0);
    const auto count = static_cast<uint32_t>(level.size());
    RunLogicalWorkers(options_.threads, count, [&](uint32_t i) {
      if (depth_ >= levels_ || IsFlat(level[i].group)) {
        FillInOrder(level[i]);
      } else {
        next[i] = Cluster(level[i]);
        clustered[i] = 1;
      }
    });
    std::vector<Step> below;
    for (std::vector<Step>& steps : next) {
      for (Step& step : steps) below.push_back(std::move(step));
    }
    steps_ += std::accumulate(clustered.begin(), clustered.end(), 0U);
    return below;
  }

  // All that it divides into takes one rank.
  bool IsFlat(uint32_t group) const {
    const PlaceGroups::Node& node = problem_.groups.nodes[group];
    return node.child_count == 0 || node.capacity == node.child_count;
  }

  void FillInOrder(const Step& step) {
    const NodeCores cores = CoresOf(problem_.groups.nodes[step.group]);
    for (size_t i = 0; i < step.ranks.size(); ++i) seats_[step.ranks[i]] = cores.places[i];
  }

  NodeCores CoresOf(const PlaceGroups::Node& node) const {
    NodeCores cores;
    for (uint32_t i = 0; i < node.child_count; ++i) {
      cores.sizes.push_back(
          static_cast<uint32_t>(problem_.groups.nodes[node.first_child + i].capacity));
    }
    for (const uint32_t place : problem_.groups.places(node)) {
      cores.places.insert(cores.places.end(), problem_.capacities[place], place);
    }
    return cores;
  }

  std::vector<Step> Cluster(const Step& step) {
    const PlaceGroups::Node& node = problem_.groups.nodes[step.group];
    const NodeCores cores = CoresOf(node);
    ClusterMapOptions options = options_;
    options.seed = WorkerSeed(options_.seed, 1, step.group);
    options.threads = depth_ == 0 ? options_.threads : 1;
    Seats seats;
    MapClusters(step.graph, *problem_.distances, cores, options, nullptr, control_, seats);
    std::vector<uint32_t> child_of(seats.size());
    for (uint32_t i = 0; i < seats.size(); ++i) {
      child_of[i] = ChildHolding(node, seats[i]);
      seats_[step.ranks[i]] = seats[i];
    }
    return StepsBelow(step, node, child_of);
  }

  uint32_t ChildHolding(const PlaceGroups::Node& node, uint32_t place) const {
    const uint32_t at = problem_.groups.nodes[problem_.groups.leaf[place]].begin;
    const auto first = problem_.groups.nodes.begin() + node.first_child;
    return static_cast<uint32_t>(
        std::upper_bound(first, first + node.child_count, at,
                         [](uint32_t p, const PlaceGroups::Node& n) { return p < n.begin; }) -
        first - 1);
  }

  std::vector<Step> StepsBelow(const Step& step, const PlaceGroups::Node& node,
                               const std::vector<uint32_t>& child_of) const {
    std::vector<Step> below;
    for (uint32_t i = 0; i < node.child_count; ++i) {
      if (problem_.groups.nodes[node.first_child + i].child_count == 0) continue;
      Step child;
      child.group = node.first_child + i;
      child.graph = PartOf(step.graph, child_of, i, child.ranks);
      for (uint32_t& rank : child.ranks) rank = step.ranks[rank];
      if (!child.ranks.empty()) below.push_back(std::move(child));
    }
    return below;
  }

  const SparseProblem& problem_;
  const ClusterMapOptions options_;
  const uint32_t levels_;
  const SearchControl& control_;
  Seats seats_;  // a step writes those of its ranks
  uint32_t depth_ = 0, steps_ = 0;
};

absl::StatusOr<Mapped> RunHierarchicalClustering(const MappingProblem& problem, const Mapping&,
                                                 const AlgorithmOptions& options,
                                                 const SearchControl& control) {
  const MappingAlgorithm& self = HierarchicalClusteringAlgorithm();
  const ClusterMapOptions map_options = ClusterMapOptionsOf(self, options);
  ASSIGN_OR_RETURN(const std::shared_ptr<const SparseProblem> sparse,
                   MakeSparseProblem(problem, control));
  uint32_t widest = 0;
  for (const PlaceGroups::Node& node : sparse->groups.nodes) {
    widest = std::max(widest, node.child_count);
  }
  const uint32_t clusters = map_options.clusters > 0 ? map_options.clusters : 2 * widest;
  RETURN_IF_ERROR(CheckEmbedding(self, map_options, problem.rank_count(),
                                 std::min(clusters, problem.rank_count())));
  const auto levels = static_cast<uint32_t>(ParameterOf(self, options, "levels"));
  Descent descent(*sparse, map_options, levels == 0 ? 0xffffffff : levels, control);
  Seats seats = descent.Run();
  ArrangeParts(*sparse, options.seed, control, seats);
  double gained = 0;
  if (map_options.exchange_ranks) {
    gained = SwapUntilLocalOptimum(*sparse, {options.seed}, control, seats);
  }
  return Mapped{
      MappingOf(seats),
      absl::StrFormat("%d steps of clustering on %d levels of places%s; exchanges of "
                      "ranks gained %g",
                      descent.steps(), descent.depth(),
                      sparse->groups.exact ? "" : ", which only approach the distances", gained)};
}

std::vector<AlgorithmParameter> Parameters() {
  std::vector<AlgorithmParameter> parameters = ClusterMapParameters();
  parameters.push_back({"levels", 0, 0, 1e6,
                        "levels from the root that are clustered, below ranks fill places in their "
                        "order; 0: all"});
  return parameters;
}

}  // namespace

const MappingAlgorithm& HierarchicalClusteringAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "hierarchical-clustering", "Wang 2015, 4.5", false, Parameters(), RunHierarchicalClustering};
  return *entry;
}

}  // namespace coppice
