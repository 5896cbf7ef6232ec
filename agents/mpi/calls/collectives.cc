// Blocking collectives that no tree carries: each is traced, and the MPI library's own. Those that
// trees carry are in tree_calls.cc.
#include <mpi.h>

#include "agents/mpi/trace/trace.h"
#include "agents/mpi/trace/trace_collectives.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

extern "C" {

int MPI_Scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
             MPI_Comm comm) {
  return Traced(PMPI_Scan(send, receive, count, type, op, comm),
                [&] { TraceScan(count, type, comm); });
}

int MPI_Exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm) {
  return Traced(PMPI_Exscan(send, receive, count, type, op, comm),
                [&] { TraceScan(count, type, comm); });
}

int MPI_Reduce_scatter(const void* send, void* receive, const int counts[], MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm) {
  return Traced(PMPI_Reduce_scatter(send, receive, counts, type, op, comm),
                [&] { TraceReduceScatter(counts, type, comm); });
}

int MPI_Reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type,
                             MPI_Op op, MPI_Comm comm) {
  return Traced(PMPI_Reduce_scatter_block(send, receive, count, type, op, comm),
                [&] { TraceReduceScatterBlock(count, type, comm); });
}

int MPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
               int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return Traced(
      PMPI_Gather(send, send_count, send_type, receive, receive_count, receive_type, root, comm),
      [&] { TraceGather(send_count, send_type, root, comm); });
}

int MPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                const int receive_counts[], const int receive_offsets[], MPI_Datatype receive_type,
                int root, MPI_Comm comm) {
  return Traced(PMPI_Gatherv(send, send_count, send_type, receive, receive_counts, receive_offsets,
                             receive_type, root, comm),
                [&] { TraceGatherv(send_count, send_type, root, comm); });
}

int MPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return Traced(
      PMPI_Scatter(send, send_count, send_type, receive, receive_count, receive_type, root, comm),
      [&] { TraceScatter(send_count, send_type, receive_count, receive_type, root, comm); });
}

int MPI_Scatterv(const void* send, const int send_counts[], const int send_offsets[],
                 MPI_Datatype send_type, void* receive, int receive_count,
                 MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return Traced(PMPI_Scatterv(send, send_counts, send_offsets, send_type, receive, receive_count,
                              receive_type, root, comm),
                [&] { TraceScatterv(send_counts, send_type, root, comm); });
}

int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return Traced(
      PMPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type, comm),
      [&] { TraceAllgather(send_count, send_type, receive_count, receive_type, comm); });
}

int MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                   const int receive_counts[], const int receive_offsets[],
                   MPI_Datatype receive_type, MPI_Comm comm) {
  return Traced(
      PMPI_Allgatherv(send, send_count, send_type, receive, receive_counts, receive_offsets,
                      receive_type, comm),
      [&] { TraceAllgatherv(send_count, send_type, receive_counts, receive_type, comm); });
}

int MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                 int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return Traced(
      PMPI_Alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm),
      [&] { TraceAlltoall(send, send_count, send_type, receive_count, receive_type, comm); });
}

int MPI_Alltoallv(const void* send, const int send_counts[], const int send_offsets[],
                  MPI_Datatype send_type, void* receive, const int receive_counts[],
                  const int receive_offsets[], MPI_Datatype receive_type, MPI_Comm comm) {
  return Traced(
      PMPI_Alltoallv(send, send_counts, send_offsets, send_type, receive, receive_counts,
                     receive_offsets, receive_type, comm),
      [&] { TraceAlltoallv(send, send_counts, send_type, receive_counts, receive_type, comm); });
}

int MPI_Alltoallw(const void* send, const int send_counts[], const int send_offsets[],
                  const MPI_Datatype send_types[], void* receive, const int receive_counts[],
                  const int receive_offsets[], const MPI_Datatype receive_types[], MPI_Comm comm) {
  return Traced(
      PMPI_Alltoallw(send, send_counts, send_offsets, send_types, receive, receive_counts,
                     receive_offsets, receive_types, comm),
      [&] { TraceAlltoallw(send, send_counts, send_types, receive_counts, receive_types, comm); });
}

}  // extern "C"

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
