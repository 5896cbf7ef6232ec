// The ranks of a communicator in an order in which neighbours are near each other on the fabric,
// and ways over ranks in that order. Knows nothing of MPI.
//
//     order      0 4 | 1 5 | 2 6 | 3 7        four hosts of two ranks
//     chain      each is the child of the one before it: long messages in many segments
//     binomial   place p is the child of p without its lowest bit: those of some segments
//     exchange   ranks of a host to its first one, and back; the first ones double or halve:
//
//                places of first ones   0   2   4   6
//                                       <-->    <-->      neighbours first, the whole message
//                                       <------>          or halves of halves
//                                           <------>
//
// Recursive doubling; recursive halving and doubling: Thakur, Rabenseifner, Gropp 2005, 3.1 and
// 4.5, but nearest first in both. Every partial result is one of neighbours in the order, so that
// all ranks combine in the order itself and get the same bits.
#ifndef COPPICE_AGENTS_MPI_TREE_RANK_ORDER_H_
#define COPPICE_AGENTS_MPI_TREE_RANK_ORDER_H_

#include <cstdint>
#include <vector>

namespace coppice::mpi {

struct RankOrder {
  std::vector<int> ranks;        // [place]
  std::vector<int> first_place;  // [host], ascending, and the number of ranks at the end

  // Whether all ranks are in their own order.
  bool IsAscending() const;
};

// Ranks in an order in which neighbours are near each other, but with those of a host together.
// `hosts`: a number for each rank. A host has the place of its first rank. O(n log n).
RankOrder OrderByHosts(std::vector<int> ranks, const std::vector<int>& hosts);

// Each rank of a tree before those below it, and all of these before its next sibling: who has no
// better order. `parents`: of each rank, -1 of the root.
std::vector<int> DepthFirst(const std::vector<int32_t>& parents);

// Parents of each rank: trees whose root has place 0.
std::vector<int32_t> ChainParents(const RankOrder& order);
std::vector<int32_t> BinomialParents(const RankOrder& order);

// One message each way between this rank and `peer`, of elements of the result.
struct ExchangeStep {
  struct Part {
    int first = 0, count = 0;
    bool is_there = false;
  };
  int peer = 0;
  Part send, receive;
  bool combines = false;      // what comes with what is there; else it takes its place
  bool is_peer_later = true;  // in the order: own result, then the peer's
};

// An Allreduce of `count` elements by `rank`, which begins with its own in the result: the whole
// message in each step, or, if `halves`, halves of halves. One step for each message; ranks' steps
// fit together. O(log n + ranks of its host) steps.
std::vector<ExchangeStep> ExchangeSteps(const RankOrder& order, int rank, int count, bool halves);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_RANK_ORDER_H_
