// Predefined datatypes and operations with data for them. Data is such that the result of every
// operation is exact whatever the order of combination, so that results are compared bit by bit.
#ifndef COPPICE_TESTS_MPI_COLLECTIVES_TYPED_DATA_H_
#define COPPICE_TESTS_MPI_COLLECTIVES_TYPED_DATA_H_

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace coppice::conformance {

// What an element is in memory.
enum class Kind {
  kSigned,
  kUnsigned,
  kFloat,
  kDouble,
  kLongDouble,
  kFloatComplex,
  kDoubleComplex,
  kLongDoubleComplex,
  kLogical,
  kByte,
  kPair,
};

struct NamedType {
  const char* name;
  MPI_Datatype type;
  Kind kind;
  // Operations of MPI 3.1, 5.9.2 and 5.9.4 that are defined on it.
  std::vector<MPI_Op> ops;
  // Bytes of an element: all, those of its value (pairs: of the first value), and of a pair where
  // the index lies and how long it is.
  int extent;
  int value_bytes;
  int index_offset = 0;
  int index_bytes = 0;
};

// All that this MPI library has.
std::vector<NamedType> NamedTypes();
const char* NameOf(MPI_Op op);

// `count` elements of `rank`'s for a reduction by `op`; another `variant` is other data.
std::vector<char> Fill(const NamedType& type, MPI_Op op, int count, int rank, uint64_t variant);

// Whether all values are equal bit by bit; bytes between them do not count.
bool AreEqual(const NamedType& type, const std::vector<char>& a, const std::vector<char>& b);

}  // namespace coppice::conformance

#endif  // COPPICE_TESTS_MPI_COLLECTIVES_TYPED_DATA_H_
