// Whole clusters of ranks exchanged between their seats: aggregated pair exchange (Wang
// 2015, 4.4.3, algorithm 4: APE).
//
//     node 0  [ c0 c0 c0 | n1 ]        n1 and n3 are noise, of one size: exchange them if that
//     node 1  [ c2 c2 c2 | n3 ]        lessens the cost; the chunks c stay where they are, since
//                                      exchanging them comes to the same
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_EXCHANGE_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_EXCHANGE_H_

#include <cstdint>

#include "daemon/mapping/search/cluster/rank_clusters.h"
#include "daemon/mapping/search/sparse/sparse_cost.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

struct ClusterExchangeOptions {
  uint32_t noise_threshold = 0;  // clusters of fewer ranks are noise
  uint64_t iterations = 500000;  // pairs that are tried
  uint64_t seed = 1;
};

struct ClusterExchanges {
  uint32_t noise = 0;  // clusters
  uint64_t tried = 0, made = 0;
  double gained = 0;
};

// Pairs of noise clusters of equal size, all in turn until no exchange gains; where one round would
// take more than `iterations`, drawn at random from `seed`. What a pair is worth is told first from
// the bytes between whole clusters and the seats of their first ranks, and only where that gains
// from all ranks. Never makes `seats`, which seat every vertex of the graph, worse.
// O(pairs of ranks + iterations * clusters that one talks to).
ClusterExchanges ExchangeClusters(const SparseGraph& graph, const PlaceDistances& distances,
                                  const Clusters& clusters, const ClusterExchangeOptions& options,
                                  const SearchControl& control, Seats& seats);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_EXCHANGE_H_
