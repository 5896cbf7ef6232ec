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

#include <type_traits>

#ifdef OPEN_MPI
extern "C" {
extern __attribute__((weak)) int mpi_fortran_bottom_;
extern __attribute__((weak)) int mpi_fortran_in_place_;
}
#endif

// NAME with PARAMETERS, a list in parentheses, calls pNAME with ARGUMENTS, and does TRACE unless
// that fails; under both names. Open MPI's are there in Fortran programs only, hence weak.
#define COPPICE_FORTRAN_TRACED(NAME, PARAMETERS, ARGUMENTS, TRACE) \
  COPPICE_FORTRAN_TRACED_AS(NAME##_, PARAMETERS, ARGUMENTS, TRACE) \
  COPPICE_FORTRAN_TRACED_AS(NAME##_f08_, PARAMETERS, ARGUMENTS, TRACE)
#define COPPICE_FORTRAN_TRACED_AS(NAME, PARAMETERS, ARGUMENTS, TRACE) \
  __attribute__((weak)) void p##NAME PARAMETERS;                      \
  void NAME PARAMETERS {                                              \
    if (!IsTracing()) return p##NAME ARGUMENTS;                       \
    TracedInFortran(                                                  \
        &error, [&] { p##NAME ARGUMENTS; }, [&] { TRACE; });          \
  }

// Of a table (collective_table.h): TRACE as a function of C's arguments, and what Fortran calls,
// blocking and not.
#define COPPICE_TRACE_OF(NAME, FORTRAN, ARGUMENTS, TRACE) \
  void Trace_##FORTRAN(ARGUMENTS(COPPICE_TRACED_PARAMETER)) { TRACE; }
#define COPPICE_FORTRAN_BLOCKING(NAME, FORTRAN, ARGUMENTS, TRACE)                             \
  COPPICE_FORTRAN_TRACED(mpi_##FORTRAN, (ARGUMENTS(COPPICE_FORTRAN_PARAMETER), Fint * error), \
                         (ARGUMENTS(COPPICE_ARGUMENT), error),                                \
                         Trace_##FORTRAN(ARGUMENTS(COPPICE_FROM_FORTRAN)))
#define COPPICE_FORTRAN_NONBLOCKING(NAME, FORTRAN, ARGUMENTS, TRACE)                           \
  COPPICE_FORTRAN_TRACED(mpi_i##FORTRAN,                                                       \
                         (ARGUMENTS(COPPICE_FORTRAN_PARAMETER), Fint * request, Fint * error), \
                         (ARGUMENTS(COPPICE_ARGUMENT), request, error),                        \
                         Trace_##FORTRAN(ARGUMENTS(COPPICE_FROM_FORTRAN)))
#define COPPICE_TRACED_PARAMETER(TYPE, NAME) [[maybe_unused]] TYPE NAME

// For the arguments of a table: as Fortran passes them, and as C has them.
#define COPPICE_FORTRAN_PARAMETER(TYPE, NAME) Passed<TYPE> NAME
#define COPPICE_FROM_FORTRAN(TYPE, NAME) FromFortran<TYPE>(NAME)

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

template <typename Type>
constexpr bool kIsBuffer = std::is_same_v<Type, void*> || std::is_same_v<Type, const void*>;

// What Fortran passes for an argument of C: the buffer itself, or the address of integers.
template <typename Type>
using Passed = std::conditional_t<kIsBuffer<Type>, void*, Fint*>;

template <typename Type>
Type FromFortran(Passed<Type> passed) {
  if constexpr (std::is_same_v<Type, const int*>) {
    return passed;
#ifdef OPEN_MPI
  } else if constexpr (kIsBuffer<Type>) {
    if (passed == &mpi_fortran_bottom_) return MPI_BOTTOM;
    if (passed == &mpi_fortran_in_place_) return MPI_IN_PLACE;
    return passed;
  } else if constexpr (std::is_same_v<Type, MPI_Datatype>) {
    return PMPI_Type_f2c(*passed);
  } else if constexpr (std::is_same_v<Type, MPI_Op>) {
    return PMPI_Op_f2c(*passed);
  } else if constexpr (std::is_same_v<Type, MPI_Comm>) {
    return PMPI_Comm_f2c(*passed);
  } else if constexpr (std::is_same_v<Type, MPI_Group>) {
    return PMPI_Group_f2c(*passed);
  } else if constexpr (std::is_same_v<Type, MPI_Info>) {
    return PMPI_Info_f2c(*passed);
#endif
  } else {
    return *passed;
  }
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
