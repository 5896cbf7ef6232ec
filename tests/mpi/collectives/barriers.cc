// Barrier: no rank leaves before the last has come.
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "tests/mpi/collectives/cases.h"
#include "tests/mpi/collectives/forms.h"

namespace coppice::conformance {
namespace {

// Something to do for a while, longer on some ranks than on others.
uint64_t Dawdle(int times) {
  uint64_t x = 1;
  for (int i = 0; i < times * 20000; ++i) x = x * 6364136223846793005U + 1442695040888963407U;
  return x;
}

int64_t Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void CompareBarriers(const Shape& shape, Form form, Report* report) {
  constexpr int kRounds = 20;
  const std::string name = NameOf(form, "Barrier on ") + shape.name;
  std::vector<int64_t> last_entry(kRounds), first_exit(kRounds);
  uint64_t sum = 0;
  PMPI_Barrier(shape.comm);
  for (int round = 0; round < kRounds; ++round) {
    sum += Dawdle((shape.rank * 7 + (round + 1) * 3) % 11);
    const uint64_t before = report->AlongTrees();
    last_entry[round] = Now();
    const int error = BarrierBy(form, shape.comm);
    first_exit[round] = Now();
    ExpectTree(form, before, shape.size > 1, name, report);
    report->Expect(error == MPI_SUCCESS, name);
  }
  PMPI_Allreduce(MPI_IN_PLACE, last_entry.data(), kRounds, MPI_INT64_T, MPI_MAX, shape.comm);
  PMPI_Allreduce(MPI_IN_PLACE, first_exit.data(), kRounds, MPI_INT64_T, MPI_MIN, shape.comm);
  for (int round = 0; round < kRounds; ++round) {
    report->Expect(first_exit[round] >= last_entry[round], name + " left too early");
  }
  report->Expect(sum != 0, "the work between barriers");
}

}  // namespace

// All ranks are on this machine, in whichever namespaces: they have one clock.
void CompareBarrier(const Shape& shape, Report* report) {
  for (const Form form : Forms()) CompareBarriers(shape, form, report);
}

}  // namespace coppice::conformance
