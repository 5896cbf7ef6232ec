// What this process did with trees, counted for tests and for who asks for words (COPPICE_VERBOSE).
// Counters are atomic; they never go back.
#ifndef COPPICE_AGENTS_MPI_TREE_TREE_COUNTS_H_
#define COPPICE_AGENTS_MPI_TREE_TREE_COUNTS_H_

#include <cstdint>

#include "agents/mpi/tree/collective_table.h"

namespace coppice::mpi {

enum TreeCount {
  kCountAsked,    // trees that this process asked for
  kCountGranted,  // of these
// Collectives that went along a tree: kCountBarrier, kCountBcast, ...
#define COPPICE_COUNT(NAME, ...) kCount##NAME,
  COPPICE_TREE_COLLECTIVES(COPPICE_COUNT)
#undef COPPICE_COUNT
      kCountNative,  // collectives that found no tree, or one that could not carry them
  kCountRevised,     // trees that were replaced, at their root
  kCountGone,        // trees that were given up, at their root
  kCountReleased,    // trees that were given back
  kTreeCounts
};

void CountTree(TreeCount what);

}  // namespace coppice::mpi

// For programs that look it up by name: writes the kTreeCounts counters of this process, at most
// `size` of them, and returns how many there are.
extern "C" __attribute__((visibility("default"))) int coppice_mpi_tree_counts(uint64_t* counts,
                                                                              int size);

#endif  // COPPICE_AGENTS_MPI_TREE_TREE_COUNTS_H_
