// Reduce and Allreduce of types that begin at MPI_BOTTOM, which is a null pointer.
#include <cstdint>
#include <string>

#include "tests/mpi/collectives/cases.h"
#include "tests/mpi/collectives/forms.h"

namespace coppice::conformance {
namespace {

// Where this process's numbers lie from MPI_BOTTOM, and from what an operation is called with.
MPI_Aint own_places[2];

void AddNumbers(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    for (const MPI_Aint place : own_places) {
      const MPI_Aint from = reinterpret_cast<MPI_Aint>(in) + place;
      const MPI_Aint to = reinterpret_cast<MPI_Aint>(inout) + place;
      *reinterpret_cast<int64_t*>(to) += *reinterpret_cast<int64_t*>(from);
    }
  }
}

struct Apart {
  int64_t first;
  int64_t untouched;
  int64_t second;
};

// Of -1: an Allreduce.
void ReduceAtAddresses(const Shape& shape, Form form, int root, MPI_Datatype type, MPI_Op add,
                       Apart* own, Report* report) {
  *own = {shape.rank, -7, 10 * shape.rank};
  const bool has_result = root < 0 || shape.rank == root;
  const std::string what =
      NameOf(form, root < 0 ? "Allreduce" : "Reduce to " + std::to_string(root)) +
      " at addresses on " + shape.name;
  const uint64_t before = report->AlongTrees();
  int error = MPI_SUCCESS;
  if (root < 0) {
    error = AllreduceBy(form, MPI_IN_PLACE, MPI_BOTTOM, 1, type, add, shape.comm);
  } else if (has_result) {
    error = ReduceBy(form, MPI_IN_PLACE, MPI_BOTTOM, 1, type, add, root, shape.comm);
  } else {
    error = ReduceBy(form, MPI_BOTTOM, nullptr, 1, type, add, root, shape.comm);
  }
  ExpectTree(form, before, shape.size > 1, what, report);
#ifdef OPEN_MPI  // 4.1 itself gets a Reduce in place at MPI_BOTTOM wrong
  if (root >= 0 && report->AlongTrees() == before) return;
#endif
  const int64_t sum = int64_t{shape.size} * (shape.size - 1) / 2;
  const int64_t wanted = has_result ? sum : shape.rank;
  report->Expect(error == MPI_SUCCESS && own->first == wanted && own->second == 10 * wanted &&
                     own->untouched == -7,
                 what);
}

}  // namespace

void CompareReductionsAtAddresses(const Shape& shape, Report* report) {
  Apart own = {0, 0, 0};
  MPI_Get_address(&own.first, &own_places[0]);
  MPI_Get_address(&own.second, &own_places[1]);
  const int lengths[2] = {1, 1};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed(2, lengths, own_places, MPI_INT64_T, &type);
  MPI_Type_commit(&type);
  MPI_Op add = MPI_OP_NULL;
  MPI_Op_create(AddNumbers, 1, &add);
  for (const Form form : Forms()) {
    if (form != Form::kBlocking && !AreNonblockingOnesAlongTrees(*report)) continue;
    // MPIX_Reduce_init refuses MPI_BOTTOM for both.
    const int last_root = form == Form::kPersistent ? -1 : shape.size - 1;
    for (int root = -1; root <= last_root; ++root) {
      ReduceAtAddresses(shape, form, root, type, add, &own, report);
    }
  }
  MPI_Op_free(&add);
  MPI_Type_free(&type);
}

}  // namespace coppice::conformance
