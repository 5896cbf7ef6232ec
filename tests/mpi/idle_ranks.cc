// Preloaded into ranks, of which there are more than the machine has cores: one that finds nothing
// to do sleeps instead of spinning for its whole share of a core.
//
// Debian's MPICH (ch4 over UCX) has no setting for it: an Allreduce of four ranks on two cores
// takes 10 ms by itself and 0.1 ms so. Open MPI with mpi_yield_when_idle calls sched_yield()
// between looks: a rank still uses up its share of the core by looking, and then waits for its turn
// behind any busy process.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int kLooks = 20;  // with nothing found, before it sleeps
constexpr long kFirstPauseNs = 1'000,
               kMaxPauseNs = 5'000'000;  // hundreds of ranks need long ones

thread_local int idle = 0;
thread_local long pause_ns = kFirstPauseNs;

// Longer the more ranks of Open MPI there are, so that all of them together wake up as often.
long PauseOfEachRank() {
  constexpr long kNsPerRank = 10'000;
  const char* ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  const long count = ranks == nullptr ? 1 : std::atol(ranks);
  return std::clamp(count * kNsPerRank, kNsPerRank, kMaxPauseNs);
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
    if (idle % kLooks == 0) pause_ns = std::min(2 * pause_ns, kMaxPauseNs);
  }
  return events;
}

// Open MPI says so only if nothing has happened, and not in between: so pauses of one length.
extern "C" int sched_yield() noexcept {
  static const timespec pause = {0, PauseOfEachRank()};
  return nanosleep(&pause, nullptr);
}
