// Which reductions can be carried out along a tree: predefined operations on the types that MPI
// defines them for (MPI 3.1, 5.9.2 and 5.9.4), user operations on any type. Everything else is left
// to the MPI library, which knows what to say about it, or what it allows beyond the standard.
#ifndef COPPICE_AGENTS_MPI_TREE_REDUCTION_TYPES_H_
#define COPPICE_AGENTS_MPI_TREE_REDUCTION_TYPES_H_

#include <mpi.h>

namespace coppice::mpi {

enum class Reduction {
  kNotOurs,
  kAnyOrder,   // commutative
  kRankOrder,  // a user operation that is not
};

// The same on all ranks that give the same arguments.
Reduction ReductionOf(MPI_Op op, MPI_Datatype type);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_REDUCTION_TYPES_H_
