// Fortran on Open MPI: point-to-point and requests.
#include "agents/mpi/calls/fortran.h"
#include "agents/mpi/trace/trace.h"

#ifdef OPEN_MPI

using namespace coppice::mpi;  // NOLINT: the parts of this very library

namespace {

// What `init` makes of the request sends such a message whenever it is started.
template <typename Init>
void Persistent(const Fint* count, const Fint* type, const Fint* to, const Fint* comm,
                const Fint* request, Fint** error, const Init& init) {
  TracedInFortran(error, init, [&] {
    PersistentRecording recording;
    TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm));
    recording.Attach(PMPI_Request_f2c(*request));
  });
}

void Started(Fint count, const Fint* requests) {
  for (Fint i = 0; i < count; ++i) TraceStart(PMPI_Request_f2c(requests[i]));
}

}  // namespace

#define COPPICE_FORTRAN_PERSISTENT(NAME)                                                         \
  __attribute__((weak)) void pmpi_##NAME##_(void*, Fint*, Fint*, Fint*, Fint*, Fint*, Fint*,     \
                                            Fint*);                                              \
  __attribute__((weak)) void pmpi_##NAME##_f08_(void*, Fint*, Fint*, Fint*, Fint*, Fint*, Fint*, \
                                                Fint*);                                          \
  void mpi_##NAME##_(void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm,     \
                     Fint* request, Fint* error) {                                               \
    Persistent(count, type, to, comm, request, &error,                                           \
               [&] { pmpi_##NAME##_(buffer, count, type, to, tag, comm, request, error); });     \
  }                                                                                              \
  void mpi_##NAME##_f08_(void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm, \
                         Fint* request, Fint* error) {                                           \
    Persistent(count, type, to, comm, request, &error,                                           \
               [&] { pmpi_##NAME##_f08_(buffer, count, type, to, tag, comm, request, error); }); \
  }

extern "C" {

COPPICE_FORTRAN_TRACED(mpi_send,
                       (void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm,
                        Fint* error),
                       (buffer, count, type, to, tag, comm, error),
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_bsend,
                       (void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm,
                        Fint* error),
                       (buffer, count, type, to, tag, comm, error),
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_ssend,
                       (void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm,
                        Fint* error),
                       (buffer, count, type, to, tag, comm, error),
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_rsend,
                       (void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm,
                        Fint* error),
                       (buffer, count, type, to, tag, comm, error),
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_isend,
                       (void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm,
                        Fint* request, Fint* error),
                       (buffer, count, type, to, tag, comm, request, error),
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_ibsend,
                       (void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm,
                        Fint* request, Fint* error),
                       (buffer, count, type, to, tag, comm, request, error),
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_issend,
                       (void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm,
                        Fint* request, Fint* error),
                       (buffer, count, type, to, tag, comm, request, error),
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_irsend,
                       (void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm,
                        Fint* request, Fint* error),
                       (buffer, count, type, to, tag, comm, request, error),
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_sendrecv,
                       (void* send, Fint* send_count, Fint* send_type, Fint* to, Fint* send_tag,
                        void* receive, Fint* receive_count, Fint* receive_type, Fint* from,
                        Fint* receive_tag, Fint* comm, Fint* status, Fint* error),
                       (send, send_count, send_type, to, send_tag, receive, receive_count,
                        receive_type, from, receive_tag, comm, status, error),
                       TraceSend(*send_count, PMPI_Type_f2c(*send_type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_sendrecv_replace,
                       (void* buffer, Fint* count, Fint* type, Fint* to, Fint* send_tag, Fint* from,
                        Fint* receive_tag, Fint* comm, Fint* status, Fint* error),
                       (buffer, count, type, to, send_tag, from, receive_tag, comm, status, error),
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_PERSISTENT(send_init)
COPPICE_FORTRAN_PERSISTENT(bsend_init)
COPPICE_FORTRAN_PERSISTENT(ssend_init)
COPPICE_FORTRAN_PERSISTENT(rsend_init)
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

}  // extern "C"

#endif  // OPEN_MPI
