// One rank's view of a tree over ranks: who is above and below it, and in which order it combines
// what comes from below. Knows nothing of MPI.
//
// An order of combination is a chain x1 op x2 op ... op xn, of the rank's own data and one partial
// result from each child. It depends on the tree alone, so that the same tree gives the same result
// whichever message comes first.
//
//        0            ranks of each subtree      chain of 0: own, 1, [2 3], [4 5 6]
//      / | \           are neighbours: the       chain of 4: own, [5 6]
//     1  2  4         tree is ordered
//        |  |
//        3  5-6
#ifndef COPPICE_AGENTS_MPI_TREE_TREE_SHAPE_H_
#define COPPICE_AGENTS_MPI_TREE_TREE_SHAPE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace coppice::mpi {

struct TreeShape {
  static constexpr int kOwn = -1;

  int root = 0;
  int height = 0;  // of the tree: edges from its root to the lowest rank
  int rank = 0;
  int parent = -1;            // of this rank; -1: it is the root
  std::vector<int> children;  // of this rank, ascending
  // The chain from its end to its beginning: children's ranks, and kOwn once. Of an ordered tree
  // the chain is in rank order; of others the own data comes last in this list.
  std::vector<int> chain_from_end;
  // Every subtree's ranks are neighbours, so that partial results can be combined in rank order.
  bool is_ordered = false;
};

// `parents`: of each rank, -1 of the root. False, and `shape` untouched, if that is no tree over
// ranks 0..n-1 or `rank` is none of them. O(n).
bool MakeTreeShape(const std::vector<int32_t>& parents, int rank, TreeShape* shape);

// [tree and one more] Of `count` elements, which the trees of a forest share, the first that each
// carries, and `count`. Shares are 1 in all. The first tree has one element at least: it takes the
// root's word to all.
std::vector<int> FirstElements(std::span<const double> shares, int count);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TREE_SHAPE_H_
