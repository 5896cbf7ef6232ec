// MPI_Init and MPI_Finalize: where the library's parts begin and end.
#include <mpi.h>

#include "agents/mpi/core/session.h"
#include "agents/mpi/trace/trace.h"
#include "agents/mpi/tree/tree_collectives.h"

namespace {

void Begin() {
  coppice::mpi::Session::Get().Start();
  coppice::mpi::StartTrace();
  coppice::mpi::StartTrees();
}

}  // namespace

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  const int error = PMPI_Init(argc, argv);
  if (error == MPI_SUCCESS) Begin();
  return error;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int error = PMPI_Init_thread(argc, argv, required, provided);
  if (error == MPI_SUCCESS) Begin();
  return error;
}

int MPI_Finalize(void) {
  coppice::mpi::EndTrees();
  coppice::mpi::EndTrace();
  coppice::mpi::Session::Get().End();
  return PMPI_Finalize();
}

}  // extern "C"
