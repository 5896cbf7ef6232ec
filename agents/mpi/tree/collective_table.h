// The collectives that trees carry. This table says of each its name, its arguments and what a
// trace has of it; from it come the functions of C and of Fortran (calls/tree_calls.cc), the
// counters (tree_counts.h), and which cases tests/mpi/collectives has to have. tree_collectives.cc
// says which arguments MPI refuses and how each goes along a tree.
//
// A collective's arguments are a macro that hands type and name of each to A. `Count` is int, or
// MPI_Count in MPI 4's forms with large counts.
#ifndef COPPICE_AGENTS_MPI_TREE_COLLECTIVE_TABLE_H_
#define COPPICE_AGENTS_MPI_TREE_COLLECTIVE_TABLE_H_

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

#endif  // COPPICE_AGENTS_MPI_TREE_COLLECTIVE_TABLE_H_
