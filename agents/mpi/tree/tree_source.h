// Asks the node's agent for trees, in this process's name and as often as the session's patience
// allows. Thread-safe.
#ifndef COPPICE_AGENTS_MPI_TREE_TREE_SOURCE_H_
#define COPPICE_AGENTS_MPI_TREE_TREE_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/library/coppice.h"

namespace coppice::mpi {

struct GrantedTree {
  uint64_t id = 0;  // 0: none
  uint32_t revision = 0;
  std::vector<int32_t> parents;  // of each rank of the communicator; -1 of the root
  int wasted_ms = 0;             // that were waited for no answer
};

// Whether the program waits for an answer: only then it costs its patience.
enum class Waits { kProgram, kMeanwhile };

// A type I tree for the communicator of these ranks of the world. None: *why_not says why.
GrantedTree AskForTree(const std::vector<int>& world_ranks, coppice_operation operation,
                       uint64_t bytes, Waits waits, std::string* why_not);

// The tree as it is now; none if it is gone or nobody can say. The program waits.
GrantedTree AskAgain(uint64_t id, size_t ranks);

// Calls nobody: GiveBackAll, when it suits, tells the agent, again and again while that is away.
void GiveBack(uint64_t id);
void GiveBackAll(Waits waits);
// Whether that has anything to tell.
bool IsAnyGivenBack();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TREE_SOURCE_H_
