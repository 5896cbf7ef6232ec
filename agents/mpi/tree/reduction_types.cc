#include "agents/mpi/tree/reduction_types.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace coppice::mpi {
namespace {

// The groups of MPI 3.1, 5.9.2, and the pairs of 5.9.4.
enum Group : unsigned {
  kNone = 0,
  kCInteger = 1U << 0U,
  kFortranInteger = 1U << 1U,
  kFloatingPoint = 1U << 2U,
  kLogical = 1U << 3U,
  kComplex = 1U << 4U,
  kByte = 1U << 5U,
  kMultiLanguage = 1U << 6U,
  kPair = 1U << 7U,
};

// A chain of comparisons rather than a table: handles are addresses in Open MPI, known only after
// loading, and one name may stand for several types.
bool IsOneOf(MPI_Datatype type, std::initializer_list<MPI_Datatype> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

unsigned GroupOf(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return kNone;
  if (IsOneOf(type, {MPI_INT, MPI_LONG, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_UNSIGNED,
                     MPI_UNSIGNED_LONG, MPI_LONG_LONG_INT, MPI_UNSIGNED_LONG_LONG, MPI_SIGNED_CHAR,
                     MPI_UNSIGNED_CHAR, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T,
                     MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T})) {
    return kCInteger;
  }
  if (IsOneOf(type, {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION,
                     MPI_REAL4, MPI_REAL8})) {
    return kFloatingPoint;
  }
  if (IsOneOf(type, {MPI_BYTE})) return kByte;
  if (IsOneOf(type, {MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8})) {
    return kFortranInteger;
  }
  if (IsOneOf(type, {MPI_AINT, MPI_OFFSET, MPI_COUNT})) return kMultiLanguage;
  if (IsOneOf(type, {MPI_C_BOOL, MPI_CXX_BOOL, MPI_LOGICAL})) return kLogical;
  if (IsOneOf(type, {MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX,
                     MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX,
                     MPI_CXX_LONG_DOUBLE_COMPLEX})) {
    return kComplex;
  }
  if (IsOneOf(type, {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
                     MPI_LONG_DOUBLE_INT, MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_2INTEGER})) {
    return kPair;
  }
  return kNone;
}

// Groups that a predefined operation is defined for; kNone: none that a collective may use.
unsigned GroupsOf(MPI_Op op) {
  constexpr unsigned kInteger = kCInteger | kFortranInteger;
  if (op == MPI_MAX || op == MPI_MIN) return kInteger | kFloatingPoint | kMultiLanguage;
  if (op == MPI_SUM || op == MPI_PROD) {
    return kInteger | kFloatingPoint | kComplex | kMultiLanguage;
  }
  if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) return kCInteger | kLogical;
  if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) return kInteger | kByte | kMultiLanguage;
  if (op == MPI_MINLOC || op == MPI_MAXLOC) return kPair;
  return kNone;
}

bool IsPredefinedOp(MPI_Op op) {
  const MPI_Op all[] = {MPI_MAX,    MPI_MIN,    MPI_SUM,     MPI_PROD, MPI_LAND,
                        MPI_BAND,   MPI_LOR,    MPI_BOR,     MPI_LXOR, MPI_BXOR,
                        MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
  return std::find(std::begin(all), std::end(all), op) != std::end(all);
}

}  // namespace

Reduction ReductionOf(MPI_Op op, MPI_Datatype type) {
  if (op == MPI_OP_NULL || type == MPI_DATATYPE_NULL) return Reduction::kNotOurs;
  if (IsPredefinedOp(op)) {
    return (GroupsOf(op) & GroupOf(type)) != 0 ? Reduction::kAnyOrder : Reduction::kNotOurs;
  }
  int commutes = 0;
  if (PMPI_Op_commutative(op, &commutes) != MPI_SUCCESS) return Reduction::kNotOurs;
  return commutes != 0 ? Reduction::kAnyOrder : Reduction::kRankOrder;
}

}  // namespace coppice::mpi
