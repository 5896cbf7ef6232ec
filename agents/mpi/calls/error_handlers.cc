// MPICH: what handler a communicator has, as the program knows it (core/returned_errors.h).
#include <mpi.h>

#include "agents/mpi/core/returned_errors.h"

#ifndef OPEN_MPI

namespace {

// What MPI says of a communicator without one.
int AsNatively(int error, MPI_Errhandler* handler) {
  if (error != MPI_SUCCESS || !coppice::mpi::IsNoHandler(*handler)) return error;
  PMPI_Errhandler_free(handler);
  *handler = MPI_ERRORS_ARE_FATAL;
  return error;
}

}  // namespace

extern "C" {

int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* handler) {
  return AsNatively(PMPI_Comm_get_errhandler(comm, handler), handler);
}

int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler* handler) {
  return AsNatively(PMPI_Errhandler_get(comm, handler), handler);
}

}  // extern "C"

#endif  // OPEN_MPI
