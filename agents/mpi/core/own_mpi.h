// Which MPI library answers: this library is built against one, and the program may be built
// against another, whose handles are of other types and sizes. Nothing works then, not even handing
// calls on.
#ifndef COPPICE_AGENTS_MPI_CORE_OWN_MPI_H_
#define COPPICE_AGENTS_MPI_CORE_OWN_MPI_H_

namespace coppice::mpi {

// Before the first call of MPI: with another MPI library than its own it says on stderr what to
// preload instead, and ends the process with status 1.
void EndUnlessOwnMpi();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CORE_OWN_MPI_H_
