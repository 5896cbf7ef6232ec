// Where a communicator keeps its trees, so that they go when it goes and are never found for
// another one that got the same handle: in an attribute of the communicator, in the library that is
// preloaded (attribute_trees.cc); in Open MPI's module of it, in the component (openmpi/).
#ifndef COPPICE_AGENTS_MPI_TREE_KEPT_TREES_H_
#define COPPICE_AGENTS_MPI_TREE_KEPT_TREES_H_

#include <mpi.h>

namespace coppice::mpi {

struct CommunicatorTrees;

// `forget`: what is called with the trees of a communicator, null among them, when it goes; from
// within MPI, by one member alone. It calls neither MPI nor the agent.
void StartKeepingTrees(void (*forget)(CommunicatorTrees*));
// What the world keeps is forgotten, or what all do.
void EndKeepingTrees();

// False: `comm` keeps nothing, as it is none, or nobody has begun. Else *was_kept: whether Keep was
// called; *trees: with what.
bool FindKeptTrees(MPI_Comm comm, bool* was_kept, CommunicatorTrees** trees);
// Null is kept, too. False: there is no memory.
bool KeepTrees(MPI_Comm comm, CommunicatorTrees* trees);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_KEPT_TREES_H_
