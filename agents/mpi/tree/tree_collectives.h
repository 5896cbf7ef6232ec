// Collectives along trees: of type I by point-to-point messages of the MPI library itself, of type
// II over the switches that carry them.
//
// Each function of collective_table.h is Tree...: collective over `comm`, and all members take the
// same way: true: the collective was carried out, and *error is what MPI returns; false: nothing
// was sent, call the native one, and then measured->End() if it did not fail. Throws
// std::bad_alloc, before anything was sent.
//
// Its nonblocking form is Start..., where there are any (started.h). Local, and all members do
// alike: true: it was started, *request is what MPI gives and *error MPI_SUCCESS; false: nothing
// was done, call the native one. Throws std::bad_alloc, before anything was sent.
#ifndef COPPICE_AGENTS_MPI_TREE_TREE_COLLECTIVES_H_
#define COPPICE_AGENTS_MPI_TREE_TREE_COLLECTIVES_H_

#include <mpi.h>

#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/core/returned_errors.h"
#include "agents/mpi/tree/collective_table.h"
#include "agents/mpi/tree/trial.h"

namespace coppice::mpi {

using Count = int;

#define COPPICE_TREE_CALL(NAME, FORTRAN, ARGUMENTS, TRACE)                           \
  bool Tree##NAME(ARGUMENTS(COPPICE_PARAMETER), MeasuredCall* measured, int* error); \
  bool Start##NAME(ARGUMENTS(COPPICE_PARAMETER), MPI_Request* request, int* error);
COPPICE_TREE_COLLECTIVES(COPPICE_TREE_CALL)
#undef COPPICE_TREE_CALL

// Collective over the new communicator, right after it was made; does nothing unless trees are
// asked for at creation. MPI_COMM_NULL is allowed. Returns as WithMemory.
int CommunicatorMade(MPI_Comm comm);
// The same for a program that may use nothing but nonblocking collectives of `comm`: with
// COPPICE_TREES_AFTER=0 trees of all lengths, over the ranks, and room for some segments.
int PrepareTreesOf(MPI_Comm comm);
// As CommunicatorMade, of what an MPI function has made, if it has: `error` is what it returned.
inline int Made(int error, const MPI_Comm* made) {
  return error == MPI_SUCCESS ? CommunicatorMade(*made) : error;
}

// MPI_SUCCESS; or `work` finds no memory. That is MPI_ERR_NO_MEM, told to the handler of `comm`, as
// a shortage within MPI: the others, which have no word of it, go on without this member.
template <class Work>
int WithMemory(MPI_Comm comm, const Work& work) {
  const bool has_memory = HasMemoryFor([&work] {
    work();
    return true;
  });
  if (has_memory) return MPI_SUCCESS;
  HandleError(comm, MPI_ERR_NO_MEM);
  return MPI_ERR_NO_MEM;
}

bool UsesTrees();

// Whether `tree`, one of the functions above, took the collective, or failed to: *error is what MPI
// returns then. Else the native one is to be called, and then measured->End() if it did not fail.
template <class Tree>
bool GoesAlongTree(MPI_Comm comm, const Tree& tree, MeasuredCall* measured, int* error) {
  if (!UsesTrees()) return false;
  bool is_taken = true;
  const int shortage = WithMemory(comm, [&] { is_taken = tree(); });
  if (shortage != MPI_SUCCESS) *error = shortage;
  if (is_taken && *error == MPI_SUCCESS) measured->End();
  return is_taken;
}

// By MPI_Init and MPI_Finalize, beside Session's.
void StartTrees();
void EndTrees();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TREE_COLLECTIVES_H_
