// Collectives: the blocking forms of those that trees carry (collective_table.h) are offered to the
// trees first. All others, and those that no tree takes, are the MPI library's own. All are traced.
#include <mpi.h>

#include <climits>
#include <vector>

#include "agents/mpi/calls/fortran.h"
#include "agents/mpi/trace/trace.h"
#include "agents/mpi/tree/collective_table.h"
#include "agents/mpi/tree/tree_collectives.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

// Of collectives that trees do not carry: as those of collective_table.h.
#define COPPICE_COUNTS_ARGUMENTS(A)                                                      \
  A(const void*, send), A(void*, receive), A(const int*, counts), A(MPI_Datatype, type), \
      A(MPI_Op, op), A(MPI_Comm, comm)
#define COPPICE_EACH_ARGUMENTS(A)                                                          \
  A(const void*, send), A(int, send_count), A(MPI_Datatype, send_type), A(void*, receive), \
      A(int, receive_count), A(MPI_Datatype, receive_type), A(MPI_Comm, comm)
#define COPPICE_ROOTED_ARGUMENTS(A)                                                        \
  A(const void*, send), A(int, send_count), A(MPI_Datatype, send_type), A(void*, receive), \
      A(int, receive_count), A(MPI_Datatype, receive_type), A(int, root), A(MPI_Comm, comm)
#define COPPICE_GATHERV_ARGUMENTS(A)                                                       \
  A(const void*, send), A(int, send_count), A(MPI_Datatype, send_type), A(void*, receive), \
      A(const int*, receive_counts), A(const int*, receive_offsets),                       \
      A(MPI_Datatype, receive_type), A(int, root), A(MPI_Comm, comm)
#define COPPICE_SCATTERV_ARGUMENTS(A)                                            \
  A(const void*, send), A(const int*, send_counts), A(const int*, send_offsets), \
      A(MPI_Datatype, send_type), A(void*, receive), A(int, receive_count),      \
      A(MPI_Datatype, receive_type), A(int, root), A(MPI_Comm, comm)
#define COPPICE_ALLGATHERV_ARGUMENTS(A)                                                    \
  A(const void*, send), A(int, send_count), A(MPI_Datatype, send_type), A(void*, receive), \
      A(const int*, receive_counts), A(const int*, receive_offsets),                       \
      A(MPI_Datatype, receive_type), A(MPI_Comm, comm)
#define COPPICE_ALLTOALLV_ARGUMENTS(A)                                              \
  A(const void*, send), A(const int*, send_counts), A(const int*, send_offsets),    \
      A(MPI_Datatype, send_type), A(void*, receive), A(const int*, receive_counts), \
      A(const int*, receive_offsets), A(MPI_Datatype, receive_type), A(MPI_Comm, comm)
// OFFSET: int, or MPI_Aint of neighbours.
#define COPPICE_TYPES_ARGUMENTS(A, OFFSET)                                                  \
  A(const void*, send), A(const int*, send_counts), A(const OFFSET*, send_offsets),         \
      A(const MPI_Datatype*, send_types), A(void*, receive), A(const int*, receive_counts), \
      A(const OFFSET*, receive_offsets), A(const MPI_Datatype*, receive_types), A(MPI_Comm, comm)
#define COPPICE_ALLTOALLW_ARGUMENTS(A) COPPICE_TYPES_ARGUMENTS(A, int)
#define COPPICE_NEIGHBOR_ALLTOALLW_ARGUMENTS(A) COPPICE_TYPES_ARGUMENTS(A, MPI_Aint)

// X(name in C, in Fortran, arguments, what is traced).
#define COPPICE_TRACED_COLLECTIVES(X)                                                             \
  X(Scan, scan, COPPICE_ALLREDUCE_ARGUMENTS, TraceScan(count, type, comm))                        \
  X(Exscan, exscan, COPPICE_ALLREDUCE_ARGUMENTS, TraceScan(count, type, comm))                    \
  X(Reduce_scatter, reduce_scatter, COPPICE_COUNTS_ARGUMENTS,                                     \
    TraceReduceScatter(counts, type, comm))                                                       \
  X(Reduce_scatter_block, reduce_scatter_block, COPPICE_ALLREDUCE_ARGUMENTS,                      \
    TraceReduceScatterBlock(count, type, comm))                                                   \
  X(Gather, gather, COPPICE_ROOTED_ARGUMENTS, TraceGather(send_count, send_type, root, comm))     \
  X(Gatherv, gatherv, COPPICE_GATHERV_ARGUMENTS, TraceGatherv(send_count, send_type, root, comm)) \
  X(Scatter, scatter, COPPICE_ROOTED_ARGUMENTS,                                                   \
    TraceScatter(send_count, send_type, receive_count, receive_type, root, comm))                 \
  X(Scatterv, scatterv, COPPICE_SCATTERV_ARGUMENTS,                                               \
    TraceScatterv(send_counts, send_type, root, comm))                                            \
  X(Allgather, allgather, COPPICE_EACH_ARGUMENTS,                                                 \
    TraceAllgather(send_count, send_type, receive_count, receive_type, comm))                     \
  X(Allgatherv, allgatherv, COPPICE_ALLGATHERV_ARGUMENTS,                                         \
    TraceAllgatherv(send_count, send_type, receive_counts, receive_type, comm))                   \
  X(Alltoall, alltoall, COPPICE_EACH_ARGUMENTS,                                                   \
    TraceAlltoall(send, send_count, send_type, receive_count, receive_type, comm))                \
  X(Alltoallv, alltoallv, COPPICE_ALLTOALLV_ARGUMENTS,                                            \
    TraceAlltoallv(send, send_counts, send_type, receive_counts, receive_type, comm))             \
  X(Neighbor_allgather, neighbor_allgather, COPPICE_EACH_ARGUMENTS,                               \
    TraceNeighborAllgather(send_count, send_type, comm))                                          \
  X(Neighbor_allgatherv, neighbor_allgatherv, COPPICE_ALLGATHERV_ARGUMENTS,                       \
    TraceNeighborAllgather(send_count, send_type, comm))                                          \
  X(Neighbor_alltoall, neighbor_alltoall, COPPICE_EACH_ARGUMENTS,                                 \
    TraceNeighborAllgather(send_count, send_type, comm))                                          \
  X(Neighbor_alltoallv, neighbor_alltoallv, COPPICE_ALLTOALLV_ARGUMENTS,                          \
    TraceNeighborAlltoallv(send_counts, send_type, comm))
