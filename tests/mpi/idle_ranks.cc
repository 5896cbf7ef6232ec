// Preloaded into MPICH's ranks, which are more than the machine's cores: one that finds nothing to
// do sleeps, first a moment, then longer. Debian's MPICH (ch4 over UCX) spins for its whole share
// of a core instead, and has no setting that would have it yield, as Open MPI's
// mpi_yield_when_idle: an Allreduce of four ranks on two cores takes 10 ms by itself and 0.1 ms so.
#include <dlfcn.h>

#include <algorithm>
#include <ctime>

namespace {

constexpr int kLooks = 20;  // with nothing found, before it sleeps
constexpr long kFirstPauseNs = 1'000,
               kLongestPauseNs = 5'000'000;  // hundreds of ranks need long ones

thread_local int idle = 0;
thread_local long pause_ns = kFirstPauseNs;

}  // namespace

extern "C" unsigned ucp_worker_progress(void* worker) {
  using Progress = unsigned (*)(void*);
  static const auto progress = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  const unsigned events = progress(worker);
  if (events > 0) {
    idle = 0;
    pause_ns = kFirstPauseNs;
  } else if (++idle > kLooks) {
    const timespec pause = {0, pause_ns};
    nanosleep(&pause, nullptr);
    // Twice as long after as many looks again.
    if (idle % kLooks == 0) pause_ns = std::min(2 * pause_ns, kLongestPauseNs);
  }
  return events;
}
