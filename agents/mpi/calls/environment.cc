// MPI_Init and MPI_Finalize: where the library's parts begin and end, if they come here.
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "agents/mpi/calls/fortran.h"
#include "agents/mpi/core/returned_errors.h"
#include "agents/mpi/core/session.h"
#include "agents/mpi/core/settings.h"
#include "agents/mpi/trace/trace.h"
#include "agents/mpi/tree/tree_collectives.h"

namespace {

using namespace coppice::mpi;  // NOLINT: the parts of this very library

// That Open MPI and its kin have, and no MPICH.
constexpr const char* kOfOpenMpi = "ompi_mpi_comm_world";
#ifdef OPEN_MPI
constexpr bool kIsOpenMpi = true;
constexpr const char* kOwn = "Open MPI";
constexpr const char* kOther = "libcoppice_mpi_mpich.so";
#else
constexpr bool kIsOpenMpi = false;
constexpr const char* kOwn = "MPICH";
constexpr const char* kOther = "libcoppice_mpi_openmpi.so";
#endif

// This library is built against one MPI library, and the program may be built against another,
// whose handles are of other types and sizes. Nothing works then, not even handing calls on. Before
// the first call of MPI: with another MPI library than its own it says on stderr what to preload
// instead, and ends the process with status 1.
void EndUnlessOwnMpi() {
  // The first in the order in which the loader looks, as for this library's own calls.
  void* const init = dlsym(RTLD_DEFAULT, "PMPI_Init");
  Dl_info file = {};
  if (init == nullptr || dladdr(init, &file) == 0 || file.dli_fname == nullptr) return;
  void* const handle = dlopen(file.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return;
  const bool is_own = (dlsym(handle, kOfOpenMpi) != nullptr) == kIsOpenMpi;
  dlclose(handle);
  if (is_own) return;
  Dl_info own = {};
  dladdr(reinterpret_cast<void*>(&EndUnlessOwnMpi), &own);
  std::fprintf(
      stderr,
      "coppice: %s is for %s, but this program runs on %s: preload %s instead, or nothing\n",
      own.dli_fname == nullptr ? "this library" : own.dli_fname, kOwn, file.dli_fname, kOther);
  _exit(1);
}

bool has_begun = false;

void Begin() {
  has_begun = true;
  Session::Get().Start(kEnvironment);
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
  const Settings settings =
      has_begun ? Session::Get().settings() : ReadSettings(kEnvironment, &problems);
  if (!settings.AskForAnything() || !IsFirstRank()) return;
  std::fprintf(
      stderr,
      "coppice: the program was not traced, reordered or sent along trees%s, because %s did not "
      "reach libcoppice_mpi: name it first in LD_PRELOAD, before other tools\n",
      has_begun ? " to its end" : "", has_begun ? "MPI_Finalize" : "MPI_Init");
}

#ifndef OPEN_MPI

// What MPI says of a communicator without one.
int AsNatively(int error, MPI_Errhandler* handler) {
  if (error != MPI_SUCCESS || !IsNoHandler(*handler)) return error;
  PMPI_Errhandler_free(handler);
  *handler = MPI_ERRORS_ARE_FATAL;
  return error;
}

#endif  // OPEN_MPI

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

COPPICE_FORTRAN_CALLED(mpi_init, (Fint * error), MPI_Init(nullptr, nullptr))
COPPICE_FORTRAN_CALLED(mpi_init_thread, (Fint * required, Fint* provided, Fint* error),
                       MPI_Init_thread(nullptr, nullptr, *required, provided))
COPPICE_FORTRAN_CALLED(mpi_finalize, (Fint * error), MPI_Finalize())

#ifndef OPEN_MPI

int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* handler) {
  return AsNatively(PMPI_Comm_get_errhandler(comm, handler), handler);
}

int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler* handler) {
  return AsNatively(PMPI_Errhandler_get(comm, handler), handler);
}

#endif  // OPEN_MPI

}  // extern "C"
