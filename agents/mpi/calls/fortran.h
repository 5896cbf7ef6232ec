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
#ifndef COPPICE_AGENTS_MPI_CALLS_FORTRAN_H_
#define COPPICE_AGENTS_MPI_CALLS_FORTRAN_H_

#include <mpi.h>

#include <cstdint>

// NAME with PARAMETERS, a list in parentheses, does TRACE and calls pNAME with ARGUMENTS; under
// both names. Open MPI's are there in Fortran programs only, hence weak.
#define COPPICE_FORTRAN_TRACED(NAME, PARAMETERS, ARGUMENTS, TRACE) \
  __attribute__((weak)) void p##NAME##_ PARAMETERS;                \
  __attribute__((weak)) void p##NAME##_f08_ PARAMETERS;            \
  void NAME##_ PARAMETERS {                                        \
    TRACE;                                                         \
    p##NAME##_ ARGUMENTS;                                          \
  }                                                                \
  void NAME##_f08_ PARAMETERS {                                    \
    TRACE;                                                         \
    p##NAME##_f08_ ARGUMENTS;                                      \
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

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CALLS_FORTRAN_H_
