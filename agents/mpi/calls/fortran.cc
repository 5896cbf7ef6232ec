// Fortran: the beginning and the end, and what goes to the functions of C: communicators and
// topologies. A logical is 0 or not.
#include "agents/mpi/calls/fortran.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

namespace {

// Calls make(comm, &made) and hands the new communicator over.
template <typename Make>
int Made(const Fint* comm, Fint* made, Make make) {
  MPI_Comm of_c = MPI_COMM_NULL;
  const int error = make(PMPI_Comm_f2c(*comm), &of_c);
  if (error == MPI_SUCCESS) *made = PMPI_Comm_c2f(of_c);
  return error;
}

int CartCreate(const Fint* comm, const Fint* dimensions, const Fint* sizes, const Fint* periods,
               const Fint* reorder, Fint* made) {
  return Made(comm, made, [&](MPI_Comm old, MPI_Comm* grid) {
    return MPI_Cart_create(old, *dimensions, sizes, periods, *reorder, grid);
  });
}

}  // namespace

extern "C" {

COPPICE_FORTRAN_CALLED(mpi_init, (Fint * error), MPI_Init(nullptr, nullptr))
COPPICE_FORTRAN_CALLED(mpi_init_thread, (Fint * required, Fint* provided, Fint* error),
                       MPI_Init_thread(nullptr, nullptr, *required, provided))
COPPICE_FORTRAN_CALLED(mpi_finalize, (Fint * error), MPI_Finalize())

COPPICE_FORTRAN_CALLED(mpi_comm_dup, (Fint * comm, Fint* made, Fint* error),
                       Made(comm, made, MPI_Comm_dup))
COPPICE_FORTRAN_CALLED(mpi_comm_split,
                       (Fint * comm, Fint* color, Fint* place, Fint* made, Fint* error),
                       Made(comm, made, [&](MPI_Comm old, MPI_Comm* part) {
                         return MPI_Comm_split(old, *color, *place, part);
                       }))
COPPICE_FORTRAN_CALLED(mpi_comm_create, (Fint * comm, Fint* group, Fint* made, Fint* error),
                       Made(comm, made, [&](MPI_Comm old, MPI_Comm* part) {
                         return MPI_Comm_create(old, PMPI_Group_f2c(*group), part);
                       }))
COPPICE_FORTRAN_CALLED(mpi_comm_split_type,
                       (Fint * comm, Fint* type, Fint* place, Fint* info, Fint* made, Fint* error),
                       Made(comm, made, [&](MPI_Comm old, MPI_Comm* part) {
                         return MPI_Comm_split_type(old, *type, *place, PMPI_Info_f2c(*info), part);
                       }))
COPPICE_FORTRAN_CALLED(mpi_comm_dup_with_info, (Fint * comm, Fint* info, Fint* made, Fint* error),
                       Made(comm, made, [&](MPI_Comm old, MPI_Comm* copy) {
                         return MPI_Comm_dup_with_info(old, PMPI_Info_f2c(*info), copy);
                       }))
COPPICE_FORTRAN_CALLED(mpi_comm_create_group,
                       (Fint * comm, Fint* group, Fint* tag, Fint* made, Fint* error),
                       Made(comm, made, [&](MPI_Comm old, MPI_Comm* part) {
                         return MPI_Comm_create_group(old, PMPI_Group_f2c(*group), *tag, part);
                       }))
COPPICE_FORTRAN_CALLED(mpi_intercomm_create,
                       (Fint * local, Fint* local_leader, Fint* peers, Fint* remote_leader,
                        Fint* tag, Fint* made, Fint* error),
                       Made(local, made, [&](MPI_Comm own, MPI_Comm* both) {
                         return MPI_Intercomm_create(own, *local_leader, PMPI_Comm_f2c(*peers),
                                                     *remote_leader, *tag, both);
                       }))
COPPICE_FORTRAN_CALLED(mpi_intercomm_merge, (Fint * comm, Fint* high, Fint* made, Fint* error),
                       Made(comm, made, [&](MPI_Comm old, MPI_Comm* both) {
                         return MPI_Intercomm_merge(old, *high, both);
                       }))
COPPICE_FORTRAN_CALLED(mpi_graph_create,
                       (Fint * comm, Fint* nodes, Fint* index, Fint* edges, Fint* reorder,
                        Fint* made, Fint* error),
                       Made(comm, made, [&](MPI_Comm old, MPI_Comm* graph) {
                         return MPI_Graph_create(old, *nodes, index, edges, *reorder, graph);
                       }))
COPPICE_FORTRAN_CALLED(mpi_cart_sub, (Fint * comm, Fint* remain, Fint* made, Fint* error),
                       Made(comm, made, [&](MPI_Comm old, MPI_Comm* part) {
                         return MPI_Cart_sub(old, remain, part);
                       }))
COPPICE_FORTRAN_CALLED(mpi_cart_create,
                       (Fint * comm, Fint* dimensions, Fint* sizes, Fint* periods, Fint* reorder,
                        Fint* made, Fint* error),
                       CartCreate(comm, dimensions, sizes, periods, reorder, made))

}  // extern "C"

