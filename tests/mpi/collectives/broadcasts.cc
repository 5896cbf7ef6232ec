// Bcast of named and of derived types; other types at the root than elsewhere.
#include <cstring>
#include <string>
#include <vector>

#include "tests/mpi/collectives/cases.h"
#include "tests/mpi/collectives/forms.h"
#include "tests/mpi/collectives/typed_data.h"

namespace coppice::conformance {
namespace {

constexpr char kUntouched = 0x77;

struct Bcast {
  std::string name;
  // At the root and elsewhere; the same numbers in the same order, perhaps laid out otherwise.
  MPI_Datatype root_type;
  int root_count;
  MPI_Datatype type;
  int count;
  size_t memory;      // that any of the layouts takes
  size_t origin = 0;  // of the buffer in it
  bool is_empty = false;
};

std::vector<char> Memory(const Bcast& bcast, const Shape& shape, int root) {
  std::vector<char> memory(bcast.memory, kUntouched);
  if (shape.rank != root) return memory;
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<char>(i * 31 + root * 7 + 1);
  return memory;
}

void Compare(const Shape& shape, const Bcast& bcast, const std::vector<int>& roots,
             Report* report) {
  for (const int root : roots) {
    const bool is_root = shape.rank == root;
    const MPI_Datatype type = is_root ? bcast.root_type : bcast.type;
    const int count = is_root ? bcast.root_count : bcast.count;
    std::vector<char> native = Memory(bcast, shape, root);
    const std::vector<char> own = native;
    NativeBcast(native.data() + bcast.origin, count, type, root, shape.comm);
    for (const Form form : Forms()) {
      std::vector<char> ours = own;
      const std::string what = NameOf(form, "Bcast of ") + bcast.name + " x" +
                               std::to_string(count) + " from " + std::to_string(root) + " on " +
                               shape.name;
      const uint64_t before = report->AlongTrees();
      const int error = BcastBy(form, ours.data() + bcast.origin, count, type, root, shape.comm);
      ExpectTree(form, before, shape.size > 1 && !bcast.is_empty, what, report);
      report->Expect(error == MPI_SUCCESS && native == ours, what);
    }
  }
}

void Compare(const Shape& shape, const Bcast& bcast, Report* report) {
  Compare(shape, bcast, Roots(shape, *report), report);
}

MPI_Datatype Committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

void CompareNamed(const Shape& shape, Report* report) {
  for (const int count : {0, 13, 70001}) {
    const size_t n = count;
    Compare(shape, {"INT", MPI_INT, count, MPI_INT, count, n * 4, 0, n == 0}, report);
    Compare(shape, {"CHAR", MPI_CHAR, count, MPI_CHAR, count, n, 0, n == 0}, report);
    Compare(shape, {"DOUBLE_INT", MPI_DOUBLE_INT, count, MPI_DOUBLE_INT, count, n * 16, 0, n == 0},
            report);
    Compare(shape, {"WCHAR", MPI_WCHAR, count, MPI_WCHAR, count, n * sizeof(wchar_t), 0, n == 0},
            report);
  }
  const Extent extent = report->options().extent;
  if (extent == Extent::kSample) return;
  int number = 0;
  for (const NamedType& type : NamedTypes()) {
    Trials trials = {{0, 1, 5, 30011}, Roots(shape, *report)};
    if (extent == Extent::kInTurns) trials = InTurns(trials.counts, shape, number++);
    for (const int count : trials.counts) {
      const size_t bytes = static_cast<size_t>(count) * type.extent;
      Compare(shape, {type.name, type.type, count, type.type, count, bytes, 0, count == 0},
              trials.roots, report);
    }
  }
}

void CompareDerived(const Shape& shape, int blocks, Report* report) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_vector(blocks, 2, 3, MPI_INT, &made);
  MPI_Datatype vector = Committed(made);
  const size_t memory = static_cast<size_t>(blocks) * 12 + 64;
  const int ints = blocks * 2;
  Compare(shape, {"vector", vector, 1, vector, 1, memory}, report);
  Compare(shape, {"vector to INTs", vector, 1, MPI_INT, ints, memory}, report);
  Compare(shape, {"INTs to vector", MPI_INT, ints, vector, 1, memory}, report);
  // Backwards in memory: no gaps, and yet not sent as it lies there.
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {4, 0};
  MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &made);
  MPI_Datatype swapped = Committed(made);
  Compare(shape, {"swapped to INTs", swapped, blocks, MPI_INT, ints, memory}, report);
  Compare(shape, {"INTs to swapped", MPI_INT, ints, swapped, blocks, memory}, report);
  // Before its origin, one element after the other downwards.
  const MPI_Aint below[2] = {-8, 4};
  MPI_Type_create_hindexed(2, lengths, below, MPI_INT, &made);
  MPI_Datatype resized = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(made, -8, -16, &resized);
  MPI_Type_free(&made);
  resized = Committed(resized);
  const size_t deep = static_cast<size_t>(blocks) * 24 + 64;
  Compare(shape, {"downwards", resized, blocks, resized, blocks, deep, deep - 32}, report);
  Compare(shape, {"downwards to INTs", resized, blocks, MPI_INT, ints, deep, deep - 32 - ints * 4U},
          report);
  MPI_Type_free(&vector);
  MPI_Type_free(&swapped);
  MPI_Type_free(&resized);
}

// Of Fortran's kinds: predefined, and nobody's to free, though MPI makes them when they are asked
// for.
void CompareKinds(const Shape& shape, Report* report) {
  MPI_Datatype kinds[3];
  MPI_Type_create_f90_real(15, 307, &kinds[0]);
  MPI_Type_create_f90_complex(6, 37, &kinds[1]);
  MPI_Type_create_f90_integer(9, &kinds[2]);
  for (const MPI_Datatype kind : kinds) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_dup(kind, &made);
    MPI_Datatype same = Committed(made);
    MPI_Type_contiguous(3, same, &made);
    MPI_Datatype three = Committed(made);
    constexpr size_t kBytes = 8 * 39;
    Compare(shape, {"kind", kind, 39, kind, 39, kBytes}, report);
    Compare(shape, {"same kind", same, 39, kind, 39, kBytes}, report);
    Compare(shape, {"three of a kind", three, 13, three, 13, kBytes}, report);
    MPI_Type_free(&same);
    MPI_Type_free(&three);
  }
}

// Two places that only their addresses tell.
void CompareAddresses(const Shape& shape, Report* report) {
  int numbers[2];
  double real = 0;
  const int lengths[2] = {2, 1};
  MPI_Aint places[2];
  MPI_Get_address(numbers, &places[0]);
  MPI_Get_address(&real, &places[1]);
  const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths, places, types, &type);
  MPI_Type_commit(&type);
  const int root = shape.size - 1;
  for (const Form form : Forms()) {
    numbers[0] = shape.rank;
    numbers[1] = -1;
    real = shape.rank * 0.5;
    BcastBy(form, MPI_BOTTOM, 1, type, root, shape.comm);
    report->Expect(numbers[0] == root && numbers[1] == -1 && real == root * 0.5,
                   NameOf(form, "Bcast at addresses on ") + shape.name);
  }
  MPI_Type_free(&type);
}

}  // namespace

void CompareBcast(const Shape& shape, Report* report) {
  CompareNamed(shape, report);
  for (const int blocks : {9, 40000}) CompareDerived(shape, blocks, report);
  CompareKinds(shape, report);
  CompareAddresses(shape, report);
}

}  // namespace coppice::conformance
