#include <algorithm>
#include <numeric>
#include <vector>

#include "agents/mpi/trace/trace.h"

namespace coppice::mpi {
namespace {

std::vector<uint64_t> BytesOfEach(const int counts[], MPI_Datatype type, int ranks) {
  const uint64_t bytes = BytesOf(1, type);
  std::vector<uint64_t> blocks(ranks);
  for (int rank = 0; rank < ranks; ++rank)
    blocks[rank] = static_cast<uint64_t>(std::max(0, counts[rank])) * bytes;
  return blocks;
}

std::vector<uint64_t> BytesOfEach(const int counts[], const MPI_Datatype types[], int ranks) {
  std::vector<uint64_t> blocks(ranks);
  for (int rank = 0; rank < ranks; ++rank) blocks[rank] = BytesOf(counts[rank], types[rank]);
  return blocks;
}

// To all of the remote group.
void ToEach(Recording& call, uint64_t bytes) {
  for (int to = 0; to < call.peer_count(); ++to) call.peers().Send(to, bytes, 1);
}

void ToEach(Recording& call, const std::vector<uint64_t>& blocks) {
  // A rank that is none: nothing is left out as one's own.
  PairwiseMessages(call.is_inter() ? -1 : call.rank(), blocks, call.peers());
}

// To rank 0, between ranks 0, from rank 0.
void AcrossAndBack(Recording& call, uint64_t bytes) {
  ReduceMessages(call.rank(), call.size(), 0, bytes, call.local());
  if (call.rank() == 0) call.peers().Send(0, bytes, 1);
  BinomialBcastMessages(call.rank(), call.size(), 0, bytes, call.local());
}

bool Commutes(MPI_Op op) {
  int commutes = 0;
  PMPI_Op_commutative(op, &commutes);
  return commutes != 0;
}

// In the order in which the collectives' arguments name them (MPI 4.0, 8.6).
std::vector<int> Receivers(MPI_Comm comm) {
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &topology);
  std::vector<int> receivers;
  if (topology == MPI_CART) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    receivers.assign(2 * dimensions, MPI_PROC_NULL);
    for (int i = 0; i < dimensions; ++i) {
      PMPI_Cart_shift(comm, i, 1, &receivers[2 * i], &receivers[2 * i + 1]);
    }
  } else if (topology == MPI_GRAPH) {
    const int rank = RankIn(comm);
    int count = 0;
    PMPI_Graph_neighbors_count(comm, rank, &count);
    receivers.resize(count);
    PMPI_Graph_neighbors(comm, rank, count, receivers.data());
  } else if (topology == MPI_DIST_GRAPH) {
    int in = 0, out = 0, weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    std::vector<int> senders(in), in_weights(in + 1), out_weights(out + 1);
    receivers.resize(out);
    PMPI_Dist_graph_neighbors(comm, in, senders.data(), in_weights.data(), out, receivers.data(),
                              out_weights.data());
  }
  return receivers;
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

void TraceBarrier(MPI_Comm comm) {
  Recording call(comm);
  if (!call) return;
  if (call.is_inter()) return AcrossAndBack(call, 0);
  BarrierMessages(call.rank(), call.size(), call.local());
}

void TraceBcast(int count, MPI_Datatype type, int root, MPI_Comm comm) {
  Recording call(comm);
  if (!call || root == MPI_PROC_NULL) return;
  const uint64_t bytes = BytesOf(count, type);
  if (!call.is_inter()) {
    BcastMessages(call.rank(), call.size(), root, bytes, call.local());
  } else if (root == MPI_ROOT) {
    call.peers().Send(0, bytes, 1);
  } else {
    BinomialBcastMessages(call.rank(), call.size(), 0, bytes, call.local());
  }
}

void TraceReduce(int count, MPI_Datatype type, int root, MPI_Comm comm) {
  Recording call(comm);
  if (!call || root == MPI_PROC_NULL || root == MPI_ROOT) return;
  const uint64_t bytes = BytesOf(count, type);
  ReduceMessages(call.rank(), call.size(), call.is_inter() ? 0 : root, bytes, call.local());
  if (call.is_inter() && call.rank() == 0) call.peers().Send(root, bytes, 1);
}

void TraceAllreduce(int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  Recording call(comm);
  if (!call) return;
  const uint64_t bytes = BytesOf(count, type);
  if (call.is_inter()) return AcrossAndBack(call, bytes);
  AllreduceMessages(call.rank(), call.size(), bytes, Commutes(op), call.local());
}

void TraceScan(int count, MPI_Datatype type, MPI_Comm comm) {
  Recording call(comm);
  if (call) ScanMessages(call.rank(), call.size(), BytesOf(count, type), call.local());
}

void TraceReduceScatter(const int counts[], MPI_Datatype type, MPI_Comm comm) {
  Recording call(comm);
  if (!call) return;
  const std::vector<uint64_t> blocks = BytesOfEach(counts, type, call.size());
  if (!call.is_inter()) return PairwiseMessages(call.rank(), blocks, call.local());
  // Both groups' counts have the same sum.
  const uint64_t bytes = std::accumulate(blocks.begin(), blocks.end(), uint64_t{0});
  ReduceMessages(call.rank(), call.size(), 0, bytes, call.local());
  if (call.rank() != 0) return;
  call.peers().Send(0, bytes, 1);
  PairwiseMessages(0, blocks, call.local());
}

void TraceReduceScatterBlock(int count, MPI_Datatype type, MPI_Comm comm) {
  if (!IsTracing()) return;
  const std::vector<int> counts(SizeOf(comm), count);
  TraceReduceScatter(counts.data(), type, comm);
}

void TraceGather(int send_count, MPI_Datatype send_type, int root, MPI_Comm comm) {
  Recording call(comm);
  if (!call || root == MPI_PROC_NULL || root == MPI_ROOT) return;
  if (call.is_inter()) return call.peers().Send(root, BytesOf(send_count, send_type), 1);
  if (call.rank() == root) return;  // whose count means nothing
  GatherMessages(call.rank(), call.size(), root, BytesOf(send_count, send_type), call.local());
}

void TraceGatherv(int send_count, MPI_Datatype send_type, int root, MPI_Comm comm) {
  Recording call(comm);
  if (!call || root == MPI_PROC_NULL || root == MPI_ROOT) return;
  if (!call.is_inter() && call.rank() == root) return;
  const uint64_t bytes = BytesOf(send_count, send_type);
  if (bytes > 0) call.peers().Send(root, bytes, 1);
}

void TraceScatter(int send_count, MPI_Datatype send_type, int receive_count,
                  MPI_Datatype receive_type, int root, MPI_Comm comm) {
  Recording call(comm);
  if (!call || root == MPI_PROC_NULL) return;
  if (call.is_inter()) {
    if (root == MPI_ROOT) ToEach(call, BytesOf(send_count, send_type));
    return;
  }
  const uint64_t block =
      call.rank() == root ? BytesOf(send_count, send_type) : BytesOf(receive_count, receive_type);
  ScatterMessages(call.rank(), call.size(), root, block, call.local());
}

void TraceScatterv(const int send_counts[], MPI_Datatype send_type, int root, MPI_Comm comm) {
  Recording call(comm);
  if (!call) return;
  if (call.is_inter() ? root != MPI_ROOT : call.rank() != root) return;
  ToEach(call, BytesOfEach(send_counts, send_type, call.peer_count()));
}

void TraceAllgather(int send_count, MPI_Datatype send_type, int receive_count,
                    MPI_Datatype receive_type, MPI_Comm comm) {
  Recording call(comm);
  if (!call) return;
  if (call.is_inter()) return ToEach(call, BytesOf(send_count, send_type));
  AllgatherMessages(call.rank(), call.size(), BytesOf(receive_count, receive_type), call.local());
}

void TraceAllgatherv(int send_count, MPI_Datatype send_type, const int receive_counts[],
                     MPI_Datatype receive_type, MPI_Comm comm) {
  Recording call(comm);
  if (!call) return;
  if (call.is_inter()) return ToEach(call, BytesOf(send_count, send_type));
  AllgathervMessages(call.rank(), BytesOfEach(receive_counts, receive_type, call.size()),
                     call.local());
}

void TraceAlltoall(const void* send, int send_count, MPI_Datatype send_type, int receive_count,
                   MPI_Datatype receive_type, MPI_Comm comm) {
  Recording call(comm);
  if (!call) return;
  if (call.is_inter()) return ToEach(call, BytesOf(send_count, send_type));
  const uint64_t block =
      send == MPI_IN_PLACE ? BytesOf(receive_count, receive_type) : BytesOf(send_count, send_type);
  AlltoallMessages(call.rank(), call.size(), block, call.local());
}

void TraceAlltoallv(const void* send, const int send_counts[], MPI_Datatype send_type,
                    const int receive_counts[], MPI_Datatype receive_type, MPI_Comm comm) {
  Recording call(comm);
  if (!call) return;
  ToEach(call, send == MPI_IN_PLACE ? BytesOfEach(receive_counts, receive_type, call.peer_count())
                                    : BytesOfEach(send_counts, send_type, call.peer_count()));
}

void TraceAlltoallw(const void* send, const int send_counts[], const MPI_Datatype send_types[],
                    const int receive_counts[], const MPI_Datatype receive_types[], MPI_Comm comm) {
  Recording call(comm);
  if (!call) return;
  ToEach(call, send == MPI_IN_PLACE ? BytesOfEach(receive_counts, receive_types, call.peer_count())
                                    : BytesOfEach(send_counts, send_types, call.peer_count()));
}

// Neighbourhood collectives: whom a topology names to send to.

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