#ifdef OPEN_MPI

extern "C" {
extern __attribute__((weak)) int mpi_fortran_unweighted_;
extern __attribute__((weak)) int mpi_fortran_weights_empty_;
}

namespace {

const int* Weights(const int* address) {
  if (address == &mpi_fortran_unweighted_) return MPI_UNWEIGHTED;
  if (address == &mpi_fortran_weights_empty_) return MPI_WEIGHTS_EMPTY;
  return address;
}

}  // namespace

#else

extern "C" {

COPPICE_FORTRAN_CALLED(mpi_start, (Fint * request, Fint* error), MPI_Start(request))
COPPICE_FORTRAN_CALLED(mpi_startall, (Fint * count, Fint* requests, Fint* error),
                       MPI_Startall(*count, requests))
COPPICE_FORTRAN_CALLED(mpi_request_free, (Fint * request, Fint* error), MPI_Request_free(request))
COPPICE_FORTRAN_CALLED(mpi_ibarrier, (Fint * comm, Fint* request, Fint* error),
                       MPI_Ibarrier(*comm, request))
COPPICE_FORTRAN_CALLED(mpi_barrier_init, (Fint * comm, Fint* info, Fint* request, Fint* error),
                       MPI_Barrier_init(*comm, *info, request))

extern __attribute__((weak)) int __mpi_f08_link_constants_MOD_mpi_unweighted;
extern __attribute__((weak)) int __mpi_f08_link_constants_MOD_mpi_weights_empty;
}

namespace {

const int* Weights(const int* address) {
  if (address == &__mpi_f08_link_constants_MOD_mpi_unweighted) return MPI_UNWEIGHTED;
  if (address == &__mpi_f08_link_constants_MOD_mpi_weights_empty) return MPI_WEIGHTS_EMPTY;
  return address;
}

}  // namespace

#endif  // OPEN_MPI

extern "C" {

COPPICE_FORTRAN_CALLED(mpi_dist_graph_create,
                       (Fint * comm, Fint* count, Fint* sources, Fint* degrees, Fint* destinations,
                        Fint* weights, Fint* info, Fint* reorder, Fint* made, Fint* error),
                       Made(comm, made, [&](MPI_Comm old, MPI_Comm* graph) {
                         return MPI_Dist_graph_create(old, *count, sources, degrees, destinations,
                                                      Weights(weights), PMPI_Info_f2c(*info),
                                                      *reorder, graph);
                       }))
COPPICE_FORTRAN_CALLED(mpi_dist_graph_create_adjacent,
                       (Fint * comm, Fint* in, Fint* sources, Fint* in_weights, Fint* out,
                        Fint* destinations, Fint* out_weights, Fint* info, Fint* reorder,
                        Fint* made, Fint* error),
                       Made(comm, made, [&](MPI_Comm old, MPI_Comm* graph) {
                         return MPI_Dist_graph_create_adjacent(
                             old, *in, sources, Weights(in_weights), *out, destinations,
                             Weights(out_weights), PMPI_Info_f2c(*info), *reorder, graph);
                       }))

}  // extern "C"
