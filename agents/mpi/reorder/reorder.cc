// A topology names nodes by the ranks of the communicator that is made: who becomes rank i there
// has node i's neighbours (MPI 4.0, 8.5). So after the order is known, and a communicator is made
// in it, the native call makes the same topology, and only who gives which arguments changes:
//
//   MPI_Cart_create, MPI_Dist_graph_create   any process may give any edges: same arguments
//   MPI_Dist_graph_create_adjacent           each gives its own node's: those of old rank p
//                                            go to new rank p, in their order
#include "agents/mpi/reorder/reorder.h"

#include <climits>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "agents/mpi/reorder/order.h"

namespace coppice::mpi {
namespace {

constexpr int kTag = 0;

bool IsWeighted(const int* weights) { return weights != MPI_UNWEIGHTED; }

// Ranks below `size` and weights from 0 up, or none of either.
bool AreValid(int count, const int* ranks, const int* weights, int size) {
  if (count < 0) return false;
  if (count == 0) return true;
  const bool has_weights = IsWeighted(weights);
  if (ranks == nullptr || (has_weights && (weights == nullptr || weights == MPI_WEIGHTS_EMPTY))) {
    return false;
  }
  for (int i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= size || (has_weights && weights[i] < 0)) return false;
  }
  return true;
}

int SizeOf(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size;
}

// `comm` in the new order; MPI_COMM_NULL for who has no node. Collective.
int Reordered(MPI_Comm comm, const std::vector<int>& process_of_node, MPI_Comm* reordered) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  const int node = NodeOfProcess(process_of_node, SizeOf(comm))[rank];
  return PMPI_Comm_split(comm, node < 0 ? MPI_UNDEFINED : 0, node, reordered);
}

// All edges that this process names. False: its arguments are none.
bool EdgesOf(const DistGraph& graph, int size, std::vector<Edge>* edges) {
  if (!AreValid(graph.count, graph.sources, MPI_UNWEIGHTED, size)) return false;
  int64_t all = 0;
  for (int i = 0; i < graph.count; ++i) {
    if (graph.degrees == nullptr || graph.degrees[i] < 0) return false;
    all += graph.degrees[i];
  }
  if (all > kMaxEdges ||
      !AreValid(static_cast<int>(all), graph.destinations, graph.weights, size)) {
    return false;
  }
  edges->reserve(all);
  int at = 0;
  for (int i = 0; i < graph.count; ++i) {
    for (int j = 0; j < graph.degrees[i]; ++j, ++at) {
      const int weight = IsWeighted(graph.weights) ? graph.weights[at] : 1;
      edges->push_back({graph.sources[i], graph.destinations[at], weight});
    }
  }
  return true;
}

// Ranks and weights of both fit one message, too.
bool HasFewEdges(const AdjacentGraph& graph) {
  static_assert(kMaxEdges < INT_MAX / 4);
  return graph.in_degree <= kMaxEdges && graph.out_degree <= kMaxEdges;
}

// What `make` says; false if it ran out of memory: the others are told that the arguments are none.
template <typename Make>
bool Try(Make make) {
  try {
    return make();
  } catch (const std::exception&) {
    return false;
  }
}

// The same of the edges that go out from `rank`.
bool EdgesOf(const AdjacentGraph& graph, int rank, int size, std::vector<Edge>* edges) {
  if (!AreValid(graph.in_degree, graph.sources, graph.in_weights, size) ||
      !AreValid(graph.out_degree, graph.destinations, graph.out_weights, size) ||
      !HasFewEdges(graph)) {
    return false;
  }
  for (int i = 0; i < graph.out_degree; ++i) {
    const int weight = IsWeighted(graph.out_weights) ? graph.out_weights[i] : 1;
    edges->push_back({rank, graph.destinations[i], weight});
  }
  return true;
}

// What a process says of its node's neighbours, as it is sent to who becomes that node.
class Neighbours {
 public:
  Neighbours() = default;
  explicit Neighbours(const AdjacentGraph& graph)
      : in_(graph.in_degree),
        out_(graph.out_degree),
        in_weighted_(IsWeighted(graph.in_weights)),
        out_weighted_(IsWeighted(graph.out_weights)) {
    Append(graph.sources, in_);
    if (in_weighted_) Append(graph.in_weights, in_);
    Append(graph.destinations, out_);
    if (out_weighted_) Append(graph.out_weights, out_);
  }

  // Sends these to `to` and returns those that `from` sends.
  Neighbours Exchange(int to, int from, MPI_Comm comm) const {
    const int own[] = {in_, out_, in_weighted_, out_weighted_};
    int header[4] = {};
    PMPI_Sendrecv(own, 4, MPI_INT, to, kTag, header, 4, MPI_INT, from, kTag, comm,
                  MPI_STATUS_IGNORE);
    Neighbours other;
    other.in_ = header[0];
    other.out_ = header[1];
    other.in_weighted_ = header[2];
    other.out_weighted_ = header[3];
    other.numbers_.resize(static_cast<size_t>(header[0]) * (1 + header[2]) +
                          static_cast<size_t>(header[1]) * (1 + header[3]));
    PMPI_Sendrecv(numbers_.data(), static_cast<int>(numbers_.size()), MPI_INT, to, kTag,
                  other.numbers_.data(), static_cast<int>(other.numbers_.size()), MPI_INT, from,
                  kTag, comm, MPI_STATUS_IGNORE);
    return other;
  }

