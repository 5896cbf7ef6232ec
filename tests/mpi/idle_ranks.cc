// Preloaded into MPICH's ranks, which are more than the machine's cores: one that finds nothing to
// do sleeps a moment. Debian's MPICH (ch4 over UCX) spins for its whole share of a core instead,
// and has no setting that would have it yield, as Open MPI's mpi_yield_when_idle: an Allreduce of
// four ranks on two cores takes 10 ms by itself and 0.2 ms so.
#include <dlfcn.h>

#include <ctime>

extern "C" unsigned ucp_worker_progress(void* worker) {
  using Progress = unsigned (*)(void*);
  static const auto progress = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  constexpr int kLooks = 20;  // with nothing found, before it sleeps
  static thread_local int idle = 0;
  const unsigned count = progress(worker);
  if (count > 0) {
    idle = 0;
  } else if (++idle > kLooks) {
    const timespec moment = {0, 1000};
    nanosleep(&moment, nullptr);
  }
  return count;
}
