// Persistent collectives of MPI 4: what one sends is found when it is made, and traced whenever it
// is started (persistent.cc).
#include <mpi.h>

#include "agents/mpi/trace/trace.h"
#include "agents/mpi/trace/trace_collectives.h"

#if MPI_VERSION >= 4

using namespace coppice::mpi;  // NOLINT: the parts of this very library

extern "C" {

int MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Barrier_init(comm, info, request), [&] {
    TraceBarrier(comm);
    recording.Attach(*request);
  });
}

int MPI_Bcast_init(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                   MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Bcast_init(buffer, count, type, root, comm, info, request), [&] {
    TraceBcast(count, type, root, comm);
    recording.Attach(*request);
  });
}

int MPI_Reduce_init(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                    int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Reduce_init(send, receive, count, type, op, root, comm, info, request), [&] {
    TraceReduce(count, type, root, comm);
    recording.Attach(*request);
  });
}

int MPI_Allreduce_init(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Allreduce_init(send, receive, count, type, op, comm, info, request), [&] {
    TraceAllreduce(count, type, op, comm);
    recording.Attach(*request);
  });
}

int MPI_Scan_init(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Scan_init(send, receive, count, type, op, comm, info, request), [&] {
    TraceScan(count, type, comm);
    recording.Attach(*request);
  });
}

int MPI_Exscan_init(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Exscan_init(send, receive, count, type, op, comm, info, request), [&] {
    TraceScan(count, type, comm);
    recording.Attach(*request);
  });
}

int MPI_Reduce_scatter_init(const void* send, void* receive, const int counts[], MPI_Datatype type,
                            MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Reduce_scatter_init(send, receive, counts, type, op, comm, info, request),
                [&] {
                  TraceReduceScatter(counts, type, comm);
                  recording.Attach(*request);
                });
}

int MPI_Reduce_scatter_block_init(const void* send, void* receive, int count, MPI_Datatype type,
                                  MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Reduce_scatter_block_init(send, receive, count, type, op, comm, info, request),
                [&] {
                  TraceReduceScatterBlock(count, type, comm);
                  recording.Attach(*request);
                });
}

int MPI_Gather_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                    int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                    MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Gather_init(send, send_count, send_type, receive, receive_count, receive_type,
                                 root, comm, info, request),
                [&] {
                  TraceGather(send_count, send_type, root, comm);
                  recording.Attach(*request);
                });
}

int MPI_Gatherv_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                     const int receive_counts[], const int receive_offsets[],
                     MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Info info,
                     MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Gatherv_init(send, send_count, send_type, receive, receive_counts,
                                  receive_offsets, receive_type, root, comm, info, request),
                [&] {
                  TraceGatherv(send_count, send_type, root, comm);
                  recording.Attach(*request);
                });
}

int MPI_Scatter_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                     int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                     MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Scatter_init(send, send_count, send_type, receive, receive_count, receive_type,
                                  root, comm, info, request),
                [&] {
                  TraceScatter(send_count, send_type, receive_count, receive_type, root, comm);
                  recording.Attach(*request);
                });
}

int MPI_Scatterv_init(const void* send, const int send_counts[], const int send_offsets[],
                      MPI_Datatype send_type, void* receive, int receive_count,
                      MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Scatterv_init(send, send_counts, send_offsets, send_type, receive,
                                   receive_count, receive_type, root, comm, info, request),
                [&] {
                  TraceScatterv(send_counts, send_type, root, comm);
                  recording.Attach(*request);
                });
}

int MPI_Allgather_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                       int receive_count, MPI_Datatype receive_type, MPI_Comm comm, MPI_Info info,
                       MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Allgather_init(send, send_count, send_type, receive, receive_count,
                                    receive_type, comm, info, request),
                [&] {
                  TraceAllgather(send_count, send_type, receive_count, receive_type, comm);
                  recording.Attach(*request);
                });
}

int MPI_Allgatherv_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                        const int receive_counts[], const int receive_offsets[],
                        MPI_Datatype receive_type, MPI_Comm comm, MPI_Info info,
                        MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Allgatherv_init(send, send_count, send_type, receive, receive_counts,
                                     receive_offsets, receive_type, comm, info, request),
                [&] {
                  TraceAllgatherv(send_count, send_type, receive_counts, receive_type, comm);
                  recording.Attach(*request);
                });
}

