// Point-to-point: all modes of sending, traced as one message each, unless the call fails; those of
// persistent and partitioned requests whenever they are started. Receives are the sender's.
#include <mpi.h>

#include "agents/mpi/calls/fortran.h"
#include "agents/mpi/trace/trace.h"
#include "agents/mpi/tree/collective_table.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

// As in collective_table.h.
#define COPPICE_SEND_ARGUMENTS(A)                                                        \
  A(const void*, buffer), A(int, count), A(MPI_Datatype, type), A(int, to), A(int, tag), \
      A(MPI_Comm, comm)
#define COPPICE_SENDS(X)                                                    \
  X(Send, send, COPPICE_SEND_ARGUMENTS, TraceSend(count, type, to, comm))   \
  X(Bsend, bsend, COPPICE_SEND_ARGUMENTS, TraceSend(count, type, to, comm)) \
  X(Ssend, ssend, COPPICE_SEND_ARGUMENTS, TraceSend(count, type, to, comm)) \
  X(Rsend, rsend, COPPICE_SEND_ARGUMENTS, TraceSend(count, type, to, comm))

// Blocking, nonblocking and persistent.
#define COPPICE_SEND(NAME, FORTRAN, ARGUMENTS, TRACE)                                              \
  int MPI_##NAME(ARGUMENTS(COPPICE_PARAMETER)) {                                                   \
    return TraceSent([&] { return PMPI_##NAME(ARGUMENTS(COPPICE_ARGUMENT)); }, count, type, to,    \
                     comm);                                                                        \
  }                                                                                                \
  int MPI_I##FORTRAN(ARGUMENTS(COPPICE_PARAMETER), MPI_Request* request) {                         \
    return TraceSent([&] { return PMPI_I##FORTRAN(ARGUMENTS(COPPICE_ARGUMENT), request); }, count, \
                     type, to, comm);                                                              \
  }                                                                                                \
  int MPI_##NAME##_init(ARGUMENTS(COPPICE_PARAMETER), MPI_Request* request) {                      \
    return Traced(PMPI_##NAME##_init(ARGUMENTS(COPPICE_ARGUMENT), request),                        \
                  [&] { TracePersistent(*request, [&] { TRACE; }); });                             \
  }

// LAST: of what the last argument is an address.
#define COPPICE_BOTH_WAYS(A)                                                                     \
  A(const void*, send), A(int, send_count), A(MPI_Datatype, send_type), A(int, to),              \
      A(int, send_tag), A(void*, receive), A(int, receive_count), A(MPI_Datatype, receive_type), \
      A(int, from), A(int, receive_tag), A(MPI_Comm, comm)
#define COPPICE_REPLACING(A)                                                            \
  A(void*, buffer), A(int, count), A(MPI_Datatype, type), A(int, to), A(int, send_tag), \
      A(int, from), A(int, receive_tag), A(MPI_Comm, comm)
#define COPPICE_EXCHANGE(NAME, ARGUMENTS, LAST, COUNT, TYPE)                                      \
  int MPI_##NAME(ARGUMENTS(COPPICE_PARAMETER), LAST* last) {                                      \
    return TraceSent([&] { return PMPI_##NAME(ARGUMENTS(COPPICE_ARGUMENT), last); }, COUNT, TYPE, \
                     to, comm);                                                                   \
  }

#ifdef OPEN_MPI

namespace {

void Started(Fint count, const Fint* requests) {
  for (Fint i = 0; i < count; ++i) TraceStart(PMPI_Request_f2c(requests[i]));
}

COPPICE_SENDS(COPPICE_TRACE_OF)

}  // namespace

#define COPPICE_FORTRAN_PERSISTENT(NAME, FORTRAN, ARGUMENTS, TRACE)                               \
  COPPICE_FORTRAN_TRACED(                                                                         \
      mpi_##FORTRAN##_init, (ARGUMENTS(COPPICE_FORTRAN_PARAMETER), Fint * request, Fint * error), \
      (ARGUMENTS(COPPICE_ARGUMENT), request, error),                                              \
      TracePersistent(PMPI_Request_f2c(*request),                                                 \
                      [&] { Trace_##FORTRAN(ARGUMENTS(COPPICE_FROM_FORTRAN)); }))

#endif  // OPEN_MPI

extern "C" {

COPPICE_SENDS(COPPICE_SEND)

COPPICE_EXCHANGE(Sendrecv, COPPICE_BOTH_WAYS, MPI_Status, send_count, send_type)
COPPICE_EXCHANGE(Sendrecv_replace, COPPICE_REPLACING, MPI_Status, count, type)

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

COPPICE_EXCHANGE(Isendrecv, COPPICE_BOTH_WAYS, MPI_Request, send_count, send_type)
COPPICE_EXCHANGE(Isendrecv_replace, COPPICE_REPLACING, MPI_Request, count, type)

int MPI_Psend_init(const void* buffer, int partitions, MPI_Count count, MPI_Datatype type, int to,
                   int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  const auto trace = [&] { TracePartitionedSend(partitions, count, type, to, comm); };
  return Traced(PMPI_Psend_init(buffer, partitions, count, type, to, tag, comm, info, request),
                [&] { TracePersistent(*request, trace); });
}

#endif  // MPI_VERSION >= 4

#ifdef OPEN_MPI

COPPICE_SENDS(COPPICE_FORTRAN_BLOCKING)
COPPICE_SENDS(COPPICE_FORTRAN_NONBLOCKING)
COPPICE_SENDS(COPPICE_FORTRAN_PERSISTENT)

COPPICE_FORTRAN_TRACED(mpi_sendrecv,
                       (COPPICE_BOTH_WAYS(COPPICE_FORTRAN_PARAMETER), Fint* status, Fint* error),
                       (COPPICE_BOTH_WAYS(COPPICE_ARGUMENT), status, error),
                       TraceSend(*send_count, PMPI_Type_f2c(*send_type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_sendrecv_replace,
                       (COPPICE_REPLACING(COPPICE_FORTRAN_PARAMETER), Fint* status, Fint* error),
                       (COPPICE_REPLACING(COPPICE_ARGUMENT), status, error),
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_start, (Fint * request, Fint* error), (request, error),
                       Started(1, request))
COPPICE_FORTRAN_TRACED(mpi_startall, (Fint * count, Fint* requests, Fint* error),
                       (count, requests, error), Started(*count, requests))
// Whose handle is gone afterwards.
__attribute__((weak)) void pmpi_request_free_(Fint* request, Fint* error);
__attribute__((weak)) void pmpi_request_free_f08_(Fint* request, Fint* error);
void mpi_request_free_(Fint* request, Fint* error) {
  TraceRequestFreed(PMPI_Request_f2c(*request));
  pmpi_request_free_(request, error);
}
void mpi_request_free_f08_(Fint* request, Fint* error) {
  TraceRequestFreed(PMPI_Request_f2c(*request));
  pmpi_request_free_f08_(request, error);
}

#else

COPPICE_FORTRAN_CALLED(mpi_start, (Fint * request, Fint* error), MPI_Start(request))
COPPICE_FORTRAN_CALLED(mpi_startall, (Fint * count, Fint* requests, Fint* error),
                       MPI_Startall(*count, requests))
COPPICE_FORTRAN_CALLED(mpi_request_free, (Fint * request, Fint* error), MPI_Request_free(request))

#endif  // OPEN_MPI

}  // extern "C"
