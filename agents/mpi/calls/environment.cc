// MPI_Init and MPI_Finalize: where the library's parts begin and end, if they come here.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "agents/mpi/core/own_mpi.h"
#include "agents/mpi/core/returned_errors.h"
#include "agents/mpi/core/session.h"
#include "agents/mpi/core/settings.h"
#include "agents/mpi/trace/trace.h"
#include "agents/mpi/tree/tree_collectives.h"

namespace {

using namespace coppice::mpi;  // NOLINT: the parts of this very library

bool has_begun = false;

void Begin() {
  has_begun = true;
  Session::Get().Start();
  StartTrace();
  StartTrees();
}

bool IsFirstRank() {
  if (Session::Get().IsUp()) return Session::Get().world_rank() == 0;
  // As launchers tell it, where MPI cannot be asked any more.
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = std::getenv("PMI_RANK");
  return rank == nullptr || std::strcmp(rank, "0") == 0;
}

// At the end of the process. Another library that is preloaded before this one may have kept a call
// to itself, as it hands on to PMPI_Init or PMPI_Finalize.
__attribute__((destructor)) void LookBack() {
  int is_finalized = 0;
  if (PMPI_Finalized(&is_finalized) != MPI_SUCCESS || is_finalized == 0) return;
  if (has_begun && !Session::Get().IsUp()) return;  // and ended
  std::string problems;
  const Settings settings = has_begun ? Session::Get().settings() : ReadSettings(&problems);
  if (!settings.AskForAnything() || !IsFirstRank()) return;
  std::fprintf(
      stderr,
      "coppice: the program was not traced, reordered or sent along trees%s, because %s did not "
      "reach libcoppice_mpi: name it first in LD_PRELOAD, before other tools\n",
      has_begun ? " to its end" : "", has_begun ? "MPI_Finalize" : "MPI_Init");
}

}  // namespace

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  EndUnlessOwnMpi();
  const int error = PMPI_Init(argc, argv);
  if (error == MPI_SUCCESS) Begin();
  return error;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  EndUnlessOwnMpi();
  const int error = PMPI_Init_thread(argc, argv, required, provided);
  if (error == MPI_SUCCESS) Begin();
  return error;
}

int MPI_Finalize(void) {
  EndTrees();
  EndTrace();
  Session::Get().End();
  return PMPI_Finalize();
}

}  // extern "C"

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
