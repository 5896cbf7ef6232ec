// Topologies with reorder = true, answered by Coppice: node i of the topology goes to the process
// whose place suits it, which becomes rank i of the new communicator.
//
// All functions are collective over `comm`, and all members take the same way: true: *made was made
// and *error is what MPI returns; false: nothing was made, and the native call is to be made.
#ifndef COPPICE_AGENTS_MPI_REORDER_REORDER_H_
#define COPPICE_AGENTS_MPI_REORDER_REORDER_H_

#include <mpi.h>

namespace coppice::mpi {

// Arguments of MPI_Dist_graph_create, MPI_Dist_graph_create_adjacent and MPI_Cart_create.
struct DistGraph {
  int count;
  const int* sources;
  const int* degrees;
  const int* destinations;
  const int* weights;
};
struct AdjacentGraph {
  int in_degree;
  const int* sources;
  const int* in_weights;
  int out_degree;
  const int* destinations;
  const int* out_weights;
};
struct Grid {
  int dimensions;
  const int* sizes;
  const int* periods;
};

bool ReorderDistGraph(MPI_Comm comm, const DistGraph& graph, MPI_Info info, MPI_Comm* made,
                      int* error);
bool ReorderAdjacentGraph(MPI_Comm comm, const AdjacentGraph& graph, MPI_Info info, MPI_Comm* made,
                          int* error);
bool ReorderGrid(MPI_Comm comm, const Grid& grid, MPI_Comm* made, int* error);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_REORDER_REORDER_H_
