// Whether all ranks of the world have this library and want something of it, found out without a
// message that a rank without the library would have to answer, or could take for one of its
// program's: by names that are published at the launcher (MPI_Publish_name), which anybody can look
// up and nobody waits for.
//
//   each rank    waits until the names of its children in a tree are there, and publishes its own
//   rank 0       then publishes "complete", and unless it finds "given up" the verdict yes;
//                the verdict no, if it has waited for too long
//   the others   take the verdict; whoever has waited for too long publishes "given up", and unless
//                it finds "complete" then, takes it for a no
//
// Whoever goes without the verdict has said so before rank 0 looked, or rank 0 would have said
// before that it is complete: so nobody goes one way while others go the other. Of a name that is
// published several times it does not matter which one is found. O(log ranks) steps of a few
// lookups each.
#ifndef COPPICE_AGENTS_MPI_CORE_PRESENCE_H_
#define COPPICE_AGENTS_MPI_CORE_PRESENCE_H_

#include <chrono>

namespace coppice::mpi {

enum class Presence {
  kAll,
  kSome,      // some ranks did not say so in time
  kTimedOut,  // the same, and nobody knew before this rank
  kUnknown,   // the launcher publishes nothing, as it tells every rank alike
};

// The same on all ranks of the world that ask: kAll, or one of the others. Takes little longer than
// twice `patience` at most, at rank 0 little longer than once.
Presence FindPresence(std::chrono::milliseconds patience);

// Takes back what this rank has published, on MPICH. Not before all ranks have found their
// presence.
void TakeBackPresence();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CORE_PRESENCE_H_
