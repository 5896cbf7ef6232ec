// Collectives along type I trees, by point-to-point messages of the MPI library itself, where there
// is no hardware that aggregates.
//
// Each function of collective_table.h is Tree...: collective over `comm`, and all members take the
// same way: true: the collective was carried out, and *error is what MPI returns; false: nothing
// was sent, call the native one.
#ifndef COPPICE_AGENTS_MPI_TREE_TREE_COLLECTIVES_H_
#define COPPICE_AGENTS_MPI_TREE_TREE_COLLECTIVES_H_

#include <mpi.h>

#include "agents/mpi/tree/collective_table.h"

namespace coppice::mpi {

using Count = int;

#define COPPICE_TREE_CALL(NAME, FORTRAN, ARGUMENTS, TRACE) \
  bool Tree##NAME(ARGUMENTS(COPPICE_PARAMETER), int* error);
COPPICE_TREE_COLLECTIVES(COPPICE_TREE_CALL)
#undef COPPICE_TREE_CALL

// Collective over the new communicator, right after it was made; does nothing unless trees are
// asked for at creation. MPI_COMM_NULL is allowed.
void CommunicatorMade(MPI_Comm comm);

// By MPI_Init and MPI_Finalize, beside Session's.
void StartTrees();
void EndTrees();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TREE_COLLECTIVES_H_
