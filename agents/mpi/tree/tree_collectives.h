// Collectives along type I trees, by point-to-point messages of the MPI library itself, where there
// is no hardware that aggregates.
//
// Each function is collective over `comm`, and all members take the same way: true: the collective
// was carried out, and *error is what MPI returns; false: nothing was sent, call the native one.
#ifndef COPPICE_AGENTS_MPI_TREE_TREE_COLLECTIVES_H_
#define COPPICE_AGENTS_MPI_TREE_TREE_COLLECTIVES_H_

#include <mpi.h>

namespace coppice::mpi {

bool TreeBarrier(MPI_Comm comm, int* error);
bool TreeBcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, int* error);
bool TreeReduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, int* error);
bool TreeAllreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, int* error);

// Collective over the new communicator, right after it was made; does nothing unless trees are
// asked for at creation. MPI_COMM_NULL is allowed.
void CommunicatorMade(MPI_Comm comm);

// By MPI_Init and MPI_Finalize, beside Session's.
void StartTrees();
void EndTrees();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TREE_COLLECTIVES_H_
