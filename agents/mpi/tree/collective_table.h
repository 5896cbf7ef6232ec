// The collectives that trees carry. This table says of each its name, its arguments and what a
// trace has of it; from it come the functions of C and of Fortran (calls/collectives.cc), the
// functions of Open MPI's component, blocking and nonblocking ones (openmpi/), the
// counters, and which cases tests/mpi/collectives has to have. tree_collectives.cc
// says which arguments MPI refuses and how each goes along a tree.
//
// A collective's arguments are a macro that hands type and name of each to A. `Count` is int, or
// MPI_Count in MPI 4's forms with large counts. The macros are for C, too (openmpi/).
#ifndef COPPICE_AGENTS_MPI_TREE_COLLECTIVE_TABLE_H_
#define COPPICE_AGENTS_MPI_TREE_COLLECTIVE_TABLE_H_

#ifdef __cplusplus
#include <cstdint>
#endif

#define COPPICE_BARRIER_ARGUMENTS(A) A(MPI_Comm, comm)
#define COPPICE_BCAST_ARGUMENTS(A) \
  A(void*, buffer), A(Count, count), A(MPI_Datatype, type), A(int, root), A(MPI_Comm, comm)
#define COPPICE_REDUCE_ARGUMENTS(A)                                                               \
  A(const void*, send), A(void*, receive), A(Count, count), A(MPI_Datatype, type), A(MPI_Op, op), \
      A(int, root), A(MPI_Comm, comm)
#define COPPICE_ALLREDUCE_ARGUMENTS(A)                                                            \
  A(const void*, send), A(void*, receive), A(Count, count), A(MPI_Datatype, type), A(MPI_Op, op), \
      A(MPI_Comm, comm)

// X(name in C, in Fortran and in counts, arguments, what is traced); first those without data,
// which have no form with large counts.
#define COPPICE_TREE_COLLECTIVES_WITHOUT_DATA(X) \
  X(Barrier, barrier, COPPICE_BARRIER_ARGUMENTS, TraceBarrier(comm))
#define COPPICE_TREE_COLLECTIVES_OF_DATA(X)                                         \
  X(Bcast, bcast, COPPICE_BCAST_ARGUMENTS, TraceBcast(count, type, root, comm))     \
  X(Reduce, reduce, COPPICE_REDUCE_ARGUMENTS, TraceReduce(count, type, root, comm)) \
  X(Allreduce, allreduce, COPPICE_ALLREDUCE_ARGUMENTS, TraceAllreduce(count, type, op, comm))
#define COPPICE_TREE_COLLECTIVES(X)        \
  COPPICE_TREE_COLLECTIVES_WITHOUT_DATA(X) \
  COPPICE_TREE_COLLECTIVES_OF_DATA(X)

// For A: as a function's parameters and as what is handed on.
#define COPPICE_PARAMETER(TYPE, NAME) TYPE NAME
#define COPPICE_ARGUMENT(TYPE, NAME) NAME

#ifdef __cplusplus

namespace coppice::mpi {

// What this process did with trees, counted for tests and for who asks for words (COPPICE_VERBOSE).
// Counters are atomic; they never go back.
enum TreeCount {
  kCountAsked,    // trees that this process asked for
  kCountGranted,  // of these
// Collectives that went along a tree: kCountBarrier, kCountBcast, ...
#define COPPICE_COUNT(NAME, ...) kCount##NAME,
  COPPICE_TREE_COLLECTIVES(COPPICE_COUNT)
#undef COPPICE_COUNT
      kCountNative,    // collectives that found no tree, or one that could not carry them
  kCountRevised,       // trees that were replaced, at their root
  kCountGone,          // trees that were given up, at their root
  kCountReleased,      // trees that were given back
  kCountOverSwitches,  // collectives of those along trees that switches carried
// Nonblocking ones that went along a tree: kCountIbarrier, kCountIbcast, ..., in the same order.
#define COPPICE_COUNT(NAME, FORTRAN, ...) kCountI##FORTRAN,
  COPPICE_TREE_COLLECTIVES(COPPICE_COUNT)
#undef COPPICE_COUNT
      kCountInative,  // nonblocking ones that could not; only where some can (Open MPI's component)
  kTreeCounts
};

void CountTree(TreeCount what);

}  // namespace coppice::mpi

// For programs that look it up by name: writes the kTreeCounts counters of this process, at most
// `size` of them, and returns how many there are.
extern "C" __attribute__((visibility("default"))) int coppice_mpi_tree_counts(uint64_t* counts,
                                                                              int size);

#endif  // __cplusplus

#endif  // COPPICE_AGENTS_MPI_TREE_COLLECTIVE_TABLE_H_