// Those whose types are lists, which are others in Fortran.
#define COPPICE_TRACED_COLLECTIVES_OF_TYPES(X)                                          \
  X(Alltoallw, alltoallw, COPPICE_ALLTOALLW_ARGUMENTS,                                  \
    TraceAlltoallw(send, send_counts, send_types, receive_counts, receive_types, comm)) \
  X(Neighbor_alltoallw, neighbor_alltoallw, COPPICE_NEIGHBOR_ALLTOALLW_ARGUMENTS,       \
    TraceNeighborAlltoallw(send_counts, send_types, comm))

#define COPPICE_BLOCKING(NAME, FORTRAN, ARGUMENTS, TRACE)                    \
  int MPI_##NAME(ARGUMENTS(COPPICE_PARAMETER)) {                             \
    return Traced(PMPI_##NAME(ARGUMENTS(COPPICE_ARGUMENT)), [&] { TRACE; }); \
  }
#define COPPICE_NONBLOCKING(NAME, FORTRAN, ARGUMENTS, TRACE)                              \
  int MPI_I##FORTRAN(ARGUMENTS(COPPICE_PARAMETER), MPI_Request* request) {                \
    return Traced(PMPI_I##FORTRAN(ARGUMENTS(COPPICE_ARGUMENT), request), [&] { TRACE; }); \
  }
// What one sends is found when it is made, and traced whenever it is started.
#define COPPICE_PERSISTENT(NAME, FORTRAN, ARGUMENTS, TRACE)                                  \
  int MPI_##NAME##_init(ARGUMENTS(COPPICE_PARAMETER), MPI_Info info, MPI_Request* request) { \
    return Traced(PMPI_##NAME##_init(ARGUMENTS(COPPICE_ARGUMENT), info, request),            \
                  [&] { TracePersistent(*request, [&] { TRACE; }); });                       \
  }

#define COPPICE_C_CALL(NAME, FORTRAN, ARGUMENTS, TRACE)                                           \
  int MPI_##NAME(ARGUMENTS(COPPICE_PARAMETER)) {                                                  \
    int error = MPI_SUCCESS;                                                                      \
    MeasuredCall measured;                                                                        \
    const auto tree = [&] { return Tree##NAME(ARGUMENTS(COPPICE_ARGUMENT), &measured, &error); }; \
    if (!GoesAlongTree(comm, tree, &measured, &error)) {                                          \
      error = PMPI_##NAME(ARGUMENTS(COPPICE_ARGUMENT));                                           \
      if (error == MPI_SUCCESS) measured.End();                                                   \
    }                                                                                             \
    return Traced(error, [&] { TRACE; });                                                         \
  }

namespace {

#ifdef OPEN_MPI

// The types of an alltoallw among as many as `comm` reaches.
void TraceTypes(const void* send, const Fint* send_counts, const Fint* send_types,
                const Fint* receive_counts, const Fint* receive_types, MPI_Comm comm) {
  int is_inter = 0, peers = SizeOf(comm);
  PMPI_Comm_test_inter(comm, &is_inter);
  if (is_inter) PMPI_Comm_remote_size(comm, &peers);
  const bool in_place = send == &mpi_fortran_in_place_;
  std::vector<MPI_Datatype> types(peers);
  for (int i = 0; i < peers; ++i) {
    types[i] = PMPI_Type_f2c(in_place ? receive_types[i] : send_types[i]);
  }
  TraceAlltoallw(nullptr, in_place ? receive_counts : send_counts, types.data(), nullptr, nullptr,
                 comm);
}

COPPICE_TRACED_COLLECTIVES(COPPICE_TRACE_OF)
COPPICE_TREE_COLLECTIVES(COPPICE_TRACE_OF)

#endif  // OPEN_MPI

}  // namespace

