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
// Each step has few clusters, so that all of them together are O(levels * pairs) and a factor that
// depends on the children of a group, where one step at once has O(P * k * e), k in proportion to
// P.
//
// Departures: levels are those of the groups of places (search/groups/groups.h). A step counts the
// bytes within its group alone; where groups do not say all that distances say, parts are turned
// round in the end (ArrangeParts). Then single ranks are exchanged near their partners. A group of
// places that take one rank each is filled in the order of the ranks.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/cluster/clusters.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_search.h"
#include "daemon/mapping/search_control.h"

namespace coppice {
namespace {

// A group of places and the ranks that are to sit there.
struct Step {
  uint32_t group = 0;
  std::vector<uint32_t> ranks;  // of the whole problem, ascending
  SparseGraph graph;            // among them
};

// The graph in parts, and the vertices of each in `ranks`.
std::vector<Step> PartsOf(const SparseGraph& graph, const std::vector<uint32_t>& part_of,
                          uint32_t count) {
  std::vector<Step> parts;
  for (GraphPart& part : SplitGraph(graph.links, part_of, count)) {
    SparseGraph among;
    among.links = std::move(part.graph);
    for (const uint32_t u : part.vertices) {
      if (!graph.self.empty()) among.self.push_back(graph.self[u]);
      if (graph.out.empty()) continue;
      for (size_t e = graph.links.begin[u]; e < graph.links.begin[u + 1]; ++e) {
        if (part_of[graph.links.neighbours[e]] != part_of[u]) continue;
        among.out.push_back(graph.out[e]);
        among.in.push_back(graph.in[e]);
      }
    }
    parts.push_back({0, std::move(part.vertices), std::move(among)});
  }
  return parts;
}

class Descent final {
 public:
  Descent(const SparseProblem& problem, const MethodOptions& options, const SearchControl& control)
      : problem_(problem), options_(options), control_(control) {}

  Seats Run() {
    seats_.resize(problem_.graph.vertex_count());
    Descend({0, Numbers(seats_.size()), problem_.graph}, 0);
    return std::move(seats_);
  }

  uint32_t levels() const { return levels_; }
  uint32_t steps() const { return steps_; }

 private:
  void Descend(Step step, uint32_t depth) {
    levels_ = std::max(levels_, depth + 1);
    const PlaceGroups::Node& node = problem_.groups.nodes[step.group];
    const NodeCores cores = CoresOf(node);
    // All that it divides into takes one rank.
    const bool is_flat = node.child_count == 0 || node.capacity == node.child_count;
    if (is_flat || depth >= options_.Or("levels", std::numeric_limits<double>::infinity())) {
      for (size_t i = 0; i < step.ranks.size(); ++i) seats_[step.ranks[i]] = cores.places[i];
      return;
    }
    ++steps_;
    MethodOptions options = options_;
    options.seed = WorkerSeed(options_.seed, 1, step.group);
    Seats seats;
    MapClusters(step.graph, *problem_.distances, cores, options, nullptr, control_, seats);
    std::vector<uint32_t> child_of(seats.size());
    for (uint32_t i = 0; i < seats.size(); ++i) {
      child_of[i] = ChildHolding(step.group, seats[i]) - node.first_child;
      seats_[step.ranks[i]] = seats[i];
    }
    uint32_t group = node.first_child;
    for (Step& child : PartsOf(step.graph, child_of, node.child_count)) {
      child.group = group++;
      for (uint32_t& rank : child.ranks) rank = step.ranks[rank];
      const bool divides = problem_.groups.nodes[child.group].child_count > 0;
      if (divides && !child.ranks.empty()) Descend(std::move(child), depth + 1);
    }
  }

  NodeCores CoresOf(const PlaceGroups::Node& node) const {
    NodeCores cores;
    for (uint32_t i = 0; i < node.child_count; ++i) {
      cores.sizes.push_back(problem_.groups.nodes[node.first_child + i].capacity);
    }
    for (const uint32_t place : problem_.groups.places(node)) {
      cores.places.insert(cores.places.end(), problem_.capacities[place], place);
    }
    return cores;
  }

