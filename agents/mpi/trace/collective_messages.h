// The messages that one rank sends in a collective, by the algorithm that MPI libraries use for it.
// Which one runs is the library's secret; these are the textbook ones (Thakur, Rabenseifner, Gropp:
// "Optimization of Collective Communication Operations in MPICH", 2005) with sizes from which the
// other is taken:
//
//   barrier                dissemination: to rank + 1, + 2, + 4, ...
//   bcast                  binomial; from kLongBcast and 8 ranks on: scatter, ring allgather
//   reduce                 binomial
//   allreduce              recursive doubling; from kLongAllreduce on: ring, if it commutes
//   reduce_scatter         pairwise: its block to each
//   scan, exscan           recursive doubling
//   gather, scatter        binomial, parts of subtrees together
//   gatherv, scatterv      each with the root
//   allgather              Bruck; from kLongAllgather on: ring
//   allgatherv             ring
//   alltoall               pairwise; up to kShortAlltoall and from 8 ranks on: Bruck
//   alltoallv, alltoallw   pairwise, nothing for parts without bytes
//
// Knows no MPI: ranks and bytes. All functions cost O(log size), or O(size) where that many
// messages are.
#ifndef COPPICE_AGENTS_MPI_TRACE_COLLECTIVE_MESSAGES_H_
#define COPPICE_AGENTS_MPI_TRACE_COLLECTIVE_MESSAGES_H_

#include <cstdint>
#include <vector>

namespace coppice::mpi {

class MessageSink {
 public:
  // `messages` to rank `to`, `bytes` all together.
  virtual void Send(int to, uint64_t bytes, uint64_t messages) = 0;

 protected:
  ~MessageSink() = default;
};

constexpr uint64_t kLongBcast = 12288;      // MPICH's MPIR_CVAR_BCAST_SHORT_MSG_SIZE
constexpr uint64_t kLongAllreduce = 10000;  // Open MPI's tuned: intermediate message
constexpr uint64_t kLongAllgather = 81920;  // MPICH's ALLGATHER_SHORT_MSG_SIZE, of all blocks
constexpr uint64_t kShortAlltoall = 256;    // MPICH's ALLTOALL_SHORT_MSG_SIZE, of a block
constexpr int kFewRanks = 8;                // MPICH's BCAST_MIN_PROCS, ALLTOALL short

// Of `rank` among `size` ranks; `bytes` of the whole buffer, `block` of each rank's part.
void BarrierMessages(int rank, int size, MessageSink& sink);
void BcastMessages(int rank, int size, int root, uint64_t bytes, MessageSink& sink);
void BinomialBcastMessages(int rank, int size, int root, uint64_t bytes, MessageSink& sink);
void ReduceMessages(int rank, int size, int root, uint64_t bytes, MessageSink& sink);
void AllreduceMessages(int rank, int size, uint64_t bytes, bool commutes, MessageSink& sink);
void ScanMessages(int rank, int size, uint64_t bytes, MessageSink& sink);
void GatherMessages(int rank, int size, int root, uint64_t block, MessageSink& sink);
void ScatterMessages(int rank, int size, int root, uint64_t block, MessageSink& sink);
void AllgatherMessages(int rank, int size, uint64_t block, MessageSink& sink);
void AlltoallMessages(int rank, int size, uint64_t block, MessageSink& sink);
// `blocks` has the bytes of each rank's part.
void AllgathervMessages(int rank, const std::vector<uint64_t>& blocks, MessageSink& sink);
// To each rank but `rank` what `blocks` says, unless it is nothing.
void PairwiseMessages(int rank, const std::vector<uint64_t>& blocks, MessageSink& sink);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TRACE_COLLECTIVE_MESSAGES_H_
