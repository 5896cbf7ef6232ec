// What this process sends, counted at the sender's side by ranks of the world, from MPI_Init to
// MPI_Finalize; then gathered at rank 0, written to a file, kept at the daemon, or both.
//
// Everything here does nothing, at the price of one look at a flag, unless a trace is asked for.
// Each thread counts for itself (send_counts.h); what a thread has counted is added up when it
// ends, or at the end.
#ifndef COPPICE_AGENTS_MPI_TRACE_TRACE_H_
#define COPPICE_AGENTS_MPI_TRACE_TRACE_H_

#include <mpi.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/trace/collective_messages.h"
#include "agents/mpi/trace/pair_table.h"
#include "agents/mpi/trace/send_counts.h"

namespace coppice::mpi {

// Set by StartTrace alone, before any message.
extern __attribute__((visibility("hidden"))) bool is_tracing;
inline bool IsTracing() { return is_tracing; }

// By MPI_Init and MPI_Finalize, beside Session's. EndTrace is collective over the world if a trace
// is asked for.
void StartTrace();
void EndTrace();

// One look at the trace: holds the lock, if the program has threads, for as long as it lives,
// because of the ranks of `comm` that it knows. False if there is nothing to do.
class Recording final {
 public:
  explicit Recording(MPI_Comm comm) {
    if (IsTracing()) Open(comm);
  }
  explicit operator bool() const { return ranks_ != nullptr; }

  // As this process sees the communicator.
  int rank() const { return ranks_->rank; }
  int size() const { return ranks_->local.size(); }
  int peer_count() const { return ranks_->peers().size(); }
  bool is_inter() const { return ranks_->is_inter; }
  // Messages to ranks of the local group, and to those that a send names: the same, but on
  // intercommunicators. Processes of other worlds and MPI_PROC_NULL receive nothing.
  MessageSink& local() { return local_; }
  MessageSink& peers() { return peers_; }

  // Messages like this one need no recording, as long as communicators_gone is `gone`.
  void Remember(int to, MPI_Comm comm, MPI_Datatype type, uint64_t gone);

 private:
  class Sink final : public MessageSink {
   public:
    Sink() = default;
    Sink(const GroupRanks* ranks, SendCounts* counts) : ranks_(ranks), counts_(counts) {}
    void Send(int to, uint64_t bytes, uint64_t messages) override;

   private:
    const GroupRanks* ranks_ = nullptr;
    SendCounts* counts_ = nullptr;
  };
  void Open(MPI_Comm comm);

  SendCounts* counts_ = nullptr;
  const CommunicatorRanks* ranks_ = nullptr;
  Sink local_, peers_;
  std::unique_lock<std::mutex> lock_;
};

// Bytes of `count` elements; a type that is none has no bytes.
inline uint64_t BytesOf(int count, MPI_Datatype type) {
  int size = 0;
  if (count <= 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS ||
      size < 0)
    return 0;
  return static_cast<uint64_t>(count) * static_cast<uint64_t>(size);
}

// `error`, which a call has come out with; `trace` is called first if that is none. What the MPI
// library refuses is not traced, nor are its arguments looked at.
template <typename Trace>
int Traced(int error, const Trace& trace) {
  if (IsTracing() && error == MPI_SUCCESS) trace();
  return error;
}

// What this thread has sent; null before its first message, and while it makes a persistent
// request. At a fixed place of each thread, as a library that is there from the start may have it.
extern constinit __attribute__((visibility("hidden"),
                                tls_model("initial-exec"))) thread_local SendCounts* own_counts;

// A message to rank `to` of `comm`, whatever was sent before.
void TraceAnySend(int count, MPI_Datatype type, int to, MPI_Comm comm);
// The same, quickly.
inline void TraceSend(int count, MPI_Datatype type, int to, MPI_Comm comm) {
  if (!IsTracing()) return;
  SendCounts* const own = own_counts;
  if (own == nullptr || !own->CountAgain(count, type, to, comm)) {
    TraceAnySend(count, type, to, comm);
  }
}
// What `send`, a call of MPI's for such a message, returns; traced if that is no error. No more
// than the call where nothing is traced.
template <typename Call>
int TraceSent(const Call& send, int count, MPI_Datatype type, int to, MPI_Comm comm) {
  if (!IsTracing()) return send();
  const int error = send();
  if (error == MPI_SUCCESS) TraceSend(count, type, to, comm);
  return error;
}
// All partitions of a partitioned send as one.
void TracePartitionedSend(int partitions, MPI_Count count, MPI_Datatype type, int to,
                          MPI_Comm comm);

// Requests that send each time they are started. What is traced between its begin and its end goes
// to the request instead of the trace, and to the trace whenever the request starts.
class PersistentRecording final {
 public:
  PersistentRecording();
  ~PersistentRecording();
  void Attach(MPI_Request request);

