// Barrier: no rank leaves before the last has come. Watched by a counter in memory that the ranks
// share: they run on one machine here.
#include <atomic>
#include <cstdint>
#include <string>

#include "tests/mpi/collectives/cases.h"

namespace coppice::conformance {
namespace {

// Something to do for a while, longer on some ranks than on others.
uint64_t Dawdle(int times) {
  uint64_t x = 1;
  for (int i = 0; i < times * 20000; ++i) x = x * 6364136223846793005U + 1442695040888963407U;
  return x;
}

}  // namespace

void CompareBarrier(const Shape& shape, Report* report) {
  int64_t* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate_shared(shape.rank == 0 ? 64 : 0, 1, MPI_INFO_NULL, shape.comm, &memory, &window);
  MPI_Aint bytes = 0;
  int unit = 0;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &memory);
  if (shape.rank == 0) *memory = 0;
  PMPI_Barrier(shape.comm);
  std::atomic_ref<int64_t> entered(*memory);
  uint64_t sum = 0;
  for (int round = 1; round <= 20; ++round) {
    sum += Dawdle((shape.rank * 7 + round * 3) % 11);
    entered.fetch_add(1);
    const uint64_t before = report->AlongTrees();
    const int error = MPI_Barrier(shape.comm);
    report->ExpectTree(before, shape.size > 1, "Barrier on " + shape.name);
    report->Expect(error == MPI_SUCCESS && entered.load() >= int64_t{round} * shape.size,
                   "Barrier on " + shape.name + " left too early");
  }
  report->Expect(sum != 0, "the work between barriers");
  MPI_Win_free(&window);
}

}  // namespace coppice::conformance
