// Where the messages of all trees of a program go: one communicator of the world's processes, on
// which each tree has tags of its own (README.md says why).
//
// Tags: rank 0 of a communicator, its leader, hands them out of the share that is its own, so that
// two trees at once never have the same ones, without a message. A member says to the leader when
// its communicator is freed (kLeft); when all have, no message with these tags is under way nor
// awaited, and they are handed out again. Threads may do all of this at once.
//
//     tag = kTagsOfTree * (leader * share + number) + kind
//
// Where there may be a forest, kSetsOfForest numbers in a row are its own: its trees have kinds
// from kTagsOfTree on. These are taken from the end of the share.
#ifndef COPPICE_AGENTS_MPI_TREE_TAG_POOL_H_
#define COPPICE_AGENTS_MPI_TREE_TAG_POOL_H_

#include <mpi.h>

#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/tree/elements.h"

namespace coppice::mpi {

// Kinds of messages of one tree.
enum TreeTag {
  kUpTag,
  kDownTag,
  kDownRestTag,
  kCopyTag,
  kTagsOfForestTree,  // each of a forest has the kinds before
  kLeftTag = kTagsOfForestTree,
  kExchangeTag,
  kTagsOfTree = 8
};
constexpr int kSetsOfForest = 8;
// What a communicator asks for at most.
constexpr int kMaxForestTrees = (kSetsOfForest - 1) * kTagsOfTree / kTagsOfForestTree;

// A tree's own share of them, and how its messages go.
struct TreeTags {
  MPI_Comm comm = MPI_COMM_NULL;
  int first_tag = 0;       // the first of kTagsOfTree, or of a forest's
  int segment_bytes = 0;   // longer messages are cut
  bool is_spoilt = false;  // after an error: messages may be under way for good
  GroupRanks members;      // where on `comm` each rank of the tree's communicator is
};

// Collective over the world, in MPI_Init. True on all ranks or on none, if the MPI library has no
// communicator to give, which is no error of the program's.
bool OpenTagPool();
// Collective over the world; does nothing if it is not open.
void CloseTagPool();
MPI_Comm TagPoolComm();
// The same on all ranks, while the pool is open.
int TreeSegmentBytes();

// The first of a new tree's tags; negative if this process's are all in use. By the leader.
int TakeTags(bool may_be_forest);

// This process has freed the communicator of `members` processes whose leader that rank of the
// world is. Calls nothing of MPI's, so that the functions of attributes may call it.
void LeaveTags(int tags, int leader, int members);

// `count` elements, 1 at least, from one place of this process to another, which do not overlap: by
// a message to itself if there are gaps, which stay as they are. An error of MPI's.
int CopyElements(const TreeTags& tags, const TypeLayout& layout, const void* from, void* to,
                 int count);

// Whether a message is under way still, where the MPI library lets that be seen without a step of
// progress: Open MPI's component does. Null: PMPI_Test is asked.
inline bool (*is_under_way)(MPI_Request) = nullptr;
// As PMPI_Test.
int TestMessage(MPI_Request* request, bool* is_complete, MPI_Status* status);

// Tells leaders what was left, and takes note of what members have left. Not for functions of
// attributes.
void SettleTags();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TAG_POOL_H_
