// Arguments that the MPI library refuses: such a call is left to it before anybody is asked or
// sent anything, because it knows what to say, and says it to all ranks that give the same ones.
//
// For arguments as programs give them this costs some comparisons: the MPI library is asked only
// about types of the program's own, and buffers at address 0 (which MPI_BOTTOM is).
#ifndef COPPICE_AGENTS_MPI_TREE_ARGUMENTS_H_
#define COPPICE_AGENTS_MPI_TREE_ARGUMENTS_H_

#include <mpi.h>

#include "agents/mpi/tree/elements.h"

namespace coppice::mpi {

// Whether it takes `count` elements there for a broadcast.
bool MayBroadcast(const void* buffer, int count, const TypeLayout& layout);

// Whether it takes them for a reduction to all.
bool MayAllreduce(const void* send, const void* receive, int count, const TypeLayout& layout);

// The same to one rank. `receive` means something there only, and MPI_IN_PLACE is allowed there
// only. That the result goes where own data lies is seen there only, too: that rank alone leaves
// the call to the MPI library, which refuses it there before anything is sent, and may give the
// others what they wait for by calling again.
bool MayReduce(const void* send, const void* receive, int count, const TypeLayout& layout, int root,
               MPI_Comm comm);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_ARGUMENTS_H_
