// Communicators: whoever is made is shown to the trees; Fortran's topologies, too, whose functions
// of C are in topologies.cc. A logical of Fortran is 0 or not.
#include <mpi.h>

#include "agents/mpi/calls/fortran.h"
#include "agents/mpi/tree/collective_table.h"
#include "agents/mpi/tree/communicator_trees.h"
#include "agents/mpi/tree/tree_collectives.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

// Where Fortran has the special addresses of weights.
#ifdef OPEN_MPI
#define COPPICE_UNWEIGHTED mpi_fortran_unweighted_
#define COPPICE_WEIGHTS_EMPTY mpi_fortran_weights_empty_
#else
#define COPPICE_UNWEIGHTED __mpi_f08_link_constants_MOD_mpi_unweighted
#define COPPICE_WEIGHTS_EMPTY __mpi_f08_link_constants_MOD_mpi_weights_empty
#endif

extern "C" {
extern __attribute__((weak)) int COPPICE_UNWEIGHTED;
extern __attribute__((weak)) int COPPICE_WEIGHTS_EMPTY;
}

namespace {

// Calls make(&made) and hands the new communicator over.
template <typename Make>
int MadeInFortran(Fint* made, Make make) {
  MPI_Comm of_c = MPI_COMM_NULL;
  const int error = make(&of_c);
  if (error == MPI_SUCCESS) *made = PMPI_Comm_c2f(of_c);
  return error;
}

int End(MPI_Comm* comm, int (*end)(MPI_Comm*)) {
  int error = MPI_SUCCESS;
  {
    const EndingCommunicator ending(comm);
    error = end(comm);
  }
  SettleFreedTrees();
  return error;
}

// Of C, with the handle of Fortran's.
template <typename Call>
int EndedInFortran(Fint* comm, Call end) {
  MPI_Comm of_c = PMPI_Comm_f2c(*comm);
  const int error = end(&of_c);
  *comm = PMPI_Comm_c2f(of_c);
  return error;
}

const int* Weights(const int* address) {
  if (address == &COPPICE_UNWEIGHTED) return MPI_UNWEIGHTED;
  if (address == &COPPICE_WEIGHTS_EMPTY) return MPI_WEIGHTS_EMPTY;
  return address;
}

}  // namespace

// As in collective_table.h; the last argument of each, what is made, is left out.
#define COPPICE_DUP_ARGUMENTS(A) A(MPI_Comm, comm)
#define COPPICE_DUP_WITH_INFO_ARGUMENTS(A) A(MPI_Comm, comm), A(MPI_Info, info)
#define COPPICE_CREATE_ARGUMENTS(A) A(MPI_Comm, comm), A(MPI_Group, group)
#define COPPICE_CREATE_GROUP_ARGUMENTS(A) A(MPI_Comm, comm), A(MPI_Group, group), A(int, tag)
#define COPPICE_SPLIT_ARGUMENTS(A) A(MPI_Comm, comm), A(int, color), A(int, place)
#define COPPICE_SPLIT_TYPE_ARGUMENTS(A) \
  A(MPI_Comm, comm), A(int, type), A(int, place), A(MPI_Info, info)
#define COPPICE_SUB_ARGUMENTS(A) A(MPI_Comm, comm), A(const int*, remain)
#define COPPICE_GRAPH_ARGUMENTS(A) \
  A(MPI_Comm, comm), A(int, nodes), A(const int*, index), A(const int*, edges), A(int, reorder)
#define COPPICE_MERGE_ARGUMENTS(A) A(MPI_Comm, comm), A(int, high)
#define COPPICE_INTERCOMM_ARGUMENTS(A) \
  A(MPI_Comm, local), A(int, local_leader), A(MPI_Comm, peers), A(int, remote_leader), A(int, tag)
#define COPPICE_CART_ARGUMENTS(A)                                                      \
  A(MPI_Comm, comm), A(int, dimensions), A(const int*, sizes), A(const int*, periods), \
      A(int, reorder)

