// Nonblocking collectives: traced as their blocking ones. Trees carry none of them.
#include <mpi.h>

#include "agents/mpi/trace/trace.h"
#include "agents/mpi/trace/trace_collectives.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

extern "C" {

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return Traced(PMPI_Ibarrier(comm, request), [&] { TraceBarrier(comm); });
}

int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  return Traced(PMPI_Ibcast(buffer, count, type, root, comm, request),
                [&] { TraceBcast(count, type, root, comm); });
}

int MPI_Ireduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request* request) {
  return Traced(PMPI_Ireduce(send, receive, count, type, op, root, comm, request),
                [&] { TraceReduce(count, type, root, comm); });
}

int MPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  return Traced(PMPI_Iallreduce(send, receive, count, type, op, comm, request),
                [&] { TraceAllreduce(count, type, op, comm); });
}

int MPI_Iscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm, MPI_Request* request) {
  return Traced(PMPI_Iscan(send, receive, count, type, op, comm, request),
                [&] { TraceScan(count, type, comm); });
}

int MPI_Iexscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm, MPI_Request* request) {
  return Traced(PMPI_Iexscan(send, receive, count, type, op, comm, request),
                [&] { TraceScan(count, type, comm); });
}

int MPI_Ireduce_scatter(const void* send, void* receive, const int counts[], MPI_Datatype type,
                        MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return Traced(PMPI_Ireduce_scatter(send, receive, counts, type, op, comm, request),
                [&] { TraceReduceScatter(counts, type, comm); });
}

int MPI_Ireduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return Traced(PMPI_Ireduce_scatter_block(send, receive, count, type, op, comm, request),
                [&] { TraceReduceScatterBlock(count, type, comm); });
}

int MPI_Igather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                MPI_Request* request) {
  return Traced(PMPI_Igather(send, send_count, send_type, receive, receive_count, receive_type,
                             root, comm, request),
                [&] { TraceGather(send_count, send_type, root, comm); });
}

int MPI_Igatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                 const int receive_counts[], const int receive_offsets[], MPI_Datatype receive_type,
                 int root, MPI_Comm comm, MPI_Request* request) {
  return Traced(PMPI_Igatherv(send, send_count, send_type, receive, receive_counts, receive_offsets,
                              receive_type, root, comm, request),
                [&] { TraceGatherv(send_count, send_type, root, comm); });
}

int MPI_Iscatter(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                 int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                 MPI_Request* request) {
  return Traced(
      PMPI_Iscatter(send, send_count, send_type, receive, receive_count, receive_type, root, comm,
                    request),
      [&] { TraceScatter(send_count, send_type, receive_count, receive_type, root, comm); });
}

int MPI_Iscatterv(const void* send, const int send_counts[], const int send_offsets[],
                  MPI_Datatype send_type, void* receive, int receive_count,
                  MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Request* request) {
  return Traced(PMPI_Iscatterv(send, send_counts, send_offsets, send_type, receive, receive_count,
                               receive_type, root, comm, request),
                [&] { TraceScatterv(send_counts, send_type, root, comm); });
}

int MPI_Iallgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                   int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                   MPI_Request* request) {
  return Traced(PMPI_Iallgather(send, send_count, send_type, receive, receive_count, receive_type,
                                comm, request),
                [&] { TraceAllgather(send_count, send_type, receive_count, receive_type, comm); });
}

int MPI_Iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                    const int receive_counts[], const int receive_offsets[],
                    MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  return Traced(
      PMPI_Iallgatherv(send, send_count, send_type, receive, receive_counts, receive_offsets,
                       receive_type, comm, request),
      [&] { TraceAllgatherv(send_count, send_type, receive_counts, receive_type, comm); });
}

int MPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                  MPI_Request* request) {
  return Traced(
      PMPI_Ialltoall(send, send_count, send_type, receive, receive_count, receive_type, comm,
                     request),
      [&] { TraceAlltoall(send, send_count, send_type, receive_count, receive_type, comm); });
}

int MPI_Ialltoallv(const void* send, const int send_counts[], const int send_offsets[],
                   MPI_Datatype send_type, void* receive, const int receive_counts[],
                   const int receive_offsets[], MPI_Datatype receive_type, MPI_Comm comm,
                   MPI_Request* request) {
  return Traced(
      PMPI_Ialltoallv(send, send_counts, send_offsets, send_type, receive, receive_counts,
                      receive_offsets, receive_type, comm, request),
      [&] { TraceAlltoallv(send, send_counts, send_type, receive_counts, receive_type, comm); });
}

int MPI_Ialltoallw(const void* send, const int send_counts[], const int send_offsets[],
                   const MPI_Datatype send_types[], void* receive, const int receive_counts[],
                   const int receive_offsets[], const MPI_Datatype receive_types[], MPI_Comm comm,
                   MPI_Request* request) {
  return Traced(
      PMPI_Ialltoallw(send, send_counts, send_offsets, send_types, receive, receive_counts,
                      receive_offsets, receive_types, comm, request),
      [&] { TraceAlltoallw(send, send_counts, send_types, receive_counts, receive_types, comm); });
}

}  // extern "C"
