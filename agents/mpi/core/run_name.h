// What tells this run of a program from others at the launcher, or at a name server that several
// launchers share: the same for all processes that one launcher started.
#ifndef COPPICE_AGENTS_MPI_CORE_RUN_NAME_H_
#define COPPICE_AGENTS_MPI_CORE_RUN_NAME_H_

#include <string>

namespace coppice::mpi {

// PMIX_NAMESPACE of Open MPI; else where MPICH's launcher (Hydra) is reached, as the command line
// of its proxy on this node says, one of this process's ancestors; else "world".
std::string RunName();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CORE_RUN_NAME_H_
