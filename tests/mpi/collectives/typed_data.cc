#include "tests/mpi/collectives/typed_data.h"

#include <complex>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace coppice::conformance {
namespace {

constexpr int kLongDoubleBytes = 10;  // of x87; the rest of its 16 is not part of the value

using Ops = std::vector<MPI_Op>;

Ops Together(std::initializer_list<Ops> lists) {
  Ops all;
  for (const Ops& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

const Ops& Order() {
  static const Ops ops = {MPI_MAX, MPI_MIN};
  return ops;
}
const Ops& Arithmetic() {
  static const Ops ops = {MPI_SUM, MPI_PROD};
  return ops;
}
const Ops& Logical() {
  static const Ops ops = {MPI_LAND, MPI_LOR, MPI_LXOR};
  return ops;
}
const Ops& Bits() {
  static const Ops ops = {MPI_BAND, MPI_BOR, MPI_BXOR};
  return ops;
}
const Ops& Places() {
  static const Ops ops = {MPI_MINLOC, MPI_MAXLOC};
  return ops;
}

void AddIntegers(std::vector<NamedType>* types) {
  const Ops all = Together({Order(), Arithmetic(), Logical(), Bits()});
  const auto add = [&](const char* name, MPI_Datatype type, Kind kind, int bytes) {
    types->push_back({name, type, kind, all, bytes, bytes});
  };
  add("INT", MPI_INT, Kind::kSigned, sizeof(int));
  add("LONG", MPI_LONG, Kind::kSigned, sizeof(long));
  add("SHORT", MPI_SHORT, Kind::kSigned, sizeof(short));
  add("LONG_LONG_INT", MPI_LONG_LONG_INT, Kind::kSigned, sizeof(long long));
  add("SIGNED_CHAR", MPI_SIGNED_CHAR, Kind::kSigned, 1);
  add("UNSIGNED_CHAR", MPI_UNSIGNED_CHAR, Kind::kUnsigned, 1);
  add("UNSIGNED_SHORT", MPI_UNSIGNED_SHORT, Kind::kUnsigned, sizeof(short));
  add("UNSIGNED", MPI_UNSIGNED, Kind::kUnsigned, sizeof(int));
  add("UNSIGNED_LONG", MPI_UNSIGNED_LONG, Kind::kUnsigned, sizeof(long));
  add("UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG, Kind::kUnsigned, sizeof(long long));
  add("INT8_T", MPI_INT8_T, Kind::kSigned, 1);
  add("INT16_T", MPI_INT16_T, Kind::kSigned, 2);
  add("INT32_T", MPI_INT32_T, Kind::kSigned, 4);
  add("INT64_T", MPI_INT64_T, Kind::kSigned, 8);
  add("UINT8_T", MPI_UINT8_T, Kind::kUnsigned, 1);
  add("UINT16_T", MPI_UINT16_T, Kind::kUnsigned, 2);
  add("UINT32_T", MPI_UINT32_T, Kind::kUnsigned, 4);
  add("UINT64_T", MPI_UINT64_T, Kind::kUnsigned, 8);
  const Ops no_logical = Together({Order(), Arithmetic(), Bits()});
  types->push_back({"INTEGER", MPI_INTEGER, Kind::kSigned, no_logical, 4, 4});
  types->push_back({"INTEGER1", MPI_INTEGER1, Kind::kSigned, no_logical, 1, 1});
  types->push_back({"INTEGER2", MPI_INTEGER2, Kind::kSigned, no_logical, 2, 2});
  types->push_back({"INTEGER4", MPI_INTEGER4, Kind::kSigned, no_logical, 4, 4});
  types->push_back({"INTEGER8", MPI_INTEGER8, Kind::kSigned, no_logical, 8, 8});
  types->push_back(
      {"AINT", MPI_AINT, Kind::kSigned, no_logical, sizeof(MPI_Aint), sizeof(MPI_Aint)});
  types->push_back(
      {"OFFSET", MPI_OFFSET, Kind::kSigned, no_logical, sizeof(MPI_Offset), sizeof(MPI_Offset)});
  types->push_back(
      {"COUNT", MPI_COUNT, Kind::kSigned, no_logical, sizeof(MPI_Count), sizeof(MPI_Count)});
  types->push_back({"BYTE", MPI_BYTE, Kind::kByte, Bits(), 1, 1});
  types->push_back({"C_BOOL", MPI_C_BOOL, Kind::kLogical, Logical(), 1, 1});
  types->push_back({"CXX_BOOL", MPI_CXX_BOOL, Kind::kLogical, Logical(), 1, 1});
  types->push_back({"LOGICAL", MPI_LOGICAL, Kind::kLogical, Logical(), 4, 4});
}

void AddFloating(std::vector<NamedType>* types) {
  const Ops real = Together({Order(), Arithmetic()});
  types->push_back({"FLOAT", MPI_FLOAT, Kind::kFloat, real, 4, 4});
  types->push_back({"DOUBLE", MPI_DOUBLE, Kind::kDouble, real, 8, 8});
  types->push_back({"LONG_DOUBLE", MPI_LONG_DOUBLE, Kind::kLongDouble, real, 16, kLongDoubleBytes});
  types->push_back({"REAL", MPI_REAL, Kind::kFloat, real, 4, 4});
  types->push_back({"DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, Kind::kDouble, real, 8, 8});
  types->push_back({"REAL4", MPI_REAL4, Kind::kFloat, real, 4, 4});
  types->push_back({"REAL8", MPI_REAL8, Kind::kDouble, real, 8, 8});
  types->push_back({"COMPLEX", MPI_COMPLEX, Kind::kFloatComplex, Arithmetic(), 8, 8});
  types->push_back(
      {"CXX_FLOAT_COMPLEX", MPI_CXX_FLOAT_COMPLEX, Kind::kFloatComplex, Arithmetic(), 8, 8});
  types->push_back(
      {"CXX_DOUBLE_COMPLEX", MPI_CXX_DOUBLE_COMPLEX, Kind::kDoubleComplex, Arithmetic(), 16, 16});
  types->push_back({"CXX_LONG_DOUBLE_COMPLEX", MPI_CXX_LONG_DOUBLE_COMPLEX,
                    Kind::kLongDoubleComplex, Arithmetic(), 32, kLongDoubleBytes});
  types->push_back(
      {"C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, Kind::kFloatComplex, Arithmetic(), 8, 8});
  types->push_back(
      {"C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, Kind::kDoubleComplex, Arithmetic(), 16, 16});
  types->push_back(
      {"DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX, Kind::kDoubleComplex, Arithmetic(), 16, 16});
  types->push_back({"C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX, Kind::kLongDoubleComplex,
                    Arithmetic(), 32, kLongDoubleBytes});
}

template <typename Value, typename Index>
struct Pair {
  Value value;
  Index index;
};

template <typename Value, typename Index>
NamedType PairType(const char* name, MPI_Datatype type, int value_bytes) {
  using Both = Pair<Value, Index>;
  return {name,
          type,
          Kind::kPair,
          Places(),
          sizeof(Both),
          value_bytes,
          static_cast<int>(offsetof(Both, index)),
          static_cast<int>(sizeof(Index))};
}

void AddPairs(std::vector<NamedType>* types) {
  types->push_back(PairType<float, int>("FLOAT_INT", MPI_FLOAT_INT, 4));
  types->push_back(PairType<double, int>("DOUBLE_INT", MPI_DOUBLE_INT, 8));
  types->push_back(PairType<long, int>("LONG_INT", MPI_LONG_INT, 8));
  types->push_back(PairType<int, int>("2INT", MPI_2INT, 4));
  types->push_back(PairType<short, int>("SHORT_INT", MPI_SHORT_INT, 2));
  types->push_back(
      PairType<long double, int>("LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT, kLongDoubleBytes));
  types->push_back(PairType<float, float>("2REAL", MPI_2REAL, 4));
  types->push_back(PairType<int, int>("2INTEGER", MPI_2INTEGER, 4));
  types->push_back(PairType<double, double>("2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION, 8));
}

uint64_t Mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

template <typename Value>
void Put(char* at, Value value) {
  std::memcpy(at, &value, sizeof(value));
}

// Products and sums of many of them are exact in every format.
int Small(MPI_Op op, uint64_t bits) {
  if (op == MPI_PROD) return bits % 16 == 0 ? 2 : (bits % 16 == 1 ? -1 : 1);
  return static_cast<int>(bits % 17) - 8;
}

template <typename Real>
std::complex<Real> SmallComplex(MPI_Op op, uint64_t bits) {
  if (op != MPI_PROD) return {Real(Small(op, bits)), Real(Small(op, bits >> 8U))};
  constexpr int kUnits[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  return {Real(kUnits[bits % 4][0]), Real(kUnits[bits % 4][1])};
}

void PutInteger(char* at, int bytes, int64_t value) { std::memcpy(at, &value, bytes); }

void PutPair(const NamedType& type, char* at, uint64_t bits, int rank) {
  const int value = static_cast<int>(bits % 5);  // with ties
  const bool is_real = type.type != MPI_LONG_INT && type.type != MPI_2INT &&
                       type.type != MPI_2INTEGER && type.type != MPI_SHORT_INT;
  if (!is_real) PutInteger(at, type.value_bytes, value);
  if (is_real && type.value_bytes == 4) Put<float>(at, value);
  if (is_real && type.value_bytes == 8) Put<double>(at, value);
  if (is_real && type.value_bytes == kLongDoubleBytes) Put<long double>(at, value);
  char* const index = at + type.index_offset;
  if (type.type == MPI_2REAL) {
    Put<float>(index, rank);
  } else if (type.type == MPI_2DOUBLE_PRECISION) {
    Put<double>(index, rank);
  } else {
    Put<int>(index, rank);
  }
}

void PutElement(const NamedType& type, MPI_Op op, char* at, uint64_t bits, int rank) {
  const bool is_bitwise = op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR;
  switch (type.kind) {
    case Kind::kUnsigned:
      // Open MPI's sums of short types stop at the highest value in vectors, and wrap behind them.
      if (op == MPI_SUM) {
        PutInteger(at, type.value_bytes, std::abs(Small(op, bits)));
        return;
      }
      [[fallthrough]];
    case Kind::kSigned:
      PutInteger(at, type.value_bytes, is_bitwise ? static_cast<int64_t>(bits) : Small(op, bits));
      return;
    case Kind::kByte:
      PutInteger(at, 1, static_cast<int64_t>(bits));
      return;
    case Kind::kLogical:
      PutInteger(at, type.value_bytes, static_cast<int64_t>(bits % 2));
      return;
    case Kind::kFloat:
      Put<float>(at, Small(op, bits));
      return;
    case Kind::kDouble:
      Put<double>(at, Small(op, bits));
      return;
    case Kind::kLongDouble:
      Put<long double>(at, Small(op, bits));
      return;
    case Kind::kFloatComplex:
      Put(at, SmallComplex<float>(op, bits));
      return;
    case Kind::kDoubleComplex:
      Put(at, SmallComplex<double>(op, bits));
      return;
    case Kind::kLongDoubleComplex:
      Put(at, SmallComplex<long double>(op, bits));
      return;
    case Kind::kPair:
      PutPair(type, at, bits, rank);
      return;
  }
}

}  // namespace

std::vector<NamedType> NamedTypes() {
  std::vector<NamedType> types;
  AddIntegers(&types);
  AddFloating(&types);
  AddPairs(&types);
  std::erase_if(types, [](const NamedType& type) { return type.type == MPI_DATATYPE_NULL; });
  return types;
}

const char* NameOf(MPI_Op op) {
  const std::pair<MPI_Op, const char*> names[] = {
      {MPI_MAX, "MAX"},   {MPI_MIN, "MIN"},   {MPI_SUM, "SUM"},       {MPI_PROD, "PROD"},
      {MPI_LAND, "LAND"}, {MPI_LOR, "LOR"},   {MPI_LXOR, "LXOR"},     {MPI_BAND, "BAND"},
      {MPI_BOR, "BOR"},   {MPI_BXOR, "BXOR"}, {MPI_MINLOC, "MINLOC"}, {MPI_MAXLOC, "MAXLOC"}};
  for (const auto& [known, name] : names) {
    if (known == op) return name;
  }
  return "user's";
}

std::vector<char> Fill(const NamedType& type, MPI_Op op, int count, int rank, uint64_t variant) {
  std::vector<char> data(static_cast<size_t>(count) * type.extent);
  for (int i = 0; i < count; ++i) {
    const uint64_t bits = Mix(variant * 0x10001U + static_cast<uint64_t>(rank) * 0x100000U + i);
    PutElement(type, op, &data[static_cast<size_t>(i) * type.extent], bits, rank);
  }
  return data;
}

namespace {

// By value: what sign a zero has depends on the order in which complex numbers are multiplied.
template <typename Real>
bool AreEqualReals(const std::vector<char>& a, const std::vector<char>& b) {
  for (size_t at = 0; at < a.size(); at += sizeof(Real)) {
    Real x;
    Real y;
    std::memcpy(&x, &a[at], sizeof(x));
    std::memcpy(&y, &b[at], sizeof(y));
    if (!(x == y)) return false;
  }
  return true;
}

}  // namespace

bool AreEqual(const NamedType& type, const std::vector<char>& a, const std::vector<char>& b) {
  if (a.size() != b.size()) return false;
  if (type.kind == Kind::kFloatComplex) return AreEqualReals<float>(a, b);
  if (type.kind == Kind::kDoubleComplex) return AreEqualReals<double>(a, b);
  if (type.kind == Kind::kLongDoubleComplex) return AreEqualReals<long double>(a, b);
  if (type.value_bytes == type.extent) return a == b;
  for (size_t at = 0; at < a.size(); at += type.extent) {
    if (std::memcmp(&a[at], &b[at], type.value_bytes) != 0) return false;
    const size_t index = at + type.index_offset;
    if (std::memcmp(&a[index], &b[index], type.index_bytes) != 0) return false;
  }
  return true;
}

}  // namespace coppice::conformance
