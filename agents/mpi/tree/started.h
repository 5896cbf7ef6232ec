// Collectives that the program has started and not waited for, on one tree: one begins when the one
// before it is over at this member, as nothing but the order of messages tells their segments apart
// (pipeline.h). They advance while the program is in MPI, without a thread. README.md says why
// nobody waits here whom MPI does not let wait.
//
//     program    Iallreduce   Iallreduce   ...   Test          Test            Bcast
//     first      begins  ..................advances......over
//     second                  (queued)                   begins ..............over |
//     Bcast                                                          waits for it  | begins
//
// Only where the MPI library says how (StartHooks): Open MPI's component does.
#ifndef COPPICE_AGENTS_MPI_TREE_STARTED_H_
#define COPPICE_AGENTS_MPI_TREE_STARTED_H_

#include <mpi.h>

#include <deque>
#include <memory>

namespace coppice::mpi {

class Passage;

// What the MPI library does for it. One thread at a time calls MPI.
struct StartHooks {
  // A request of a collective on `comm`, which outlives it; null: there is no memory.
  MPI_Request (*make)(MPI_Comm comm);
  // It is complete, with that error of MPI's.
  void (*complete)(MPI_Request request, int error);
  // One step of what MPI does while it waits; AdvanceStarted is called from there.
  void (*progress)();
};
// Before the first one is started. Null: none is.
void SetStartHooks(const StartHooks* hooks);
bool MayStart();

class StartedCollectives final {
 public:
  StartedCollectives();
  ~StartedCollectives();
  StartedCollectives(const StartedCollectives&) = delete;
  StartedCollectives& operator=(const StartedCollectives&) = delete;

  // If MayStart. Returns its request, which may be complete already. Throws std::bad_alloc: nothing
  // was sent.
  MPI_Request Start(MPI_Comm comm, std::unique_ptr<Passage> passage);

  // Before a blocking collective on the same tree, or before this one is replaced: waits until all
  // are over.
  void Drain();

  // By AdvanceStarted: they do what they can. Returns how many are over now.
  int Advance();
  bool IsEmpty() const { return queue_.empty(); }

 private:
  struct Started {
    std::unique_ptr<Passage> passage;
    MPI_Request request;
  };
  std::deque<Started> queue_;
};

// Whenever the program is in MPI: all that were started do what they can. Returns how many are over
// now. Does nothing when it is called from within itself, as MPI's own functions may do.
int AdvanceStarted();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_STARTED_H_
