// The collectives under test in each of their forms, and what their results are to be.
#ifndef COPPICE_TESTS_MPI_COLLECTIVES_FORMS_H_
#define COPPICE_TESTS_MPI_COLLECTIVES_FORMS_H_

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agents/mpi/tree/collective_table.h"
#include "tests/mpi/collectives/report.h"

namespace coppice::conformance {

using Count = int;

enum class Form { kBlocking, kNonblocking, kPersistent };

// Those that the library under test carries along trees: others than blocking ones only Open MPI's
// component. In this order, as these go along trees that blocking ones have asked for.
const std::vector<Form>& Forms();
// Whether nonblocking ones certainly go along trees. Open MPI 4.1's own write beyond their memory
// for some types, use a communicator that was freed, and take messages of MPI_Comm_idup.
bool AreNonblockingOnesAlongTrees(const Report& report);
// As a word for reports.
std::string NameOf(Form form, const std::string& name);

// As the report's, after one of that form. Nonblocking ones may go natively where trees are over
// switches.
void ExpectTree(Form form, uint64_t before, bool needs_tree, const std::string& what,
                Report* report);

// MPI_Ibcast, or a persistent request that is not started yet; and so on.
#define COPPICE_START_OF(NAME, FORTRAN, ARGUMENTS, TRACE) \
  int Start##NAME(Form form, ARGUMENTS(COPPICE_PARAMETER), MPI_Request* request);
COPPICE_TREE_COLLECTIVES(COPPICE_START_OF)
#undef COPPICE_START_OF

// MPI_Bcast, or one that is started, and MPI_Wait; and so on.
#define COPPICE_FORM_OF(NAME, FORTRAN, ARGUMENTS, TRACE) \
  int NAME##By(Form form, ARGUMENTS(COPPICE_PARAMETER));
COPPICE_TREE_COLLECTIVES(COPPICE_FORM_OF)
#undef COPPICE_FORM_OF

// The MPI library's own, which no tree carries: PMPI_Bcast and so on below the preloaded library;
// of Open MPI's component, which carries these, too, of other functions of MPI with that result.
void NativeBcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
// Without MPI_IN_PLACE; `receive` is some elements at all ranks.
void NativeReduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  int root, MPI_Comm comm);
void NativeAllreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm);

}  // namespace coppice::conformance

#endif  // COPPICE_TESTS_MPI_COLLECTIVES_FORMS_H_
