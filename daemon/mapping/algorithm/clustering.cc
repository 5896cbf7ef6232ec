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
//                         one step of cp-nsc (4.3 and 4.4) from ranks to nodes
//                         Map(child, its ranks) for every child
//
// Each step has few clusters, so that eigenvectors and k-means cost little: the sum of it all is
// O(levels * pairs) and a factor that depends on the children of a group, where one step at once
// has O(P * k * e) with k in proportion to P.
//
// Departures: levels are those of the groups of places (search/groups/groups.h), which are the
// fabric's where distances are those of nested switches, and halves of who is nearest to whom on a
// torus. A step counts the bytes within its group alone; where groups do not say all that distances
// say, parts are turned round in the end (search/sparse/sparse_multilevel.h). Then single ranks are
// exchanged near their partners, as in cp-nsc. A group of places that take one rank each is filled
// in the order of the ranks.
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/cluster/cluster_map.h"
#include "daemon/mapping/search/sparse/sparse_multilevel.h"
#include "daemon/mapping/search/sparse/sparse_swaps.h"
#include "daemon/mapping/search_control.h"

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

// Wang's mapping by clusters: Wang Tao, Qing Peng, Wei Di, Qi Fengbin, "Optimization of
// process-to-core mapping based on clustering analysis", Chinese Journal of Computers 38(5), 2015,
// sections 4.3 (algorithm 1, CP-NSC) and 4.4 (algorithms 2 to 4).
//
//      pattern            k = 2 x nodes clusters        placement             exchange of noise
//                           (eigenvectors, k-means)
//     0 - 4   1 - 5          {0 4 8} {1 5 9}         node 0 [0 4 8 | 3]       [0 4 8 | 7]
//      \ /     \ /           {2 6 10} {3} {7}        node 1 [1 5 9 | 7]  ->   [1 5 9 | 3]
//       8       9    ...
//
//     1-2  A' = A + A^T;  s_ij = a'_ij / max A' * MAX_SIMILARITY,  s_ii = SELF_SIMILARITY
//     3-4  L = I - D^-1/2 S D^-1/2, its first k eigenvectors          (search/spectral)
//     5-6  rows made 1 long, k-means                                  (search/rank_clusters)
//     4.4.2  plain             if stdev(sizes) < T_l                  (search/cluster_place)
//            first-fit         if stdev(sizes) > T_h and k < T_k
//            most-reservation  otherwise
//     4.4.3  clusters below NOISE_THRESHOLD, of equal size, exchanged (search/cluster_exchange)
//
// The cost is the aggregated QAP's: between clusters alone (eq. 2-3); the note gives it. The paper
// names no values for T_l, T_h, T_k, MAX_SIMILARITY and NOISE_THRESHOLD: the presets are ours.
//
// Departures, each an option. Without them (tries 1, vary 0, exchange-ranks 0, eigenvectors 0) the
// method is behind METIS and pair exchange on small stencils, for the reasons given:
//   - `exchange-ranks`: pair exchange of single ranks near their partners in the end. Clusters have
//     any size, nodes have not: a cluster that is split over two nodes is repaired by nothing else.
//   - `tries` runs of k-means, judged by the cost of their mappings; the paper takes one.
//   - `vary`: some of them with equal clusters, two for each node and one, which no node splits:
//     the aggregated exchange then has all pairs to try. And some by halving again and again
//     (BisectRanks): where eigenvalues coincide, as those of CG's sums over rows longer
//     than a node, k clusters at once are cut across in any direction, and halves are not.
//     Block order, if it costs no more, is the answer: on CG the paper finds just that.
//   - `eigenvectors`: at most 64 for any number of clusters. Clusters of ranks in two or three
//     dimensions are told apart by few; all k of them would be most of the time from 1,000 ranks
//     on.
//   - NOISE_THRESHOLD is above a node's cores: whole nodes are exchanged as well.
// And: connected components are clustered apart, each scaled by its own heaviest pair
// (search/rank_clusters); k is at most half of the ranks; where places take one rank each, nodes
// are the least groups of four places or more.
//
// O(restarts * P * e * (e + degree)) for e eigenvectors, O(P * k * e) for an iteration of k-means.

namespace {

// [rank] its cluster.
std::vector<uint32_t> LabelsOf(const Clusters& clusters, uint32_t ranks) {
  std::vector<uint32_t> labels(ranks);
  for (uint32_t c = 0; c < clusters.size(); ++c) {
    for (const uint32_t rank : clusters[c]) labels[rank] = c;
  }
  return labels;
}

absl::StatusOr<Mapped> RunCpNsc(const MappingProblem& problem, const Mapping&,
                                const AlgorithmOptions& options, const SearchControl& control) {
  const ClusterMapOptions map_options = ClusterMapOptionsOf(CpNscAlgorithm(), options);
  const uint32_t ranks = problem.rank_count();
  ASSIGN_OR_RETURN(const std::shared_ptr<const SparseProblem> sparse,
                   MakeSparseProblem(problem, control));
  const NodeCores nodes = NodesOf(*sparse);
  RETURN_IF_ERROR(CheckEmbedding(CpNscAlgorithm(), map_options, ranks,
                                 ClusterCount(map_options, nodes, ranks)));
  Seats seats;
  const ClusterMap map =
      MapClusters(sparse->graph, *sparse->distances, nodes, map_options,
                  map_options.exchange_ranks ? sparse.get() : nullptr, control, seats);
  const bool is_block = map_options.vary && TakeBlockIfNoWorse(*sparse, seats);
  Mapped mapped{MappingOf(seats), Describe(map, map_options, nodes)};
  if (is_block) absl::StrAppend(&mapped.note, "; block order costs no more");
  absl::StrAppendFormat(&mapped.note, "; AQAP cost %g of QAP cost %g",
                        AggregatedQapCost(*problem.pattern, *problem.distances, mapped.mapping,
                                          LabelsOf(map.clusters, ranks)),
                        QapCost(*problem.pattern, *problem.distances, mapped.mapping));
  return mapped;
}

}  // namespace

const MappingAlgorithm& CpNscAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{"cp-nsc", "Wang 2015, algorithms 1 to 4",
                                                        false, ClusterMapParameters(), RunCpNsc};
  return *entry;
}

}  // namespace coppice
