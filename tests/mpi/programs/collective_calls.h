// The collectives of the MPI library, each under the names of its forms, so that a test can compute
// by hand what a trace of each must say:
//
//   bcast       MPI_Bcast
//   ibcast      MPI_Ibcast, waited for
//   bcast_init  MPI_Bcast_init, started three times, scatter_init once (MPI 4)
//
// and "allreduce_in_place", "alltoall_in_place".
#ifndef COPPICE_TESTS_MPI_PROGRAMS_COLLECTIVE_CALLS_H_
#define COPPICE_TESTS_MPI_PROGRAMS_COLLECTIVE_CALLS_H_

#include <string>

namespace coppice::patterns {

// Collective over the world. `bytes` is the call's count; calls with counts of each rank take
// multiples of it. `more`: the root; for those of neighbours the topology of a ring: 0 a grid, 1 a
// graph, 2 a distributed graph. False: none is called so.
bool CallCollective(const std::string& name, int bytes, int more);

}  // namespace coppice::patterns

#endif  // COPPICE_TESTS_MPI_PROGRAMS_COLLECTIVE_CALLS_H_
