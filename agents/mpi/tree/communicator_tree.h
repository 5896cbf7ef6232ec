// One tree of a communicator, for messages of some length (communicator_trees.h): asked for once,
// followed, given back when the communicator is freed. All members agree at all times whether there
// is one and which.
//
// Making it: within some call that is collective over the communicator, members find out whether
// there is to be one at all, and rank 0 has it asked for. It also hands out the tags of the tree's
// messages, which meet nobody else's (tag_pool.h). Within a later one it tells the others by a
// native broadcast what came of it, or that there is no answer yet:
//
//     collective   0 1 2 ...      a                         2a              4a
//     native       native    [are there hosts?        [an answer?     [an answer?
//                             rank 0 asks, nobody      not yet]        the tree] ... along it ...
//                             waits]
//
// So a communicator that is used a few times only costs no question, and one that lives waits for
// none. A tree that some member has no memory for is given back at once: members say so to each
// other (tree_memory.h) before the first message goes along it.
//
// Following it: only the tree's root watches what becomes of it. When the tree was planned anew or
// is gone, the root says so along the tree with the next collective whose message goes from the
// root to all (Barrier, Allreduce, Bcast from the root), in how that message is cut, at no cost
// (pipeline.h). The members take the new tree at the beginning of the collective after that one:
//
//     collective n              collective n + 1
//     ... down, "changed" ...   [native broadcast: new parents, or none] ... along the new tree ...
//
// A program that only reduces has no such message: after kMaxUntold collectives in which the root
// could not say anything, all members hold that native broadcast unasked. Both conditions are
// functions of the calls that all members make alike and of a word that all got in the same
// collective, so they agree; and as every message of collectives up to n is received within its
// collective, none of the old tree is left when the first of the new one is sent.
#ifndef COPPICE_AGENTS_MPI_TREE_COMMUNICATOR_TREE_H_
#define COPPICE_AGENTS_MPI_TREE_COMMUNICATOR_TREE_H_

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "agents/mpi/tree/tag_pool.h"
#include "agents/mpi/tree/tree_memory.h"
#include "agents/mpi/tree/tree_news.h"
#include "agents/mpi/tree/tree_questions.h"
#include "agents/mpi/tree/tree_shape.h"
#include "client/library/coppice.h"

namespace coppice::mpi {

struct CommunicatorTree {
  static constexpr int kMaxUntold = 64;

  std::shared_ptr<TreeQuestion> question;  // rank 0's, as long as there may be an answer
  int asked_tags = -1;                     // that are kept for it
  TreeTags tags;                           // for the tree's messages, once there was a tree
  uint64_t id = 0;                         // 0: there is no tree
  uint32_t revision = 0;
  TreeShape shape;
  TreeMemory memory;
  std::vector<int32_t> message;  // room for what is told of a tree
  bool is_change_told = false;
  int untold = 0;  // collectives since the root could last say something

  bool IsRoot() const { return shape.parent < 0; }
  // The root's: whether there is something to say.
  bool IsChanged() const;

  std::shared_ptr<const TreeNews> news;  // of the root only
};

// Whether it is worth asking, which every member can tell without the others. Not if some are of
// another world, which may have no job, other settings or no library: they would not follow.
bool MayHaveTree(MPI_Comm comm);

// Collective over `comm`, which may have one: rank 0 has it asked for, meanwhile or, where the
// program `waits`, by the next LookForTreeOf. False, on all members: there is to be none, as they
// are all on one host, where trees know no better than the MPI library, or some of them have no
// memory.
bool AskForTreeOf(MPI_Comm comm, coppice_operation operation, uint64_t bytes, Waits waits,
                  CommunicatorTree* tree);

// Collective over `comm`, after AskForTreeOf: *tree is what was granted, if it was. False, on all
// members: there is no answer yet.
bool LookForTreeOf(MPI_Comm comm, Waits waits, CommunicatorTree* tree);

// Collective over `comm`, before each of its collectives along `tree`, which is one: as it is now.
void FollowNewsOf(MPI_Comm comm, CommunicatorTree* tree);

// This member's part of giving it back, at any time: there is no tree afterwards, nor a question.
// Calls neither MPI nor the agent, so that the functions of attributes may call it.
void LetGo(CommunicatorTree* tree);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_COMMUNICATOR_TREE_H_
