#include "agents/mpi/core/own_mpi.h"

#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>

namespace coppice::mpi {
namespace {

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

}  // namespace

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

}  // namespace coppice::mpi
