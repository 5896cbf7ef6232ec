// Persistent and partitioned requests: what one sends is found when it is made and traced whenever
// it is started, as one message.
#include <mpi.h>

#include "agents/mpi/trace/trace.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

extern "C" {

int MPI_Send_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  PersistentRecording recording;
  TraceSend(count, type, to, comm);
  const int error = PMPI_Send_init(buffer, count, type, to, tag, comm, request);
  if (error == MPI_SUCCESS) recording.Attach(*request);
  return error;
}

int MPI_Bsend_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  PersistentRecording recording;
  TraceSend(count, type, to, comm);
  const int error = PMPI_Bsend_init(buffer, count, type, to, tag, comm, request);
  if (error == MPI_SUCCESS) recording.Attach(*request);
  return error;
}

int MPI_Ssend_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  PersistentRecording recording;
  TraceSend(count, type, to, comm);
  const int error = PMPI_Ssend_init(buffer, count, type, to, tag, comm, request);
  if (error == MPI_SUCCESS) recording.Attach(*request);
  return error;
}

int MPI_Rsend_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  PersistentRecording recording;
  TraceSend(count, type, to, comm);
  const int error = PMPI_Rsend_init(buffer, count, type, to, tag, comm, request);
  if (error == MPI_SUCCESS) recording.Attach(*request);
  return error;
}

int MPI_Start(MPI_Request* request) {
  TraceStart(*request);
  return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[]) {
  for (int i = 0; i < count; ++i) TraceStart(requests[i]);
  return PMPI_Startall(count, requests);
}

int MPI_Request_free(MPI_Request* request) {
  TraceRequestFreed(*request);
  return PMPI_Request_free(request);
}

#if MPI_VERSION >= 4

int MPI_Psend_init(const void* buffer, int partitions, MPI_Count count, MPI_Datatype type, int to,
                   int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  PersistentRecording recording;
  TracePartitionedSend(partitions, count, type, to, comm);
  const int error = PMPI_Psend_init(buffer, partitions, count, type, to, tag, comm, info, request);
  if (error == MPI_SUCCESS) recording.Attach(*request);
  return error;
}

#endif  // MPI_VERSION >= 4

}  // extern "C"