  uint32_t ChildHolding(uint32_t group, uint32_t place) const {
    uint32_t child = problem_.groups.leaf[place];
    while (problem_.groups.nodes[child].parent != group)
      child = problem_.groups.nodes[child].parent;
    return child;
  }

  const SparseProblem& problem_;
  const MethodOptions& options_;
  const SearchControl& control_;
  Seats seats_;
  uint32_t levels_ = 0, steps_ = 0;
};

}  // namespace

absl::StatusOr<Mapped> RunHierarchicalClustering(const MappingProblem& problem, const Mapping&,
                                                 const MethodOptions& options,
                                                 const SearchControl& control) {
  ASSIGN_OR_RETURN(const SparsePointer sparse, MakeSparseProblem(problem, control));
  uint32_t widest = 0;
  for (const PlaceGroups::Node& node : sparse->groups.nodes) {
    widest = std::max(widest, node.child_count);
  }
  const auto clusters = static_cast<uint32_t>(options.Or("clusters", 2 * widest));
  RETURN_IF_ERROR(
      CheckEmbedding(options, problem.rank_count(), std::min(clusters, problem.rank_count())));
  Descent descent(*sparse, options, control);
  Seats seats = descent.Run();
  ArrangeParts(*sparse, options.seed, control, seats);
  double gained = 0;
  if (options.Is("exchange-ranks")) {
    gained = SwapUntilLocalOptimum(*sparse, {options.seed}, control, seats);
  }
  return Mapped{
      MappingOf(seats),
      absl::StrFormat("%d steps of clustering on %d levels of places%s; exchanges of "
                      "ranks gained %g",
                      descent.steps(), descent.levels(),
                      sparse->groups.exact ? "" : ", which only approach the distances", gained)};
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
//     3-4  L = I - D^-1/2 S D^-1/2, its first k eigenvectors
//     5-6  rows made 1 long, k-means
//     4.4.2  plain             if stdev(sizes) < T_l
//            first-fit         if stdev(sizes) > T_h and k < T_k
//            most-reservation  otherwise
//     4.4.3  clusters below NOISE_THRESHOLD, of equal size, exchanged
//
// The cost is the aggregated QAP's: between clusters alone (eq. 2-3); the note gives it. The paper
// names no values for T_l, T_h, T_k, MAX_SIMILARITY and NOISE_THRESHOLD: the presets are ours.
//
// Departures, each an option (README.md says why): `tries`, `vary`, `exchange-ranks`,
// `eigenvectors`, and a NOISE_THRESHOLD above a node's cores, so that whole nodes are exchanged as
// well. And: connected components are clustered apart, each scaled by its own heaviest pair
// (RankEmbedding); k is at most half of the ranks; where places take one rank each, nodes are the
// least groups of four places or more; block order, if it costs no more, is the answer.
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

}  // namespace

absl::StatusOr<Mapped> RunCpNsc(const MappingProblem& problem, const Mapping&,
                                const MethodOptions& options, const SearchControl& control) {
  const uint32_t ranks = problem.rank_count();
  ASSIGN_OR_RETURN(const SparsePointer sparse, MakeSparseProblem(problem, control));
  const NodeCores nodes = NodesOf(*sparse);
  RETURN_IF_ERROR(CheckEmbedding(options, ranks, ClusterCount(options, nodes, ranks)));
  Seats seats;
  const ClusterMap map =
      MapClusters(sparse->graph, *sparse->distances, nodes, options,
                  options.Is("exchange-ranks") ? sparse.get() : nullptr, control, seats);
  const bool is_block = options.Is("vary") && TakeBlockIfNoWorse(*sparse, seats);
  Mapped mapped{MappingOf(seats), Describe(map, options, nodes)};
  if (is_block) absl::StrAppend(&mapped.note, "; block order costs no more");
  absl::StrAppendFormat(&mapped.note, "; AQAP cost %g of QAP cost %g",
                        AggregatedQapCost(*problem.pattern, *problem.distances, mapped.mapping,
                                          LabelsOf(map.clusters, ranks)),
                        QapCost(*problem.pattern, *problem.distances, mapped.mapping));
  return mapped;
}

}  // namespace coppice
