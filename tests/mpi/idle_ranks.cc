// Preloaded into ranks, of which there are more than the machine has cores: one that finds nothing
// to do sleeps instead of spinning for its whole share of a core.
//
// Debian's MPICH (ch4 over UCX) has no setting for it: an Allreduce of four ranks on two cores
// takes 10 ms by itself and 0.1 ms so. Open MPI's mpi_yield_when_idle calls sched_yield() between
// looks, which gives way to its own ranks only: beside one other busy process each turn is lost for
// milliseconds.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int kLooks = 20;  // with nothing found, before it sleeps
constexpr long kFirstPauseNs = 1'000,
               kLongestPauseNs = 5'000'000;  // hundreds of ranks need long ones

thread_local int idle = 0;
thread_local long pause_ns = kFirstPauseNs;

// Together the ranks wake up as often, however many they are.
long PauseOfOneOfAll() {
  constexpr long kNsPerRank = 10'000;
  const char* ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  return ranks == nullptr ? kNsPerRank : std::max(1, std::atoi(ranks)) * kNsPerRank;
}

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

// Open MPI says so only if nothing has happened, and not in between: so pauses of one length.
extern "C" int sched_yield() noexcept {
  static const timespec pause = {0, PauseOfOneOfAll()};
  return nanosleep(&pause, nullptr);
}