  // Valid as long as this is.
  AdjacentGraph Arguments() const {
    const int* const sources = numbers_.data();
    const int* const destinations = sources + static_cast<size_t>(in_) * (1 + in_weighted_);
    return {in_,  sources,      Weights(sources, in_, in_weighted_),
            out_, destinations, Weights(destinations, out_, out_weighted_)};
  }

 private:
  void Append(const int* values, int count) {
    if (count > 0) numbers_.insert(numbers_.end(), values, values + count);
  }
  static const int* Weights(const int* ranks, int count, int weighted) {
    if (!weighted) return MPI_UNWEIGHTED;
    return count == 0 ? MPI_WEIGHTS_EMPTY : ranks + count;
  }

  int in_ = 0, out_ = 0, in_weighted_ = 0, out_weighted_ = 0;
  std::vector<int> numbers_;  // sources, their weights, destinations, their weights
};

bool GridOf(const Grid& grid, int size, std::vector<int>* sizes, std::vector<bool>* wraps,
            int* nodes) {
  if (grid.dimensions < 1 || grid.sizes == nullptr || grid.periods == nullptr) return false;
  int64_t product = 1;
  for (int dimension = 0; dimension < grid.dimensions; ++dimension) {
    if (grid.sizes[dimension] < 1) return false;
    product *= grid.sizes[dimension];
    if (product > size) return false;
    sizes->push_back(grid.sizes[dimension]);
    wraps->push_back(grid.periods[dimension] != 0);
  }
  *nodes = static_cast<int>(product);
  return true;
}

}  // namespace

bool ReorderDistGraph(MPI_Comm comm, const DistGraph& graph, MPI_Info info, MPI_Comm* made,
                      int* error) {
  if (!MayReorder(comm)) return false;
  const int size = SizeOf(comm);
  std::vector<Edge> edges;
  std::vector<int> process_of_node;
  const bool valid = Try([&] { return EdgesOf(graph, size, &edges); });
  if (!FindOrder(comm, size, valid, edges, &process_of_node)) return false;
  MPI_Comm reordered = MPI_COMM_NULL;
  *error = Reordered(comm, process_of_node, &reordered);
  if (*error != MPI_SUCCESS) return true;
  *error = PMPI_Dist_graph_create(reordered, graph.count, graph.sources, graph.degrees,
                                  graph.destinations, graph.weights, info, 0, made);
  PMPI_Comm_free(&reordered);
  return true;
}

bool ReorderAdjacentGraph(MPI_Comm comm, const AdjacentGraph& graph, MPI_Info info, MPI_Comm* made,
                          int* error) {
  if (!MayReorder(comm)) return false;
  const int size = SizeOf(comm);
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  std::vector<Edge> edges;
  const bool valid = Try([&] { return EdgesOf(graph, rank, size, &edges); });
  std::vector<int> process_of_node;
  if (!FindOrder(comm, size, valid, edges, &process_of_node)) return false;
  MPI_Comm reordered = MPI_COMM_NULL;
  *error = Reordered(comm, process_of_node, &reordered);
  if (*error != MPI_SUCCESS) return true;
  // Node `rank` was described here; who is node `node` now, here, was described at old rank `node`.
  const std::vector<int> node_of_process = NodeOfProcess(process_of_node, size);
  const int node = node_of_process[rank];
  const Neighbours own = Neighbours(graph).Exchange(rank, node_of_process[node], reordered);
  const AdjacentGraph its = own.Arguments();
  *error = PMPI_Dist_graph_create_adjacent(reordered, its.in_degree, its.sources, its.in_weights,
                                           its.out_degree, its.destinations, its.out_weights, info,
                                           0, made);
  PMPI_Comm_free(&reordered);
  return true;
}

bool ReorderGrid(MPI_Comm comm, const Grid& grid, MPI_Comm* made, int* error) {
  if (!MayReorder(comm)) return false;
  int nodes = 0, rank = 0;
  std::vector<int> sizes, process_of_node;
  std::vector<bool> wraps;
  std::vector<Edge> edges;
  PMPI_Comm_rank(comm, &rank);
  const bool valid = Try([&] {
    if (!GridOf(grid, SizeOf(comm), &sizes, &wraps, &nodes)) return false;
    if (rank == 0) edges = GridEdges(sizes, wraps);
    return true;
  });
  if (!FindOrder(comm, nodes, valid, edges, &process_of_node)) return false;
  MPI_Comm reordered = MPI_COMM_NULL;
  *made = MPI_COMM_NULL;
  *error = Reordered(comm, process_of_node, &reordered);
  if (*error != MPI_SUCCESS || reordered == MPI_COMM_NULL) return true;
  *error = PMPI_Cart_create(reordered, grid.dimensions, grid.sizes, grid.periods, 0, made);
  PMPI_Comm_free(&reordered);
  return true;
}

}  // namespace coppice::mpi
