// Calls of Fortran programs. What reaches the functions of C, which interpose already:
//
//                                    mpif.h, use mpi    use mpi_f08
//   MPICH     with a buffer          yes                yes
//             without                yes                no
//   Open MPI                         no                 no
//
// The others are caught here by their own names, mpi_send_ and mpi_send_f08_. They take addresses
// of integers, the last of which, the error, may be null in mpi_f08. Functions that are only traced
// are handed on to Open MPI's own for Fortran, so that statuses and special addresses stay its
// business; the others go to the functions of C.
//
// MPICH's handles of C and of Fortran are the same integers. Some addresses mean something, as
// MPI_IN_PLACE: of Fortran's common blocks with Open MPI, of the variables of mpi_f08 with MPICH;
// declared weak where they are asked for, as they are null in programs of C.
#ifndef COPPICE_AGENTS_MPI_CALLS_FORTRAN_H_
#define COPPICE_AGENTS_MPI_CALLS_FORTRAN_H_

#include <mpi.h>

#include <cstdint>

// NAME with PARAMETERS, a list in parentheses, calls pNAME with ARGUMENTS, and does TRACE unless
// that fails; under both names. Open MPI's are there in Fortran programs only, hence weak.
#define COPPICE_FORTRAN_TRACED(NAME, PARAMETERS, ARGUMENTS, TRACE)  \
  __attribute__((weak)) void p##NAME##_ PARAMETERS;                 \
  __attribute__((weak)) void p##NAME##_f08_ PARAMETERS;             \
  void NAME##_ PARAMETERS {                                         \
    if (!IsTracing()) return p##NAME##_ ARGUMENTS;                  \
    TracedInFortran(                                                \
        &error, [&] { p##NAME##_ ARGUMENTS; }, [&] { TRACE; });     \
  }                                                                 \
  void NAME##_f08_ PARAMETERS {                                     \
    if (!IsTracing()) return p##NAME##_f08_ ARGUMENTS;              \
    TracedInFortran(                                                \
        &error, [&] { p##NAME##_f08_ ARGUMENTS; }, [&] { TRACE; }); \
  }

// NAME as CALL of C says, whose value is the error; under both names where neither reaches C.
#ifdef OPEN_MPI
#define COPPICE_FORTRAN_CALLED(NAME, PARAMETERS, CALL) \
  void NAME##_ PARAMETERS { SetError(error, CALL); }   \
  void NAME##_f08_ PARAMETERS { SetError(error, CALL); }
#else
#define COPPICE_FORTRAN_CALLED(NAME, PARAMETERS, CALL) \
  void NAME##_f08_ PARAMETERS { SetError(error, CALL); }
#endif

namespace coppice::mpi {

using Fint = MPI_Fint;

inline void SetError(Fint* error, int value) {
  if (error != nullptr) *error = value;
}

// Calls `call`, which sets **error, and `trace` if that is none. *error, which may be null in
// mpi_f08, is another place meanwhile.
template <typename Call, typename Trace>
void TracedInFortran(Fint** error, const Call& call, const Trace& trace) {
  Fint* const told = *error;
  Fint own = MPI_SUCCESS;
  *error = &own;
  call();
  SetError(told, own);
  if (own == MPI_SUCCESS) trace();
}

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CALLS_FORTRAN_H_
