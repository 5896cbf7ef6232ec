// All forms of the collectives that trees carry, from collective_table.h: of C, of C with large
// counts (MPI 4), and of Fortran where that does not reach C. Each is offered to the trees first
// and is the MPI library's own otherwise.
#include <mpi.h>

#include <climits>

#include "agents/mpi/calls/fortran.h"
#include "agents/mpi/core/session.h"
#include "agents/mpi/trace/trace.h"
#include "agents/mpi/trace/trace_collectives.h"
#include "agents/mpi/tree/collective_table.h"
#include "agents/mpi/tree/tree_collectives.h"

namespace coppice::mpi::calls {
namespace {

bool UsesTrees() {
  const Session& session = Session::Get();
  return session.IsUp() && session.settings().trees != TreesWhen::kNever;
}

}  // namespace

extern "C" {

#define COPPICE_C_CALL(NAME, FORTRAN, ARGUMENTS, TRACE)                      \
  int MPI_##NAME(ARGUMENTS(COPPICE_PARAMETER)) {                             \
    int error = MPI_SUCCESS;                                                 \
    if (!(UsesTrees() && Tree##NAME(ARGUMENTS(COPPICE_ARGUMENT), &error))) { \
      error = PMPI_##NAME(ARGUMENTS(COPPICE_ARGUMENT));                      \
    }                                                                        \
    return Traced(error, [&] { TRACE; });                                    \
  }
COPPICE_TREE_COLLECTIVES(COPPICE_C_CALL)

}  // extern "C"
}  // namespace coppice::mpi::calls

// Some members may call the forms with large counts while others call those with ints: all have to
// go one way.
//
// A count beyond an int is left to the MPI library by all: that of a reduction is the same at all
// members, and the others of such a broadcast have as many bytes, which are more than go along a
// tree. Nothing of it is traced.
#if MPI_VERSION >= 4

namespace coppice::mpi::large_calls {
namespace {

using Count = MPI_Count;

bool FitsInt(Count count) { return count >= 0 && count <= INT_MAX; }
template <typename Other>
bool FitsInt(const Other& /*no count*/) {
  return true;
}
template <typename... Arguments>
bool AllFitInt(const Arguments&... arguments) {
  return (FitsInt(arguments) && ...);
}

}  // namespace

extern "C" {

#define COPPICE_LARGE_CALL(NAME, FORTRAN, ARGUMENTS, TRACE)                                     \
  int MPI_##NAME##_c(ARGUMENTS(COPPICE_PARAMETER)) {                                            \
    if (AllFitInt(ARGUMENTS(COPPICE_ARGUMENT))) return MPI_##NAME(ARGUMENTS(COPPICE_ARGUMENT)); \
    return PMPI_##NAME##_c(ARGUMENTS(COPPICE_ARGUMENT));                                        \
  }
COPPICE_TREE_COLLECTIVES_OF_DATA(COPPICE_LARGE_CALL)

}  // extern "C"
}  // namespace coppice::mpi::large_calls

#endif  // MPI_VERSION >= 4

namespace coppice::mpi::calls {

#define COPPICE_FORTRAN_CALL(NAME, FORTRAN, ARGUMENTS, TRACE)                                 \
  COPPICE_FORTRAN_CALLED(mpi_##FORTRAN, (ARGUMENTS(COPPICE_FORTRAN_PARAMETER), Fint * error), \
                         MPI_##NAME(ARGUMENTS(COPPICE_FROM_FORTRAN)))

extern "C" {

COPPICE_TREE_COLLECTIVES_WITHOUT_DATA(COPPICE_FORTRAN_CALL)
#ifdef OPEN_MPI
COPPICE_TREE_COLLECTIVES_OF_DATA(COPPICE_FORTRAN_CALL)
#endif

}  // extern "C"
}  // namespace coppice::mpi::calls
