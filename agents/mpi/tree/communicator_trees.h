// The trees of a communicator, kept as its attribute: one for short messages and one for long ones,
// because no tree suits both:
//
//     bytes   0 ........ kLong ............ kLongEnough ............
//     tree    wide, low  none: natively     narrow, pipelined     64 hosts, 8 MiB along a star: 25
//                                                                 times longer
//
// Each is asked for after so many collectives of its length (COPPICE_TREES_AFTER), or the short one
// at the communicator's creation. Bytes of a collective are the same on all members, so that they
// agree which tree it is and count alike.
//
// In between the MPI library's own are sooner through. COPPICE_TREES_MAX_BYTES says otherwise: then
// messages of all lengths up to that one go along trees, and no longer ones.
#ifndef COPPICE_AGENTS_MPI_TREE_COMMUNICATOR_TREES_H_
#define COPPICE_AGENTS_MPI_TREE_COMMUNICATOR_TREES_H_

#include <mpi.h>

#include <cstdint>

#include "agents/mpi/tree/communicator_tree.h"
#include "client/library/coppice.h"

namespace coppice::mpi {

// From coppice-plan tree over 64 hosts with the preset costs, Allreduce: a star, the best for a
// Barrier (0 bytes), takes at most 3 times as long as the best tree below kLong, and 20 times at 1
// MiB. From kAskedAtLeast on one tree is the best, which takes 1.6 times as long as the best for
// kLong.
constexpr uint64_t kLong = uint64_t{8} << 10U;
constexpr uint64_t kAskedAtLeast = uint64_t{256} << 10U;
constexpr uint64_t kLongEnough = kAskedAtLeast + 1;

// Collective over `comm`, for a collective of so many bytes, once; null on all ranks if there is no
// tree for it. The caller may keep it until the collective is over.
CommunicatorTree* TreeOf(MPI_Comm comm, coppice_operation operation, uint64_t bytes);

// This member leaves a collective to the MPI library which others may carry out along a tree: what
// they send nobody receives. Tags of these trees are not handed out again.
void SpoilTreesOf(MPI_Comm comm);

// A communicator that the program frees, for as long as it does. Its trees are given back first, on
// all members: what functions of attributes call meanwhile is left to the MPI library. So is what
// is called later, where that is because of requests under way, or because it could not be freed.
class EndingCommunicator final {
 public:
  // Null is allowed.
  explicit EndingCommunicator(const MPI_Comm* comm);
  ~EndingCommunicator();
  EndingCommunicator(const EndingCommunicator&) = delete;
  EndingCommunicator& operator=(const EndingCommunicator&) = delete;

  // Whether this thread frees it.
  static bool Is(MPI_Comm comm);

 private:
  MPI_Comm comm_;
  EndingCommunicator* const outer_;  // within whose end this one is
};

// After a communicator was freed, by whoever may call MPI: what the attribute's function, which may
// be called from within MPI, leaves to do. Does nothing if there is nothing.
void SettleFreedTrees();

// By the world, in MPI_Init and MPI_Finalize.
void StartCommunicatorTrees();
void EndCommunicatorTrees();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_COMMUNICATOR_TREES_H_