 private:
  SendCounts* const own_;  // that the thread goes on with
  std::vector<PairSum> sent_;
};

// What `trace` traces is sent whenever `request` is started.
template <typename Trace>
void TracePersistent(MPI_Request request, const Trace& trace) {
  PersistentRecording recording;
  trace();
  recording.Attach(request);
}

void TraceStart(MPI_Request request);
void TraceRequestFreed(MPI_Request request);

// What each collective makes this process send (collective_messages.h), read from the arguments of
// its call. Arguments that mean nothing at this rank are not looked at; MPI_IN_PLACE is allowed
// where MPI allows it. On intercommunicators:
//
//   bcast, scatter          the root to the remote rank 0, from there binomial; to each
//   reduce, gather          binomial to the remote rank 0, from there to the root; each to the root
//   barrier, allreduce      binomial to rank 0, ranks 0 with each other, binomial from rank 0
//   reduce_scatter          binomial to rank 0, ranks 0 with each other, from rank 0 to each
//   allgather, alltoall     each to each
void TraceBarrier(MPI_Comm comm);
void TraceBcast(int count, MPI_Datatype type, int root, MPI_Comm comm);
void TraceReduce(int count, MPI_Datatype type, int root, MPI_Comm comm);
void TraceAllreduce(int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
void TraceScan(int count, MPI_Datatype type, MPI_Comm comm);
void TraceReduceScatter(const int counts[], MPI_Datatype type, MPI_Comm comm);
void TraceReduceScatterBlock(int count, MPI_Datatype type, MPI_Comm comm);
void TraceGather(int send_count, MPI_Datatype send_type, int root, MPI_Comm comm);
void TraceGatherv(int send_count, MPI_Datatype send_type, int root, MPI_Comm comm);
void TraceScatter(int send_count, MPI_Datatype send_type, int receive_count,
                  MPI_Datatype receive_type, int root, MPI_Comm comm);
void TraceScatterv(const int send_counts[], MPI_Datatype send_type, int root, MPI_Comm comm);
void TraceAllgather(int send_count, MPI_Datatype send_type, int receive_count,
                    MPI_Datatype receive_type, MPI_Comm comm);
void TraceAllgatherv(int send_count, MPI_Datatype send_type, const int receive_counts[],
                     MPI_Datatype receive_type, MPI_Comm comm);
// With MPI_IN_PLACE, what is received says what is sent.
void TraceAlltoall(const void* send, int send_count, MPI_Datatype send_type, int receive_count,
                   MPI_Datatype receive_type, MPI_Comm comm);
void TraceAlltoallv(const void* send, const int send_counts[], MPI_Datatype send_type,
                    const int receive_counts[], MPI_Datatype receive_type, MPI_Comm comm);
void TraceAlltoallw(const void* send, const int send_counts[], const MPI_Datatype send_types[],
                    const int receive_counts[], const MPI_Datatype receive_types[], MPI_Comm comm);

// Neighbourhood collectives: a message to each neighbour that the topology names as one to send to.
void TraceNeighborAllgather(int send_count, MPI_Datatype send_type, MPI_Comm comm);
void TraceNeighborAlltoallv(const int send_counts[], MPI_Datatype send_type, MPI_Comm comm);
void TraceNeighborAlltoallw(const int send_counts[], const MPI_Datatype send_types[],
                            MPI_Comm comm);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TRACE_TRACE_H_
