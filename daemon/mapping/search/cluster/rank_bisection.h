// Ranks in clusters of given sizes by halving again and again: where many clusters at once cannot
// be told apart by the first eigenvectors (the sums of CG go along the edges of a cube, all
// directions of which look alike), two can.
//
//     nodes   0 1 2 3 4 5 6 7      the ranks in the order of an eigenvector, cut where the first
//             |_____| |_____|      half of the nodes is full; pairs over the cut exchanged
//             |_| |_| |_| |_|      (Kernighan and Lin); each half alone, by its own eigenvectors
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_RANK_BISECTION_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_RANK_BISECTION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/mapping/search/cluster/rank_clusters.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

struct BisectionOptions {
  SimilarityOptions similarity;
  uint32_t tries = 4;  // orders of each cut: the second eigenvector, then random mixtures of a few
  uint64_t seed = 1;
};

// A cluster for each size, in the order of `sizes`, whose sum is the number of vertices; none for a
// size of 0. Clusters that come one after the other are near each other in the pattern, too. Once
// stopped, it cuts in the order of the ranks. O(log(sizes) * (eigenvectors + tries * pairs)).
Clusters BisectRanks(const WeightedGraph& graph, absl::Span<const uint32_t> sizes,
                     const BisectionOptions& options, const SearchControl& control);

// Exchanges vertices of side 0 for vertices of side 1 while that lessens the weight between the
// sides: the best of either side in turn, losses included, up to the best point met (B. Kernighan
// and S. Lin, "An efficient heuristic procedure for partitioning graphs", 1970; single moves in
// turn after Fiduccia and Mattheyses, 1982). Returns what it gained. O(edges * log(vertices)) a
// round.
double ExchangeOverCut(const WeightedGraph& graph, const SearchControl& control,
                       std::vector<uint32_t>& sides);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_RANK_BISECTION_H_
