// Ranks of Open MPI that sleep while they wait, so that hundreds of them get on with few cores: it
// polls as long as it waits, with sched_yield() in between (mpi_yield_when_idle). This one stands
// before that of the C library, for this program only. MPICH's ranks: ../idle_ranks.cc.
#include <time.h>

// Says so only if nothing has happened, and not in between: so pauses of one length.
extern "C" int sched_yield() noexcept {
  const timespec pause = {0, 4'000'000};
  return nanosleep(&pause, nullptr);
}