extern "C" {

COPPICE_TREE_COLLECTIVES(COPPICE_C_CALL)
COPPICE_TRACED_COLLECTIVES(COPPICE_BLOCKING)
COPPICE_TRACED_COLLECTIVES_OF_TYPES(COPPICE_BLOCKING)

COPPICE_TREE_COLLECTIVES(COPPICE_NONBLOCKING)
COPPICE_TRACED_COLLECTIVES(COPPICE_NONBLOCKING)
COPPICE_TRACED_COLLECTIVES_OF_TYPES(COPPICE_NONBLOCKING)

#if MPI_VERSION >= 4
COPPICE_TREE_COLLECTIVES(COPPICE_PERSISTENT)
COPPICE_TRACED_COLLECTIVES(COPPICE_PERSISTENT)
COPPICE_TRACED_COLLECTIVES_OF_TYPES(COPPICE_PERSISTENT)
#endif

}  // extern "C"

// Some members may call the forms with large counts while others call those with ints: all have to
// go one way.
//
// A count beyond an int is left to the MPI library by all: that of a reduction is the same at all
// members, and the others of such a broadcast have as many bytes, which are more than go along a
// tree. Nothing of it is traced.
#if MPI_VERSION >= 4

namespace coppice::mpi::large_calls {
namespace {

using Count = MPI_Count;

bool FitsInt(Count count) { return count >= 0 && count <= INT_MAX; }
template <typename Other>
bool FitsInt(const Other& /*no count*/) {
  return true;
}
template <typename... Arguments>
bool AllFitInt(const Arguments&... arguments) {
  return (FitsInt(arguments) && ...);
}

}  // namespace

extern "C" {

#define COPPICE_LARGE_CALL(NAME, FORTRAN, ARGUMENTS, TRACE)                                     \
  int MPI_##NAME##_c(ARGUMENTS(COPPICE_PARAMETER)) {                                            \
    if (AllFitInt(ARGUMENTS(COPPICE_ARGUMENT))) return MPI_##NAME(ARGUMENTS(COPPICE_ARGUMENT)); \
    return PMPI_##NAME##_c(ARGUMENTS(COPPICE_ARGUMENT));                                        \
  }
COPPICE_TREE_COLLECTIVES_OF_DATA(COPPICE_LARGE_CALL)

}  // extern "C"
}  // namespace coppice::mpi::large_calls

#endif  // MPI_VERSION >= 4

#define COPPICE_FORTRAN_CALL(NAME, FORTRAN, ARGUMENTS, TRACE)                                 \
  COPPICE_FORTRAN_CALLED(mpi_##FORTRAN, (ARGUMENTS(COPPICE_FORTRAN_PARAMETER), Fint * error), \
                         MPI_##NAME(ARGUMENTS(COPPICE_FROM_FORTRAN)))

// On an intercommunicator the roots of Fortran are those of C.
extern "C" {

COPPICE_TREE_COLLECTIVES_WITHOUT_DATA(COPPICE_FORTRAN_CALL)
#ifdef OPEN_MPI

COPPICE_TREE_COLLECTIVES_OF_DATA(COPPICE_FORTRAN_CALL)
COPPICE_TRACED_COLLECTIVES(COPPICE_FORTRAN_BLOCKING)
COPPICE_TRACED_COLLECTIVES(COPPICE_FORTRAN_NONBLOCKING)
COPPICE_TREE_COLLECTIVES(COPPICE_FORTRAN_NONBLOCKING)

COPPICE_FORTRAN_TRACED(mpi_alltoallw,
                       (COPPICE_ALLTOALLW_ARGUMENTS(COPPICE_FORTRAN_PARAMETER), Fint* error),
                       (COPPICE_ALLTOALLW_ARGUMENTS(COPPICE_ARGUMENT), error),
                       TraceTypes(send, send_counts, send_types, receive_counts, receive_types,
                                  PMPI_Comm_f2c(*comm)))
COPPICE_FORTRAN_TRACED(mpi_ialltoallw,
                       (COPPICE_ALLTOALLW_ARGUMENTS(COPPICE_FORTRAN_PARAMETER), Fint* request,
                        Fint* error),
                       (COPPICE_ALLTOALLW_ARGUMENTS(COPPICE_ARGUMENT), request, error),
                       TraceTypes(send, send_counts, send_types, receive_counts, receive_types,
                                  PMPI_Comm_f2c(*comm)))

#else

COPPICE_FORTRAN_CALLED(mpi_ibarrier, (Fint * comm, Fint* request, Fint* error),
                       MPI_Ibarrier(*comm, request))
COPPICE_FORTRAN_CALLED(mpi_barrier_init, (Fint * comm, Fint* info, Fint* request, Fint* error),
                       MPI_Barrier_init(*comm, *info, request))

#endif  // OPEN_MPI

}  // extern "C"
