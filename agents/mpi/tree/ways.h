// Which way a collective goes, once its communicator has a tree: along it, another way over its
// ranks (rank_order.h) or natively, as trials tell (trial.h); or the user's fixed choice.
#ifndef COPPICE_AGENTS_MPI_TREE_WAYS_H_
#define COPPICE_AGENTS_MPI_TREE_WAYS_H_

#include <mpi.h>

#include <cstdint>

#include "agents/mpi/tree/collective_table.h"
#include "agents/mpi/tree/communicator_trees.h"
#include "agents/mpi/tree/trial.h"

namespace coppice::mpi {

// Of kCountBarrier and the others.
constexpr coppice_operation OperationOf(TreeCount what) {
  return what == kCountBarrier  ? COPPICE_OPERATION_BARRIER
         : what == kCountBcast  ? COPPICE_OPERATION_BCAST
         : what == kCountReduce ? COPPICE_OPERATION_REDUCE
                                : COPPICE_OPERATION_ALLREDUCE;
}

// Collective over `comm`, for the collective that TreeOf gave the tree for: which way it goes, if
// it need not be combined in the order of ranks; else kTree or kNative. *measured is the call, if
// it is. Throws std::bad_alloc.
Way WayOf(MPI_Comm comm, TreeCount what, uint64_t bytes, bool in_rank_order, CommunicatorTree* tree,
          MeasuredCall* measured);

// Local, for a collective that is only started and that PresentTreeOf gave the tree for: the way of
// blocking ones as the last trial, or an earlier run, has left it; else kNative. Throws
// std::bad_alloc.
Way SettledWayOf(MPI_Comm comm, TreeCount what, uint64_t bytes, bool in_rank_order,
                 CommunicatorTree* tree);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_WAYS_H_
