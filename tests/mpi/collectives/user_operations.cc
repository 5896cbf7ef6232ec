// Reduce and Allreduce with operations of the program's own, on types of its own.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/mpi/collectives/cases.h"
#include "tests/mpi/collectives/forms.h"

namespace coppice::conformance {
namespace {

constexpr char kUntouchedOperand = 0x33;

// Joins neighbouring intervals of ranks; whoever joins others breaks it. Not commutative.
struct Interval {
  int32_t first;
  int32_t last;
  int32_t is_broken;
};

void Join(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* const lower = static_cast<Interval*>(in);
  auto* const upper = static_cast<Interval*>(inout);
  for (int i = 0; i < *count; ++i) {
    const bool fit = lower[i].last + 1 == upper[i].first;
    upper[i] = {lower[i].first, upper[i].last,
                fit && !lower[i].is_broken && !upper[i].is_broken ? 0 : 1};
  }
}

// Products of 2 x 2 matrices modulo 2^32. Not commutative.
void Multiply(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* a = static_cast<uint32_t*>(in);
  auto* b = static_cast<uint32_t*>(inout);
  for (int i = 0; i < *count; ++i, a += 4, b += 4) {
    const uint32_t product[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                                 a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
    std::memcpy(b, product, sizeof(product));
  }
}

// A weight between two gaps; the type begins before its origin, and elements lie apart by more than
// they hold. Commutative.
constexpr int kBefore = 8;
constexpr int kApart = 40;

void AddWeights(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(*type, &lb, &extent);
  for (int i = 0; i < *count; ++i) {
    char* const from = static_cast<char*>(in) + i * extent;
    char* const to = static_cast<char*>(inout) + i * extent;
    int64_t a[2];
    int64_t b[2];
    std::memcpy(&a[0], from - kBefore, 8);
    std::memcpy(&a[1], from + kBefore, 8);
    std::memcpy(&b[0], to - kBefore, 8);
    std::memcpy(&b[1], to + kBefore, 8);
    b[0] += a[0];
    b[1] = b[1] > a[1] ? b[1] : a[1];
    std::memcpy(to - kBefore, &b[0], 8);
    std::memcpy(to + kBefore, &b[1], 8);
  }
}

// Two numbers at -8 and 8 of its origin; `extent` may be negative.
MPI_Datatype WeightType(MPI_Aint extent) {
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {-kBefore, kBefore};
  const MPI_Datatype types[2] = {MPI_INT64_T, MPI_INT64_T};
  MPI_Datatype plain = MPI_DATATYPE_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths, places, types, &plain);
  MPI_Type_create_resized(plain, -kBefore, extent, &type);
  MPI_Type_free(&plain);
  MPI_Type_commit(&type);
  return type;
}

struct UserCase {
  const Shape& shape;
  std::string name;
  MPI_Datatype type;
  MPI_Op op;
  bool needs_tree;  // whatever the tree; a rank order needs an ordered one
  int count;
  size_t origin;  // of the buffer's first element in its memory
  std::vector<char> own;
  std::vector<char> empty;
};

void CompareAllreduce(const UserCase& c, bool in_place, Form form, Report* report) {
  std::vector<char> native = in_place ? c.own : c.empty;
  std::vector<char> ours = native;
  const char* const own = c.own.data() + c.origin;
  const void* const send = in_place ? MPI_IN_PLACE : own;
  NativeAllreduce(own, native.data() + c.origin, c.count, c.type, c.op, c.shape.comm);
  const std::string what = NameOf(form, in_place ? "Allreduce in place, " : "Allreduce, ") +
                           c.name + " x" + std::to_string(c.count) + " on " + c.shape.name;
  const uint64_t before = report->AlongTrees();
  AllreduceBy(form, send, ours.data() + c.origin, c.count, c.type, c.op, c.shape.comm);
  if (c.needs_tree) ExpectTree(form, before, c.shape.size > 1 && c.count > 0, what, report);
  report->Expect(native == ours, what);
}

void CompareReduce(const UserCase& c, int root, bool in_place, Form form, Report* report) {
  const bool is_root = c.shape.rank == root;
  std::vector<char> native = in_place && is_root ? c.own : c.empty;
  std::vector<char> ours = native;
  ours.reserve(1);  // MPIX_Reduce_init refuses two null pointers
  const char* const own = c.own.data() + c.origin;
  const void* const send = in_place && is_root ? MPI_IN_PLACE : own;
  NativeReduce(own, native.data() + c.origin, c.count, c.type, c.op, root, c.shape.comm);
  const std::string what = NameOf(form, in_place ? "Reduce in place, " : "Reduce, ") + c.name +
                           " x" + std::to_string(c.count) + " to " + std::to_string(root) + " on " +
                           c.shape.name;
  const uint64_t before = report->AlongTrees();
  ReduceBy(form, send, ours.data() + c.origin, c.count, c.type, c.op, root, c.shape.comm);
  if (c.needs_tree) ExpectTree(form, before, c.shape.size > 1 && c.count > 0, what, report);
  report->Expect(ours == (is_root ? native : c.empty), what);
}

void CompareAll(const UserCase& c, Report* report) {
  const bool may_all = c.needs_tree && AreNonblockingOnesAlongTrees(*report);
  for (const Form form : Forms()) {
    if (form != Form::kBlocking && !may_all) continue;
    CompareAllreduce(c, false, form, report);
    CompareAllreduce(c, true, form, report);
    for (const int root : Roots(c.shape, *report)) {
      CompareReduce(c, root, false, form, report);
      if (MayReduceInPlace(c.count, root, c.needs_tree, *report)) {
        CompareReduce(c, root, true, form, report);
      }
    }
  }
}

void CompareIntervals(const Shape& shape, int count, MPI_Op join, Report* report) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(3, MPI_INT32_T, &type);
  MPI_Type_commit(&type);
  UserCase c = {shape, "intervals", type, join, report->options().has_ordered_trees,
                count, 0,           {},   {}};
  c.own.resize(count * sizeof(Interval));
  c.empty.assign(c.own.size(), kUntouchedOperand);
  for (int i = 0; i < count; ++i) {
    const Interval own = {shape.rank, shape.rank, 0};
    std::memcpy(&c.own[i * sizeof(own)], &own, sizeof(own));
  }
  CompareAll(c, report);
  std::vector<Interval> joined(count);
  MPI_Allreduce(c.own.data(), joined.data(), count, type, join, shape.comm);
  for (const Interval& one : joined) {
    report->Expect(one.first == 0 && one.last == shape.size - 1 && one.is_broken == 0,
                   "ranks in order on " + shape.name);
  }
  MPI_Type_free(&type);
}

void CompareMatrices(const Shape& shape, int count, MPI_Op multiply, Report* report) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(4, MPI_UINT32_T, &type);
  MPI_Type_commit(&type);
  UserCase c = {shape, "matrices", type, multiply, report->options().has_ordered_trees,
                count, 0,          {},   {}};
  c.own.resize(static_cast<size_t>(count) * 16);
  c.empty.assign(c.own.size(), kUntouchedOperand);
  for (size_t i = 0; i < c.own.size(); ++i) {
    c.own[i] = static_cast<char>((i + 3) * 7919 + shape.rank * 104729U);
  }
  CompareAll(c, report);
  MPI_Type_free(&type);
}

