// Blocking collectives: each is traced, and the four that trees can carry are offered to them
// first; all else is the MPI library's own.
#include <mpi.h>

#include "agents/mpi/core/session.h"
#include "agents/mpi/trace/trace.h"
#include "agents/mpi/trace/trace_collectives.h"
#include "agents/mpi/tree/tree_collectives.h"

namespace {

using namespace coppice::mpi;  // NOLINT: the parts of this very library

bool UsesTrees() {
  const Session& session = Session::Get();
  return session.IsUp() && session.settings().trees != TreesWhen::kNever;
}

}  // namespace

extern "C" {

int MPI_Barrier(MPI_Comm comm) {
  TraceBarrier(comm);
  int error = MPI_SUCCESS;
  if (UsesTrees() && TreeBarrier(comm, &error)) return error;
  return PMPI_Barrier(comm);
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  TraceBcast(count, type, root, comm);
  int error = MPI_SUCCESS;
  if (UsesTrees() && TreeBcast(buffer, count, type, root, comm, &error)) return error;
  return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  TraceReduce(count, type, root, comm);
  int error = MPI_SUCCESS;
  if (UsesTrees() && TreeReduce(send, receive, count, type, op, root, comm, &error)) return error;
  return PMPI_Reduce(send, receive, count, type, op, root, comm);
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  TraceAllreduce(count, type, op, comm);
  int error = MPI_SUCCESS;
  if (UsesTrees() && TreeAllreduce(send, receive, count, type, op, comm, &error)) return error;
  return PMPI_Allreduce(send, receive, count, type, op, comm);
}

int MPI_Scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
             MPI_Comm comm) {
  TraceScan(count, type, comm);
  return PMPI_Scan(send, receive, count, type, op, comm);
}

int MPI_Exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm) {
  TraceScan(count, type, comm);
  return PMPI_Exscan(send, receive, count, type, op, comm);
}

int MPI_Reduce_scatter(const void* send, void* receive, const int counts[], MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm) {
  TraceReduceScatter(counts, type, comm);
  return PMPI_Reduce_scatter(send, receive, counts, type, op, comm);
}

int MPI_Reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type,
                             MPI_Op op, MPI_Comm comm) {
  TraceReduceScatterBlock(count, type, comm);
  return PMPI_Reduce_scatter_block(send, receive, count, type, op, comm);
}

int MPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
               int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
  TraceGather(send_count, send_type, root, comm);
  return PMPI_Gather(send, send_count, send_type, receive, receive_count, receive_type, root, comm);
}

int MPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                const int receive_counts[], const int receive_offsets[], MPI_Datatype receive_type,
                int root, MPI_Comm comm) {
  TraceGatherv(send_count, send_type, root, comm);
  return PMPI_Gatherv(send, send_count, send_type, receive, receive_counts, receive_offsets,
                      receive_type, root, comm);
}

int MPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
  TraceScatter(send_count, send_type, receive_count, receive_type, root, comm);
  return PMPI_Scatter(send, send_count, send_type, receive, receive_count, receive_type, root,
                      comm);
}

int MPI_Scatterv(const void* send, const int send_counts[], const int send_offsets[],
                 MPI_Datatype send_type, void* receive, int receive_count,
                 MPI_Datatype receive_type, int root, MPI_Comm comm) {
  TraceScatterv(send_counts, send_type, root, comm);
  return PMPI_Scatterv(send, send_counts, send_offsets, send_type, receive, receive_count,
                       receive_type, root, comm);
}

int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  TraceAllgather(send_count, send_type, receive_count, receive_type, comm);
  return PMPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type, comm);
}

int MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                   const int receive_counts[], const int receive_offsets[],
                   MPI_Datatype receive_type, MPI_Comm comm) {
  TraceAllgatherv(send_count, send_type, receive_counts, receive_type, comm);
  return PMPI_Allgatherv(send, send_count, send_type, receive, receive_counts, receive_offsets,
                         receive_type, comm);
}

int MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                 int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  TraceAlltoall(send, send_count, send_type, receive_count, receive_type, comm);
  return PMPI_Alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm);
}

int MPI_Alltoallv(const void* send, const int send_counts[], const int send_offsets[],
                  MPI_Datatype send_type, void* receive, const int receive_counts[],
                  const int receive_offsets[], MPI_Datatype receive_type, MPI_Comm comm) {
  TraceAlltoallv(send, send_counts, send_type, receive_counts, receive_type, comm);
  return PMPI_Alltoallv(send, send_counts, send_offsets, send_type, receive, receive_counts,
                        receive_offsets, receive_type, comm);
}

int MPI_Alltoallw(const void* send, const int send_counts[], const int send_offsets[],
                  const MPI_Datatype send_types[], void* receive, const int receive_counts[],
                  const int receive_offsets[], const MPI_Datatype receive_types[], MPI_Comm comm) {
  TraceAlltoallw(send, send_counts, send_types, receive_counts, receive_types, comm);
  return PMPI_Alltoallw(send, send_counts, send_offsets, send_types, receive, receive_counts,
                        receive_offsets, receive_types, comm);
}

}  // extern "C"
