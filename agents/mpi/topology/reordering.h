// Topologies. With reorder = true Coppice is asked first which process each node of one should go
// to: the one whose place suits it becomes rank i of the new communicator for node i.
//
//   nodes' edges --gather--> leader --coppice_map--> order --broadcast--> everybody
//
// The leader is rank 0 of the communicator. Positions are the members' hosts in the communicator's
// order, so that sub-communicators and grids smaller than them are asked for in the same way.
//
// A topology names nodes by the ranks of the communicator that is made: who becomes rank i there
// has node i's neighbours (MPI 4.0, 8.5). So after the order is known, and a communicator is made
// in it, the native call makes the same topology, and only who gives which arguments changes:
//
//   MPI_Cart_create, MPI_Dist_graph_create   any process may give any edges: same arguments
//   MPI_Dist_graph_create_adjacent           each gives its own node's: those of old rank p
//                                            go to new rank p, in their order
#ifndef COPPICE_AGENTS_MPI_TOPOLOGY_REORDERING_H_
#define COPPICE_AGENTS_MPI_TOPOLOGY_REORDERING_H_

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

// Collective over `comm`. All members take the same way: true: *made was made in an order of
// Coppice's, and *error is what MPI returns; false: nothing was made, and the native call is to be
// made: reordering is not asked for, a member's arguments are none, Coppice is away or has no order
// that is worth it.
bool ReorderDistGraph(MPI_Comm comm, const DistGraph& graph, MPI_Info info, MPI_Comm* made,
                      int* error);
bool ReorderAdjacentGraph(MPI_Comm comm, const AdjacentGraph& graph, MPI_Info info, MPI_Comm* made,
                          int* error);
bool ReorderGrid(MPI_Comm comm, const Grid& grid, MPI_Comm* made, int* error);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TOPOLOGY_REORDERING_H_