void CompareWeights(const Shape& shape, int count, MPI_Aint extent, MPI_Op add, Report* report) {
  MPI_Datatype type = WeightType(extent);
  const size_t apart = static_cast<size_t>(extent < 0 ? -extent : extent);
  const size_t bytes = apart * count + 4 * kBefore;
  UserCase c = {shape, "weights apart by " + std::to_string(extent), type, add, true, count, 0, {},
                {}};
  c.origin = extent < 0 ? bytes - 2 * kBefore : kBefore;
  c.own.assign(bytes, kUntouchedOperand);
  c.empty.assign(bytes, kUntouchedOperand);
  for (int i = 0; i < count; ++i) {
    char* const at = c.own.data() + c.origin + i * extent;
    const int64_t values[2] = {shape.rank * 1000 + i, (shape.rank * 7919 + i * 31) % 1009};
    std::memcpy(at - kBefore, &values[0], 8);
    std::memcpy(at + kBefore, &values[1], 8);
  }
  CompareAll(c, report);
  MPI_Type_free(&type);
}

// Pairs of a kind of Fortran's; commutative.
void AddPairs(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* const from = static_cast<double*>(in);
  auto* const to = static_cast<double*>(inout);
  for (int i = 0; i < 2 * *count; ++i) to[i] += from[i];
}

void ComparePairs(const Shape& shape, int count, MPI_Op add, Report* report) {
  MPI_Datatype kind = MPI_DATATYPE_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_f90_real(15, 307, &kind);
  MPI_Type_contiguous(2, kind, &type);
  MPI_Type_commit(&type);
  UserCase c = {shape, "pairs", type, add, true, count, 0, {}, {}};
  c.own.resize(static_cast<size_t>(count) * 2 * sizeof(double));
  c.empty.assign(c.own.size(), kUntouchedOperand);
  for (int i = 0; i < 2 * count; ++i) {
    const double own = shape.rank * 1000 + i;
    std::memcpy(&c.own[i * sizeof(own)], &own, sizeof(own));
  }
  CompareAll(c, report);
  MPI_Type_free(&type);
}

}  // namespace

void CompareUserOperations(const Shape& shape, Report* report) {
  MPI_Op join = MPI_OP_NULL;
  MPI_Op multiply = MPI_OP_NULL;
  MPI_Op add = MPI_OP_NULL;
  MPI_Op add_pairs = MPI_OP_NULL;
  MPI_Op_create(AddPairs, 1, &add_pairs);
  MPI_Op_create(Join, 0, &join);
  MPI_Op_create(Multiply, 0, &multiply);
  MPI_Op_create(AddWeights, 1, &add);
  for (const int count : {0, 1, 3, 20001}) {
    CompareIntervals(shape, count, join, report);
    CompareMatrices(shape, count, multiply, report);
    CompareWeights(shape, count, kApart, add, report);
    ComparePairs(shape, count, add_pairs, report);
  }
  MPI_Op_free(&join);
  MPI_Op_free(&multiply);
  MPI_Op_free(&add);
  MPI_Op_free(&add_pairs);
}

}  // namespace coppice::conformance
