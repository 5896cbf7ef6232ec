// Asks Coppice which process each node of a topology should go to.
//
//   nodes' edges --gather--> leader --coppice_map--> order --broadcast--> everybody
//
// The leader is rank 0 of the communicator. Positions are the members' hosts in the communicator's
// order, so that sub-communicators and grids smaller than them are asked for in the same way.
#ifndef COPPICE_AGENTS_MPI_REORDER_ORDER_H_
#define COPPICE_AGENTS_MPI_REORDER_ORDER_H_

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace coppice::mpi {

// Node `from` sends `weight` to node `to`.
struct Edge {
  int32_t from, to, weight;
};
static_assert(sizeof(Edge) == 3 * sizeof(int32_t));  // as it is gathered

// A topology with more edges is left as it is: its pattern would take gigabytes at the leader.
constexpr int kMaxEdges = 4'000'000;

// Whether Coppice is asked at all: the same at all members. Not if some are of another world, which
// may have no job, other settings or no library. O(members).
bool MayReorder(MPI_Comm comm);

// Collective over `comm`. `nodes` is at most its size and the same at all members; `edges` are any
// part of the topology's, each at one member. False, at all members: there is no order: a member
// says that its arguments are not `valid`, a host is not known, Coppice is away or says no.
// Else process_of_node[i] is the rank in `comm` of the process that node i goes to.
bool FindOrder(MPI_Comm comm, int nodes, bool valid, const std::vector<Edge>& edges,
               std::vector<int>* process_of_node);

// What each process is then: its node; -1: none.
std::vector<int> NodeOfProcess(const std::vector<int>& process_of_node, int processes);

// Edges of a topology as the pattern that Coppice is asked with: each pair once, nothing to
// oneself.

struct EdgeSums {
  std::vector<uint32_t> from, to;
  std::vector<double> weights;  // all above 0
};

// O(edges log edges).
EdgeSums AddUp(std::vector<Edge> edges);

// Both ends of every edge of a grid of `sizes`, numbered with the last dimension fastest, as
// MPI_Cart_create does.
std::vector<Edge> GridEdges(const std::vector<int>& sizes, const std::vector<bool>& wraps);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_REORDER_ORDER_H_
