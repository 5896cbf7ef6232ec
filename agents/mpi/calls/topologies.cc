// Topologies: with reorder = true Coppice is asked first (topology/reordering.h).
#include <mpi.h>

#include "agents/mpi/topology/reordering.h"
#include "agents/mpi/tree/tree_collectives.h"

using namespace coppice::mpi;  // NOLINT: the parts of this very library

extern "C" {

int MPI_Dist_graph_create(MPI_Comm comm, int count, const int sources[], const int degrees[],
                          const int destinations[], const int weights[], MPI_Info info, int reorder,
                          MPI_Comm* made) {
  const DistGraph graph = {count, sources, degrees, destinations, weights};
  int error = MPI_SUCCESS;
  if (reorder && ReorderDistGraph(comm, graph, info, made, &error)) {
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
  const AdjacentGraph graph = {in_degree,  sources,      in_weights,
                               out_degree, destinations, out_weights};
  int error = MPI_SUCCESS;
  if (reorder && ReorderAdjacentGraph(comm, graph, info, made, &error)) {
    return Made(error, made);
  }
  return Made(PMPI_Dist_graph_create_adjacent(comm, in_degree, sources, in_weights, out_degree,
                                              destinations, out_weights, info, reorder, made),
              made);
}

int MPI_Cart_create(MPI_Comm comm, int dimensions, const int sizes[], const int periods[],
                    int reorder, MPI_Comm* made) {
  const Grid grid = {dimensions, sizes, periods};
  int error = MPI_SUCCESS;
  if (reorder && ReorderGrid(comm, grid, made, &error)) return Made(error, made);
  return Made(PMPI_Cart_create(comm, dimensions, sizes, periods, reorder, made), made);
}

}  // extern "C"
