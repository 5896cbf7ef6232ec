// Neighbourhood collectives: whom a topology names to send to.
#include <vector>

#include "agents/mpi/trace/trace.h"
#include "agents/mpi/trace/trace_collectives.h"

namespace coppice::mpi {
namespace {

// In the order in which the collectives' arguments name them (MPI 4.0, 8.6).
std::vector<int> CartReceivers(MPI_Comm comm) {
  int dimensions = 0;
  PMPI_Cartdim_get(comm, &dimensions);
  std::vector<int> receivers;
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
    PMPI_Cart_shift(comm, dimension, 1, &below, &above);
    receivers.push_back(below);
    receivers.push_back(above);
  }
  return receivers;
}

std::vector<int> GraphReceivers(MPI_Comm comm) {
  int rank = 0, count = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Graph_neighbors_count(comm, rank, &count);
  std::vector<int> receivers(count);
  PMPI_Graph_neighbors(comm, rank, count, receivers.data());
  return receivers;
}

std::vector<int> DistGraphReceivers(MPI_Comm comm) {
  int in = 0, out = 0, weighted = 0;
  PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  std::vector<int> senders(in), receivers(out), in_weights(in + 1), out_weights(out + 1);
  PMPI_Dist_graph_neighbors(comm, in, senders.data(), in_weights.data(), out, receivers.data(),
                            out_weights.data());
  return receivers;
}

std::vector<int> Receivers(MPI_Comm comm) {
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &topology);
  if (topology == MPI_CART) return CartReceivers(comm);
  if (topology == MPI_GRAPH) return GraphReceivers(comm);
  if (topology == MPI_DIST_GRAPH) return DistGraphReceivers(comm);
  return {};
}

// Calls bytes_of(place in the order) for each receiver.
template <typename BytesOf>
void Trace(MPI_Comm comm, BytesOf bytes_of) {
  if (!IsTracing()) return;
  const std::vector<int> receivers = Receivers(comm);
  Recording recording(comm);
  if (!recording) return;
  for (size_t i = 0; i < receivers.size(); ++i)
    recording.peers().Send(receivers[i], bytes_of(i), 1);
}

}  // namespace

void TraceNeighborAllgather(int send_count, MPI_Datatype send_type, MPI_Comm comm) {
  Trace(comm, [&](size_t) { return BytesOf(send_count, send_type); });
}

void TraceNeighborAlltoallv(const int send_counts[], MPI_Datatype send_type, MPI_Comm comm) {
  Trace(comm, [&](size_t i) { return BytesOf(send_counts[i], send_type); });
}

void TraceNeighborAlltoallw(const int send_counts[], const MPI_Datatype send_types[],
                            MPI_Comm comm) {
  Trace(comm, [&](size_t i) { return BytesOf(send_counts[i], send_types[i]); });
}

}  // namespace coppice::mpi
