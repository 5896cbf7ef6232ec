// Where clusters of ranks go: three ways to place them, and exchanges of whole clusters afterwards.
//
// Clusters of ranks onto the cores of nodes, in three ways (Wang 2015, 4.4.2, algorithms 2 and 3).
// Knows sizes, no pattern and no distances.
//
//     clusters a a a, b b b, c c        nodes of 4 cores
//     plain              [a a a b][b b c c]      by first rank, one after the other
//     first-fit          [a a a c][b b b c]      the largest first, where it fits first; the rest
//                                                is split over what is idle
//     clusters a a, b b b b b b
//     first-fit          [b b b b][b b a a][. . . .]
//     most-reservation   [a a b b][b b b b][. . . .]    by first rank, where it fits first, or back
//                                                into idle cores right before, if that leaves more
//                                                nodes wholly idle
//
// Cores of a node fill from its first; so the idle ones are its last.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_PLACE_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_PLACE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/mapping/search/cluster/rank_clusters.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

enum class PlacementScheme : uint8_t { kPlain, kFirstFit, kMaxReservation };

// "plain", "first-fit", "most-reservation".
absl::string_view ToString(PlacementScheme scheme);

// When which: plain below `low` (T_l), first-fit above `high` (T_h) with fewer clusters than
// `clusters` (T_k), most-reservation otherwise.
struct PlacementRule {
  double low = 0, high = 0;  // standard deviations of the clusters' sizes, in ranks
  uint32_t clusters = 0;
};
PlacementScheme ChooseScheme(double deviation, uint32_t clusters, const PlacementRule& rule);

// [cluster][rank of the cluster] its core; cores are numbered through all nodes. `node_cores` hold
// all ranks. A cluster that fits into no idle block is split over what is idle, from the first.
// O(clusters * nodes).
std::vector<std::vector<uint32_t>> PlaceClusters(const Clusters& clusters, PlacementScheme scheme,
                                                 absl::Span<const uint32_t> node_cores);

// Whole clusters of ranks exchanged between their seats: aggregated pair exchange (Wang
// 2015, 4.4.3, algorithm 4: APE).
//
//     node 0  [ c0 c0 c0 | n1 ]        n1 and n3 are noise, of one size: exchange them if that
//     node 1  [ c2 c2 c2 | n3 ]        lessens the cost; the chunks c stay where they are, since
//                                      exchanging them comes to the same

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

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_PLACE_H_
