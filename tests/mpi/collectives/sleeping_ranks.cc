// Ranks that sleep while they wait, so that hundreds of them get on with few cores: both MPIs poll
// as long as they wait, Open MPI with sched_yield() in between (mpi_yield_when_idle), MPICH through
// UCX. These functions stand before those of the C library and of UCX, for this program only.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>

namespace {

constexpr long kFirstPauseNs = 200'000;
constexpr long kLongestPauseNs = 5'000'000;

thread_local long pause_ns = kFirstPauseNs;

void Sleep() {
  const timespec pause = {0, pause_ns};
  nanosleep(&pause, nullptr);
  pause_ns = std::min(2 * pause_ns, kLongestPauseNs);
}

}  // namespace

extern "C" {

// Open MPI says so only if nothing has happened, and not in between: so pauses of one length.
int sched_yield() noexcept {
  const timespec pause = {0, 20 * kFirstPauseNs};
  return nanosleep(&pause, nullptr);
}

unsigned ucp_worker_progress(void* worker) {
  static const auto next =
      reinterpret_cast<unsigned (*)(void*)>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  const unsigned events = next(worker);
  if (events > 0) {
    pause_ns = kFirstPauseNs;
  } else {
    Sleep();
  }
  return events;
}

}  // extern "C"
