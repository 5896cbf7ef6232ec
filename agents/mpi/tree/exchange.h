// An Allreduce without a root: ranks exchange the message, or halves of it, in the order of a tree
// (rank_order.h). What a step receives is combined with the result so far in the ranks' order, so
// that all ranks get the same bits.
#ifndef COPPICE_AGENTS_MPI_TREE_EXCHANGE_H_
#define COPPICE_AGENTS_MPI_TREE_EXCHANGE_H_

#include <mpi.h>

#include <vector>

#include "agents/mpi/tree/elements.h"
#include "agents/mpi/tree/rank_order.h"
#include "agents/mpi/tree/tag_pool.h"

namespace coppice::mpi {

// Collective over the tree's members; ends when this rank's part is done. `input` may be `result`.
// `room`: for `count` elements. An error of MPI's, after which messages may be on their way still:
// the steps are taken all the same, so that no rank waits for one that has failed.
int RunExchange(const TreeTags& tags, const std::vector<ExchangeStep>& steps,
                const TypeLayout& layout, int count, MPI_Op op, const void* input, void* result,
                void* room);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_EXCHANGE_H_
