// Fortran on Open MPI: calls that are traced only, collectives and sends, blocking and not. On an
// intercommunicator the roots of Fortran are those of C.
#include <vector>

#include "agents/mpi/calls/fortran.h"
#include "agents/mpi/trace/trace.h"
#include "agents/mpi/trace/trace_collectives.h"

#ifdef OPEN_MPI

using namespace coppice::mpi;  // NOLINT: the parts of this very library

extern "C" {
extern __attribute__((weak)) int mpi_fortran_in_place_;
}

namespace {

const void* Sent(const void* address) {
  return address == &mpi_fortran_in_place_ ? MPI_IN_PLACE : address;
}

// The types of an alltoallw among as many as `comm` reaches.
void TraceTypes(const void* send, const Fint* send_counts, const Fint* send_types,
                const Fint* receive_counts, const Fint* receive_types, MPI_Comm comm) {
  int peers = 0, is_inter = 0;
  if (!IsTracing() || PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return;
  if (is_inter) {
    PMPI_Comm_remote_size(comm, &peers);
  } else {
    PMPI_Comm_size(comm, &peers);
  }
  const bool in_place = Sent(send) == MPI_IN_PLACE;
  std::vector<MPI_Datatype> types(peers);
  for (int i = 0; i < peers; ++i) {
    types[i] = PMPI_Type_f2c(in_place ? receive_types[i] : send_types[i]);
  }
  TraceAlltoallw(nullptr, in_place ? receive_counts : send_counts, types.data(), nullptr, nullptr,
                 comm);
}

}  // namespace

// Blocking and nonblocking: UNPACK takes the parentheses off.
#define COPPICE_UNPACK(...) __VA_ARGS__
#define COPPICE_FORTRAN_BOTH(NAME, PARAMETERS, ARGUMENTS, TRACE)                                 \
  COPPICE_FORTRAN_TRACED(mpi_##NAME, (COPPICE_UNPACK PARAMETERS, Fint * error),                  \
                         (COPPICE_UNPACK ARGUMENTS, error), TRACE)                               \
  COPPICE_FORTRAN_TRACED(mpi_i##NAME, (COPPICE_UNPACK PARAMETERS, Fint * request, Fint * error), \
                         (COPPICE_UNPACK ARGUMENTS, request, error), TRACE)

extern "C" {

COPPICE_FORTRAN_TRACED(mpi_ibarrier, (Fint * comm, Fint* request, Fint* error),
                       (comm, request, error), TraceBarrier(PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_ibcast,
                       (void* buffer, Fint* count, Fint* type, Fint* root, Fint* comm,
                        Fint* request, Fint* error),
                       (buffer, count, type, root, comm, request, error),
                       TraceBcast(*count, PMPI_Type_f2c(*type), *root, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_ireduce,
                       (void* send, void* receive, Fint* count, Fint* type, Fint* op, Fint* root,
                        Fint* comm, Fint* request, Fint* error),
                       (send, receive, count, type, op, root, comm, request, error),
                       TraceReduce(*count, PMPI_Type_f2c(*type), *root, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_iallreduce,
                       (void* send, void* receive, Fint* count, Fint* type, Fint* op, Fint* comm,
                        Fint* request, Fint* error),
                       (send, receive, count, type, op, comm, request, error),
                       TraceAllreduce(*count, PMPI_Type_f2c(*type), PMPI_Op_f2c(*op),
                                      PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(scan,
                     (void* send, void* receive, Fint* count, Fint* type, Fint* op, Fint* comm),
                     (send, receive, count, type, op, comm),
                     TraceScan(*count, PMPI_Type_f2c(*type), PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(exscan,
                     (void* send, void* receive, Fint* count, Fint* type, Fint* op, Fint* comm),
                     (send, receive, count, type, op, comm),
                     TraceScan(*count, PMPI_Type_f2c(*type), PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(reduce_scatter,
                     (void* send, void* receive, Fint* counts, Fint* type, Fint* op, Fint* comm),
                     (send, receive, counts, type, op, comm),
                     TraceReduceScatter(counts, PMPI_Type_f2c(*type), PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(reduce_scatter_block,
                     (void* send, void* receive, Fint* count, Fint* type, Fint* op, Fint* comm),
                     (send, receive, count, type, op, comm),
                     TraceReduceScatterBlock(*count, PMPI_Type_f2c(*type), PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(gather,
                     (void* send, Fint* send_count, Fint* send_type, void* receive,
                      Fint* receive_count, Fint* receive_type, Fint* root, Fint* comm),
                     (send, send_count, send_type, receive, receive_count, receive_type, root,
                      comm),
                     TraceGather(*send_count, PMPI_Type_f2c(*send_type), *root,
                                 PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(gatherv,
                     (void* send, Fint* send_count, Fint* send_type, void* receive,
                      Fint* receive_counts, Fint* receive_offsets, Fint* receive_type, Fint* root,
                      Fint* comm),
                     (send, send_count, send_type, receive, receive_counts, receive_offsets,
                      receive_type, root, comm),
                     TraceGatherv(*send_count, PMPI_Type_f2c(*send_type), *root,
                                  PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(scatter,
                     (void* send, Fint* send_count, Fint* send_type, void* receive,
                      Fint* receive_count, Fint* receive_type, Fint* root, Fint* comm),
                     (send, send_count, send_type, receive, receive_count, receive_type, root,
                      comm),
                     TraceScatter(*send_count, PMPI_Type_f2c(*send_type), *receive_count,
                                  PMPI_Type_f2c(*receive_type), *root, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(
    scatterv,
    (void* send, Fint* send_counts, Fint* send_offsets, Fint* send_type, void* receive,
     Fint* receive_count, Fint* receive_type, Fint* root, Fint* comm),
    (send, send_counts, send_offsets, send_type, receive, receive_count, receive_type, root, comm),
    TraceScatterv(send_counts, PMPI_Type_f2c(*send_type), *root, PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(allgather,
                     (void* send, Fint* send_count, Fint* send_type, void* receive,
                      Fint* receive_count, Fint* receive_type, Fint* comm),
                     (send, send_count, send_type, receive, receive_count, receive_type, comm),
                     TraceAllgather(*send_count, PMPI_Type_f2c(*send_type), *receive_count,
                                    PMPI_Type_f2c(*receive_type), PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(allgatherv,
                     (void* send, Fint* send_count, Fint* send_type, void* receive,
                      Fint* receive_counts, Fint* receive_offsets, Fint* receive_type, Fint* comm),
                     (send, send_count, send_type, receive, receive_counts, receive_offsets,
                      receive_type, comm),
                     TraceAllgatherv(*send_count, PMPI_Type_f2c(*send_type), receive_counts,
                                     PMPI_Type_f2c(*receive_type), PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(alltoall,
                     (void* send, Fint* send_count, Fint* send_type, void* receive,
                      Fint* receive_count, Fint* receive_type, Fint* comm),
                     (send, send_count, send_type, receive, receive_count, receive_type, comm),
                     TraceAlltoall(Sent(send), *send_count, PMPI_Type_f2c(*send_type),
                                   *receive_count, PMPI_Type_f2c(*receive_type),
                                   PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(alltoallv,
                     (void* send, Fint* send_counts, Fint* send_offsets, Fint* send_type,
                      void* receive, Fint* receive_counts, Fint* receive_offsets,
                      Fint* receive_type, Fint* comm),
                     (send, send_counts, send_offsets, send_type, receive, receive_counts,
                      receive_offsets, receive_type, comm),
                     TraceAlltoallv(Sent(send), send_counts, PMPI_Type_f2c(*send_type),
                                    receive_counts, PMPI_Type_f2c(*receive_type),
                                    PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(alltoallw,
                     (void* send, Fint* send_counts, Fint* send_offsets, Fint* send_types,
                      void* receive, Fint* receive_counts, Fint* receive_offsets,
                      Fint* receive_types, Fint* comm),
                     (send, send_counts, send_offsets, send_types, receive, receive_counts,
                      receive_offsets, receive_types, comm),
                     TraceTypes(send, send_counts, send_types, receive_counts, receive_types,
                                PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(neighbor_allgather,
                     (void* send, Fint* send_count, Fint* send_type, void* receive,
                      Fint* receive_count, Fint* receive_type, Fint* comm),
                     (send, send_count, send_type, receive, receive_count, receive_type, comm),
                     TraceNeighborAllgather(*send_count, PMPI_Type_f2c(*send_type),
                                            PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(neighbor_allgatherv,
                     (void* send, Fint* send_count, Fint* send_type, void* receive,
                      Fint* receive_counts, Fint* receive_offsets, Fint* receive_type, Fint* comm),
                     (send, send_count, send_type, receive, receive_counts, receive_offsets,
                      receive_type, comm),
                     TraceNeighborAllgather(*send_count, PMPI_Type_f2c(*send_type),
                                            PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(neighbor_alltoall,
                     (void* send, Fint* send_count, Fint* send_type, void* receive,
                      Fint* receive_count, Fint* receive_type, Fint* comm),
                     (send, send_count, send_type, receive, receive_count, receive_type, comm),
                     TraceNeighborAllgather(*send_count, PMPI_Type_f2c(*send_type),
                                            PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_BOTH(neighbor_alltoallv,
                     (void* send, Fint* send_counts, Fint* send_offsets, Fint* send_type,
                      void* receive, Fint* receive_counts, Fint* receive_offsets,
                      Fint* receive_type, Fint* comm),
                     (send, send_counts, send_offsets, send_type, receive, receive_counts,
                      receive_offsets, receive_type, comm),
                     TraceNeighborAlltoallv(send_counts, PMPI_Type_f2c(*send_type),
                                            PMPI_Comm_f2c(*comm)))

}  // extern "C"

#endif  // OPEN_MPI

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

#define COPPICE_FORTRAN_SEND(NAME)                                                               \
  COPPICE_FORTRAN_BOTH(NAME,                                                                     \
                       (void* buffer, Fint* count, Fint* type, Fint* to, Fint* tag, Fint* comm), \
                       (buffer, count, type, to, tag, comm),                                     \
                       TraceSend(*count, PMPI_Type_f2c(*type), *to, PMPI_Comm_f2c(*comm)))

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

COPPICE_FORTRAN_SEND(send)
COPPICE_FORTRAN_SEND(bsend)
COPPICE_FORTRAN_SEND(ssend)
COPPICE_FORTRAN_SEND(rsend)
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
