// What each collective makes this process send (collective_messages.h), read from the arguments of
// its call. Arguments that mean nothing at this rank are not looked at; MPI_IN_PLACE is allowed
// where MPI allows it. On intercommunicators:
//
//   bcast, scatter          the root to the remote rank 0, from there binomial; to each
//   reduce, gather          binomial to the remote rank 0, from there to the root; each to the root
//   barrier, allreduce      binomial to rank 0, ranks 0 with each other, binomial from rank 0
//   reduce_scatter          binomial to rank 0, ranks 0 with each other, from rank 0 to each
//   allgather, alltoall     each to each
#ifndef COPPICE_AGENTS_MPI_TRACE_TRACE_COLLECTIVES_H_
#define COPPICE_AGENTS_MPI_TRACE_TRACE_COLLECTIVES_H_

#include <mpi.h>

namespace coppice::mpi {

void TraceBarrier(MPI_Comm comm);
void TraceBcast(int count, MPI_Datatype type, int root, MPI_Comm comm);
void TraceReduce(int count, MPI_Datatype type, int root, MPI_Comm comm);
void TraceAllreduce(int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
void TraceScan(int count, MPI_Datatype type, MPI_Comm comm);
void TraceReduceScatter(const int counts[], MPI_Datatype type, MPI_Comm comm);
void TraceReduceScatterBlock(int count, MPI_Datatype type, MPI_Comm comm);
void TraceGather(int send_count, MPI_Datatype send_type, int root, MPI_Comm comm);
void TraceGatherv(int send_count, MPI_Datatype send_type, int root, MPI_Comm comm);
void TraceScatter(int send_count, MPI_Datatype send_type, int receive_count,
                  MPI_Datatype receive_type, int root, MPI_Comm comm);
void TraceScatterv(const int send_counts[], MPI_Datatype send_type, int root, MPI_Comm comm);
void TraceAllgather(int send_count, MPI_Datatype send_type, int receive_count,
                    MPI_Datatype receive_type, MPI_Comm comm);
void TraceAllgatherv(int send_count, MPI_Datatype send_type, const int receive_counts[],
                     MPI_Datatype receive_type, MPI_Comm comm);
// With MPI_IN_PLACE, what is received says what is sent.
void TraceAlltoall(const void* send, int send_count, MPI_Datatype send_type, int receive_count,
                   MPI_Datatype receive_type, MPI_Comm comm);
void TraceAlltoallv(const void* send, const int send_counts[], MPI_Datatype send_type,
                    const int receive_counts[], MPI_Datatype receive_type, MPI_Comm comm);
void TraceAlltoallw(const void* send, const int send_counts[], const MPI_Datatype send_types[],
                    const int receive_counts[], const MPI_Datatype receive_types[], MPI_Comm comm);

// Neighbourhood collectives: a message to each neighbour that the topology names as one to send to.
void TraceNeighborAllgather(int send_count, MPI_Datatype send_type, MPI_Comm comm);
void TraceNeighborAlltoallv(const int send_counts[], MPI_Datatype send_type, MPI_Comm comm);
void TraceNeighborAlltoallw(const int send_counts[], const MPI_Datatype send_types[],
                            MPI_Comm comm);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TRACE_TRACE_COLLECTIVES_H_