// X(name in C, in Fortran, arguments).
#define COPPICE_COMMUNICATORS(X)                                             \
  X(Comm_dup, comm_dup, COPPICE_DUP_ARGUMENTS)                               \
  X(Comm_dup_with_info, comm_dup_with_info, COPPICE_DUP_WITH_INFO_ARGUMENTS) \
  X(Comm_create, comm_create, COPPICE_CREATE_ARGUMENTS)                      \
  X(Comm_create_group, comm_create_group, COPPICE_CREATE_GROUP_ARGUMENTS)    \
  X(Comm_split, comm_split, COPPICE_SPLIT_ARGUMENTS)                         \
  X(Comm_split_type, comm_split_type, COPPICE_SPLIT_TYPE_ARGUMENTS)          \
  X(Cart_sub, cart_sub, COPPICE_SUB_ARGUMENTS)                               \
  X(Graph_create, graph_create, COPPICE_GRAPH_ARGUMENTS)                     \
  X(Intercomm_merge, intercomm_merge, COPPICE_MERGE_ARGUMENTS)               \
  X(Intercomm_create, intercomm_create, COPPICE_INTERCOMM_ARGUMENTS)

#define COPPICE_MAKE(NAME, FORTRAN, ARGUMENTS)                         \
  int MPI_##NAME(ARGUMENTS(COPPICE_PARAMETER), MPI_Comm* made) {       \
    return Made(PMPI_##NAME(ARGUMENTS(COPPICE_ARGUMENT), made), made); \
  }
#define COPPICE_MAKE_IN_FORTRAN(NAME, FORTRAN, ARGUMENTS)                                   \
  COPPICE_FORTRAN_CALLED(mpi_##FORTRAN,                                                     \
                         (ARGUMENTS(COPPICE_FORTRAN_PARAMETER), Fint * made, Fint * error), \
                         MadeInFortran(made, [&](MPI_Comm* of_c) {                          \
                           return MPI_##NAME(ARGUMENTS(COPPICE_FROM_FORTRAN), of_c);        \
                         }))

extern "C" {

COPPICE_COMMUNICATORS(COPPICE_MAKE)

COPPICE_COMMUNICATORS(COPPICE_MAKE_IN_FORTRAN)
COPPICE_MAKE_IN_FORTRAN(Cart_create, cart_create, COPPICE_CART_ARGUMENTS)

COPPICE_FORTRAN_CALLED(mpi_dist_graph_create,
                       (Fint * comm, Fint* count, Fint* sources, Fint* degrees, Fint* destinations,
                        Fint* weights, Fint* info, Fint* reorder, Fint* made, Fint* error),
                       MadeInFortran(made, [&](MPI_Comm* graph) {
                         return MPI_Dist_graph_create(PMPI_Comm_f2c(*comm), *count, sources,
                                                      degrees, destinations, Weights(weights),
                                                      PMPI_Info_f2c(*info), *reorder, graph);
                       }))
COPPICE_FORTRAN_CALLED(mpi_dist_graph_create_adjacent,
                       (Fint * comm, Fint* in, Fint* sources, Fint* in_weights, Fint* out,
                        Fint* destinations, Fint* out_weights, Fint* info, Fint* reorder,
                        Fint* made, Fint* error),
                       MadeInFortran(made, [&](MPI_Comm* graph) {
                         return MPI_Dist_graph_create_adjacent(
                             PMPI_Comm_f2c(*comm), *in, sources, Weights(in_weights), *out,
                             destinations, Weights(out_weights), PMPI_Info_f2c(*info), *reorder,
                             graph);
                       }))

int MPI_Comm_free(MPI_Comm* comm) { return End(comm, PMPI_Comm_free); }
int MPI_Comm_disconnect(MPI_Comm* comm) { return End(comm, PMPI_Comm_disconnect); }

COPPICE_FORTRAN_CALLED(mpi_comm_free, (Fint * comm, Fint* error),
                       EndedInFortran(comm, MPI_Comm_free))
COPPICE_FORTRAN_CALLED(mpi_comm_disconnect, (Fint * comm, Fint* error),
                       EndedInFortran(comm, MPI_Comm_disconnect))

}  // extern "C"
