// Persistent and partitioned requests: what one sends is found when it is made and traced whenever
// it is started, as one message.
#include <mpi.h>

#include "agents/mpi/trace/trace.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

namespace {

// What made *request returned `error`; whenever it is started it sends what `trace` says.
template <typename Trace>
int Made(int error, const MPI_Request* request, const Trace& trace) {
  if (error != MPI_SUCCESS || !IsTracing()) return error;
  PersistentRecording recording;
  trace();
  recording.Attach(*request);
  return error;
}

}  // namespace

extern "C" {

int MPI_Send_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  return Made(PMPI_Send_init(buffer, count, type, to, tag, comm, request), request,
              [&] { TraceSend(count, type, to, comm); });
}

int MPI_Bsend_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  return Made(PMPI_Bsend_init(buffer, count, type, to, tag, comm, request), request,
              [&] { TraceSend(count, type, to, comm); });
}

int MPI_Ssend_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  return Made(PMPI_Ssend_init(buffer, count, type, to, tag, comm, request), request,
              [&] { TraceSend(count, type, to, comm); });
}

int MPI_Rsend_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  return Made(PMPI_Rsend_init(buffer, count, type, to, tag, comm, request), request,
              [&] { TraceSend(count, type, to, comm); });
}

int MPI_Start(MPI_Request* request) {
  if (!IsTracing()) return PMPI_Start(request);
  const int error = PMPI_Start(request);
  if (error == MPI_SUCCESS) TraceStart(*request);
  return error;
}

int MPI_Startall(int count, MPI_Request requests[]) {
  if (!IsTracing()) return PMPI_Startall(count, requests);
  const int error = PMPI_Startall(count, requests);
  for (int i = 0; error == MPI_SUCCESS && i < count; ++i) TraceStart(requests[i]);
  return error;
}

int MPI_Request_free(MPI_Request* request) {
  TraceRequestFreed(*request);
  return PMPI_Request_free(request);
}

#if MPI_VERSION >= 4

int MPI_Psend_init(const void* buffer, int partitions, MPI_Count count, MPI_Datatype type, int to,
                   int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return Made(PMPI_Psend_init(buffer, partitions, count, type, to, tag, comm, info, request),
              request, [&] { TracePartitionedSend(partitions, count, type, to, comm); });
}

#endif  // MPI_VERSION >= 4

}  // extern "C"
