// What one thread has sent. A message like one of the thread's last few dozens costs a few
// comparisons and two additions: no lock, no call of the MPI library, nothing to search.
//
//   rank `to` of `comm` ---> one of two ways that lie side by side: the sum of that process
//                            valid while no communicator was freed since
//
// Neighbouring ranks of one communicator lie in neighbouring pairs, and communicators apart from
// each other: a stencil over each of sixteen communicators in turns finds its ways again.
//
// Sizes of predefined types are kept, too: their handles never name another type.
#ifndef COPPICE_AGENTS_MPI_TRACE_SEND_COUNTS_H_
#define COPPICE_AGENTS_MPI_TRACE_SEND_COUNTS_H_

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/trace/pair_table.h"

namespace coppice::mpi {

class SendCounts final {
 public:
  // False: nothing was counted, because it is not like those before.
  bool CountAgain(int count, MPI_Datatype type, int to, MPI_Comm comm) {
    const size_t place = Place(to, comm);
    const Way* way = &ways_[place];
    if (way->to != to || way->comm != comm) way = &ways_[place ^ 1];
    if (way->to != to || way->comm != comm || type_ != type || count < 0 ||
        way->gone != communicators_gone.load(std::memory_order_acquire)) {
      return false;
    }
    ++way->sum->messages;
    way->sum->bytes += static_cast<uint64_t>(count) * type_size_;
    return true;
  }

  // From now on: messages to rank `to` of `comm` are of the process `world`. `gone` is
  // communicators_gone as it was before `world` was found.
  void Remember(int to, MPI_Comm comm, int world, uint64_t gone) {
    const size_t place = Place(to, comm);
    const bool is_other = ways_[place].to != to || ways_[place].comm != comm;
    if (is_other) ways_[place ^ 1] = ways_[place];
    ways_[place] = {comm, to, gone, pairs_.At(world)};
  }
  // A predefined type.
  void Remember(MPI_Datatype type, uint64_t size) {
    type_ = type;
    type_size_ = size;
  }

  PairTable& pairs() { return pairs_; }

 private:
  static constexpr size_t kWays = 512;  // those of 16 communicators with some neighbours each

  // The first of a pair's ways that is looked at. MPICH's handles are numbers, Open MPI's
  // addresses: Fibonacci hashing (Knuth, TAOCP 6.4) moves neighbours of either far apart.
  static size_t Place(int to, MPI_Comm comm) {
    uint64_t handle = 0;
    static_assert(sizeof(comm) <= sizeof(handle));
    std::memcpy(&handle, &comm, sizeof(comm));
    const uint64_t begin = handle * 0x9E3779B97F4A7C15u >> 32U;
    return 2 * (begin + static_cast<size_t>(to)) % kWays;
  }

  struct Way {
    MPI_Comm comm = MPI_COMM_NULL;
    int to = -1;
    uint64_t gone = UINT64_MAX;  // none was sent: no number of communicators_gone
    PairSum* sum = nullptr;
  };

  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  uint64_t type_size_ = 0;
  Way ways_[kWays];
  PairTable pairs_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TRACE_SEND_COUNTS_H_
