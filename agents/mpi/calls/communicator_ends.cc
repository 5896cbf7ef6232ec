// Communicators that the program frees: on all members, and where MPI may be called, unlike in the
// functions of attributes. Their trees end before they do.
#include <mpi.h>

#include "agents/mpi/calls/fortran.h"
#include "agents/mpi/tree/communicator_trees.h"

namespace {

int End(MPI_Comm* comm, int (*end)(MPI_Comm*)) {
  int error = MPI_SUCCESS;
  {
    const coppice::mpi::EndingCommunicator ending(comm);
    error = end(comm);
  }
  coppice::mpi::SettleFreedTrees();
  return error;
}

// Of C, with the handle of Fortran's.
template <typename Call>
int EndedInFortran(coppice::mpi::Fint* comm, Call end) {
  MPI_Comm of_c = PMPI_Comm_f2c(*comm);
  const int error = end(&of_c);
  *comm = PMPI_Comm_c2f(of_c);
  return error;
}

}  // namespace

extern "C" {

int MPI_Comm_free(MPI_Comm* comm) { return End(comm, PMPI_Comm_free); }
int MPI_Comm_disconnect(MPI_Comm* comm) { return End(comm, PMPI_Comm_disconnect); }

using namespace coppice::mpi;  // NOLINT: the parts of this very library

COPPICE_FORTRAN_CALLED(mpi_comm_free, (Fint * comm, Fint* error),
                       EndedInFortran(comm, MPI_Comm_free))
COPPICE_FORTRAN_CALLED(mpi_comm_disconnect, (Fint * comm, Fint* error),
                       EndedInFortran(comm, MPI_Comm_disconnect))

}  // extern "C"
