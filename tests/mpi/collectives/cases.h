// The cases of the conformance program: each calls MPI_Xxx, which the library under test carries
// out, and the MPI library's own (forms.h), with the same arguments, and compares. All are
// collective over the shape's communicator.
#ifndef COPPICE_TESTS_MPI_COLLECTIVES_CASES_H_
#define COPPICE_TESTS_MPI_COLLECTIVES_CASES_H_

#include "agents/mpi/tree/collective_table.h"
#include "tests/mpi/collectives/report.h"
#include "tests/mpi/collectives/shapes.h"

namespace coppice::conformance {

// CompareBarrier, CompareBcast, ...: one for each collective that trees carry.
#define COPPICE_CASE(NAME, ...) void Compare##NAME(const Shape& shape, Report* report);
COPPICE_TREE_COLLECTIVES(COPPICE_CASE)
#undef COPPICE_CASE
// Sums whose rounding depends on the order: near the native result, and always the same.
void CompareRounding(const Shape& shape, Report* report);
// Operations of the user's, commutative and not, on types of the user's.
void CompareUserOperations(const Shape& shape, Report* report);
// The same at MPI_BOTTOM.
void CompareReductionsAtAddresses(const Shape& shape, Report* report);
// What MPI says about arguments that are none.
void CompareErrors(const Shape& shape, Report* report);
// Messages and nonblocking collectives of the program's that are under way meanwhile.
void CompareAmongOthers(const Shape& shape, Report* report);
// Nonblocking collectives, several at once, and what the program does meanwhile. They are ones of
// trees where forms.h says so, and the MPI library's own else.
void CompareNonblocking(const Shape& shape, Report* report);
// The same where no blocking one was before.
void CompareNonblockingAlone(const Shape& shape, Report* report);
// Threads that use communicators of their own at once, and make and free more.
void CompareThreads(Report* report);
// Intercommunicators have no tree.
void CompareIntercommunicator(Report* report);

// Roots to try: the last and another one; all in the full run.
std::vector<int> Roots(const Shape& shape, const Report& report);

// What an operation on a type is tried with on a communicator.
struct Trials {
  std::vector<int> counts;
  std::vector<int> roots;
};
// Extent::kInTurns: one of `counts` and one root, others from case to case and from shape to shape.
Trials InTurns(const std::vector<int>& counts, const Shape& shape, int number);

// MPICH 4.0's own Reduce ends the process if a long message is reduced in place to another rank
// than 0: only where it certainly goes along a tree.
bool MayReduceInPlace(int count, int root, bool needs_tree, const Report& report);

}  // namespace coppice::conformance

#endif  // COPPICE_TESTS_MPI_COLLECTIVES_CASES_H_