int MPI_Alltoall_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                      int receive_count, MPI_Datatype receive_type, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Alltoall_init(send, send_count, send_type, receive, receive_count,
                                   receive_type, comm, info, request),
                [&] {
                  TraceAlltoall(send, send_count, send_type, receive_count, receive_type, comm);
                  recording.Attach(*request);
                });
}

int MPI_Alltoallv_init(const void* send, const int send_counts[], const int send_offsets[],
                       MPI_Datatype send_type, void* receive, const int receive_counts[],
                       const int receive_offsets[], MPI_Datatype receive_type, MPI_Comm comm,
                       MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(
      PMPI_Alltoallv_init(send, send_counts, send_offsets, send_type, receive, receive_counts,
                          receive_offsets, receive_type, comm, info, request),
      [&] {
        TraceAlltoallv(send, send_counts, send_type, receive_counts, receive_type, comm);
        recording.Attach(*request);
      });
}

int MPI_Alltoallw_init(const void* send, const int send_counts[], const int send_offsets[],
                       const MPI_Datatype send_types[], void* receive, const int receive_counts[],
                       const int receive_offsets[], const MPI_Datatype receive_types[],
                       MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(
      PMPI_Alltoallw_init(send, send_counts, send_offsets, send_types, receive, receive_counts,
                          receive_offsets, receive_types, comm, info, request),
      [&] {
        TraceAlltoallw(send, send_counts, send_types, receive_counts, receive_types, comm);
        recording.Attach(*request);
      });
}

int MPI_Neighbor_allgather_init(const void* send, int send_count, MPI_Datatype send_type,
                                void* receive, int receive_count, MPI_Datatype receive_type,
                                MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Neighbor_allgather_init(send, send_count, send_type, receive, receive_count,
                                             receive_type, comm, info, request),
                [&] {
                  TraceNeighborAllgather(send_count, send_type, comm);
                  recording.Attach(*request);
                });
}

int MPI_Neighbor_allgatherv_init(const void* send, int send_count, MPI_Datatype send_type,
                                 void* receive, const int receive_counts[],
                                 const int receive_offsets[], MPI_Datatype receive_type,
                                 MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Neighbor_allgatherv_init(send, send_count, send_type, receive, receive_counts,
                                              receive_offsets, receive_type, comm, info, request),
                [&] {
                  TraceNeighborAllgather(send_count, send_type, comm);
                  recording.Attach(*request);
                });
}

int MPI_Neighbor_alltoall_init(const void* send, int send_count, MPI_Datatype send_type,
                               void* receive, int receive_count, MPI_Datatype receive_type,
                               MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Neighbor_alltoall_init(send, send_count, send_type, receive, receive_count,
                                            receive_type, comm, info, request),
                [&] {
                  TraceNeighborAllgather(send_count, send_type, comm);
                  recording.Attach(*request);
                });
}

int MPI_Neighbor_alltoallv_init(const void* send, const int send_counts[], const int send_offsets[],
                                MPI_Datatype send_type, void* receive, const int receive_counts[],
                                const int receive_offsets[], MPI_Datatype receive_type,
                                MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Neighbor_alltoallv_init(send, send_counts, send_offsets, send_type, receive,
                                             receive_counts, receive_offsets, receive_type, comm,
                                             info, request),
                [&] {
                  TraceNeighborAlltoallv(send_counts, send_type, comm);
                  recording.Attach(*request);
                });
}

int MPI_Neighbor_alltoallw_init(const void* send, const int send_counts[],
                                const MPI_Aint send_offsets[], const MPI_Datatype send_types[],
                                void* receive, const int receive_counts[],
                                const MPI_Aint receive_offsets[],
                                const MPI_Datatype receive_types[], MPI_Comm comm, MPI_Info info,
                                MPI_Request* request) {
  PersistentRecording recording;
  return Traced(PMPI_Neighbor_alltoallw_init(send, send_counts, send_offsets, send_types, receive,
                                             receive_counts, receive_offsets, receive_types, comm,
                                             info, request),
                [&] {
                  TraceNeighborAlltoallw(send_counts, send_types, comm);
                  recording.Attach(*request);
                });
}

}  // extern "C"

#endif  // MPI_VERSION >= 4
