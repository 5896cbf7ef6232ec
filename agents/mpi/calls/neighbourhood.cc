// Neighbourhood collectives, blocking and nonblocking: traced.
#include <mpi.h>

#include "agents/mpi/trace/trace.h"
#include "agents/mpi/trace/trace_collectives.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

extern "C" {

int MPI_Neighbor_allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                           int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return Traced(PMPI_Neighbor_allgather(send, send_count, send_type, receive, receive_count,
                                        receive_type, comm),
                [&] { TraceNeighborAllgather(send_count, send_type, comm); });
}

int MPI_Ineighbor_allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                            int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                            MPI_Request* request) {
  return Traced(PMPI_Ineighbor_allgather(send, send_count, send_type, receive, receive_count,
                                         receive_type, comm, request),
                [&] { TraceNeighborAllgather(send_count, send_type, comm); });
}

int MPI_Neighbor_allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                            const int receive_counts[], const int receive_offsets[],
                            MPI_Datatype receive_type, MPI_Comm comm) {
  return Traced(PMPI_Neighbor_allgatherv(send, send_count, send_type, receive, receive_counts,
                                         receive_offsets, receive_type, comm),
                [&] { TraceNeighborAllgather(send_count, send_type, comm); });
}

int MPI_Ineighbor_allgatherv(const void* send, int send_count, MPI_Datatype send_type,
                             void* receive, const int receive_counts[], const int receive_offsets[],
                             MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  return Traced(PMPI_Ineighbor_allgatherv(send, send_count, send_type, receive, receive_counts,
                                          receive_offsets, receive_type, comm, request),
                [&] { TraceNeighborAllgather(send_count, send_type, comm); });
}

int MPI_Neighbor_alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                          int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return Traced(PMPI_Neighbor_alltoall(send, send_count, send_type, receive, receive_count,
                                       receive_type, comm),
                [&] { TraceNeighborAllgather(send_count, send_type, comm); });
}

int MPI_Ineighbor_alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                           int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                           MPI_Request* request) {
  return Traced(PMPI_Ineighbor_alltoall(send, send_count, send_type, receive, receive_count,
                                        receive_type, comm, request),
                [&] { TraceNeighborAllgather(send_count, send_type, comm); });
}

int MPI_Neighbor_alltoallv(const void* send, const int send_counts[], const int send_offsets[],
                           MPI_Datatype send_type, void* receive, const int receive_counts[],
                           const int receive_offsets[], MPI_Datatype receive_type, MPI_Comm comm) {
  return Traced(PMPI_Neighbor_alltoallv(send, send_counts, send_offsets, send_type, receive,
                                        receive_counts, receive_offsets, receive_type, comm),
                [&] { TraceNeighborAlltoallv(send_counts, send_type, comm); });
}

int MPI_Ineighbor_alltoallv(const void* send, const int send_counts[], const int send_offsets[],
                            MPI_Datatype send_type, void* receive, const int receive_counts[],
                            const int receive_offsets[], MPI_Datatype receive_type, MPI_Comm comm,
                            MPI_Request* request) {
  return Traced(
      PMPI_Ineighbor_alltoallv(send, send_counts, send_offsets, send_type, receive, receive_counts,
                               receive_offsets, receive_type, comm, request),
      [&] { TraceNeighborAlltoallv(send_counts, send_type, comm); });
}

int MPI_Neighbor_alltoallw(const void* send, const int send_counts[], const MPI_Aint send_offsets[],
                           const MPI_Datatype send_types[], void* receive,
                           const int receive_counts[], const MPI_Aint receive_offsets[],
                           const MPI_Datatype receive_types[], MPI_Comm comm) {
  return Traced(PMPI_Neighbor_alltoallw(send, send_counts, send_offsets, send_types, receive,
                                        receive_counts, receive_offsets, receive_types, comm),
                [&] { TraceNeighborAlltoallw(send_counts, send_types, comm); });
}

int MPI_Ineighbor_alltoallw(const void* send, const int send_counts[],
                            const MPI_Aint send_offsets[], const MPI_Datatype send_types[],
                            void* receive, const int receive_counts[],
                            const MPI_Aint receive_offsets[], const MPI_Datatype receive_types[],
                            MPI_Comm comm, MPI_Request* request) {
  return Traced(
      PMPI_Ineighbor_alltoallw(send, send_counts, send_offsets, send_types, receive, receive_counts,
                               receive_offsets, receive_types, comm, request),
      [&] { TraceNeighborAlltoallw(send_counts, send_types, comm); });
}

}  // extern "C"
