// What becomes of the trace at MPI_Finalize.
#ifndef COPPICE_AGENTS_MPI_TRACE_TRACE_OUTPUT_H_
#define COPPICE_AGENTS_MPI_TRACE_TRACE_OUTPUT_H_

#include <vector>

#include "agents/mpi/trace/pair_table.h"

namespace coppice::mpi {

// Collective over the world: gathers what each rank sent at rank 0, which writes it to the
// session's trace file, puts it at the daemon, or both. Ranks are heard one after the other in
// pieces of some 50 kB, so that rank 0 holds no more than a rank's pairs for a file; for the daemon
// it holds all. A world that was spawned has names of its own, so that it does not write over its
// parents'. What goes wrong is said on stderr and fails nothing.
void OutputTrace(const std::vector<PairSum>& own);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TRACE_TRACE_OUTPUT_H_
