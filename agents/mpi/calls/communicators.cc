// Communicators: whoever is made is shown to the trees. Topologies with reorder = true are offered
// to rank reordering first.
#include <mpi.h>

#include "agents/mpi/calls/fortran.h"
#include "agents/mpi/reorder/reorder.h"
#include "agents/mpi/tree/communicator_trees.h"
#include "agents/mpi/tree/tree_collectives.h"

namespace {

int Made(int error, MPI_Comm* made) {
  if (error == MPI_SUCCESS) coppice::mpi::CommunicatorMade(*made);
  return error;
}

}  // namespace

extern "C" {

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) { return Made(PMPI_Comm_dup(comm, made), made); }

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  return Made(PMPI_Comm_dup_with_info(comm, info, made), made);
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  return Made(PMPI_Comm_create(comm, group, made), made);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  return Made(PMPI_Comm_create_group(comm, group, tag, made), made);
}

int MPI_Comm_split(MPI_Comm comm, int color, int place, MPI_Comm* made) {
  return Made(PMPI_Comm_split(comm, color, place, made), made);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int place, MPI_Info info, MPI_Comm* made) {
  return Made(PMPI_Comm_split_type(comm, type, place, info, made), made);
}

int MPI_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm* made) {
  return Made(PMPI_Cart_sub(comm, remain, made), made);
}

int MPI_Graph_create(MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder,
                     MPI_Comm* made) {
  return Made(PMPI_Graph_create(comm, nodes, index, edges, reorder, made), made);
}

int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm* made) {
  return Made(PMPI_Intercomm_merge(comm, high, made), made);
}

int MPI_Intercomm_create(MPI_Comm local, int local_leader, MPI_Comm peers, int remote_leader,
                         int tag, MPI_Comm* made) {
  return Made(PMPI_Intercomm_create(local, local_leader, peers, remote_leader, tag, made), made);
}

int MPI_Dist_graph_create(MPI_Comm comm, int count, const int sources[], const int degrees[],
                          const int destinations[], const int weights[], MPI_Info info, int reorder,
                          MPI_Comm* made) {
  const coppice::mpi::DistGraph graph = {count, sources, degrees, destinations, weights};
  int error = MPI_SUCCESS;
  if (reorder && coppice::mpi::ReorderDistGraph(comm, graph, info, made, &error)) {
    return Made(error, made);
  }
  return Made(PMPI_Dist_graph_create(comm, count, sources, degrees, destinations, weights, info,
                                     reorder, made),
              made);
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in_degree, const int sources[],
                                   const int in_weights[], int out_degree, const int destinations[],
                                   const int out_weights[], MPI_Info info, int reorder,
                                   MPI_Comm* made) {
  const coppice::mpi::AdjacentGraph graph = {in_degree,  sources,      in_weights,
                                             out_degree, destinations, out_weights};
  int error = MPI_SUCCESS;
  if (reorder && coppice::mpi::ReorderAdjacentGraph(comm, graph, info, made, &error)) {
    return Made(error, made);
  }
  return Made(PMPI_Dist_graph_create_adjacent(comm, in_degree, sources, in_weights, out_degree,
                                              destinations, out_weights, info, reorder, made),
              made);
}

int MPI_Cart_create(MPI_Comm comm, int dimensions, const int sizes[], const int periods[],
                    int reorder, MPI_Comm* made) {
  const coppice::mpi::Grid grid = {dimensions, sizes, periods};
  int error = MPI_SUCCESS;
  if (reorder && coppice::mpi::ReorderGrid(comm, grid, made, &error)) return Made(error, made);
  return Made(PMPI_Cart_create(comm, dimensions, sizes, periods, reorder, made), made);
}

}  // extern "C"

namespace {

int End(MPI_Comm* comm, int (*end)(MPI_Comm*)) {
  int error = MPI_SUCCESS;
  {
    const coppice::mpi::EndingCommunicator ending(comm);
    error = end(comm);
  }
  coppice::mpi::SettleFreedTrees();
  return error;
}

// Of C, with the handle of Fortran's.
template <typename Call>
int EndedInFortran(coppice::mpi::Fint* comm, Call end) {
  MPI_Comm of_c = PMPI_Comm_f2c(*comm);
  const int error = end(&of_c);
  *comm = PMPI_Comm_c2f(of_c);
  return error;
}

}  // namespace

extern "C" {

int MPI_Comm_free(MPI_Comm* comm) { return End(comm, PMPI_Comm_free); }
int MPI_Comm_disconnect(MPI_Comm* comm) { return End(comm, PMPI_Comm_disconnect); }

using namespace coppice::mpi;  // NOLINT: the parts of this very library

COPPICE_FORTRAN_CALLED(mpi_comm_free, (Fint * comm, Fint* error),
                       EndedInFortran(comm, MPI_Comm_free))
COPPICE_FORTRAN_CALLED(mpi_comm_disconnect, (Fint * comm, Fint* error),
                       EndedInFortran(comm, MPI_Comm_disconnect))

}  // extern "C"
