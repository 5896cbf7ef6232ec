// Sums until it is told to end, whatever happens meanwhile: enduring STOP. Rank 0 says "round N"
// now and then, and at the end how many sums were wrong, whether all members had gone the same ways
// at all times, and how many had gone over switches. It ends when the file STOP is there.
#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/mpi/tree_counts.h"

namespace {

constexpr int kSaidEvery = 50, kComparedEvery = 10;
constexpr int kLengths[] = {2, 100, 3000};

using Counts = std::vector<uint64_t>;

Counts CountsNow() {
  static auto* const read = coppice::FindTreeCounts();
  Counts counts(coppice::mpi::kTreeCounts);
  if (read != nullptr) read(counts.data(), coppice::mpi::kTreeCounts);
  return counts;
}

// Whether all members have carried as many collectives out along trees, over switches, natively.
bool AreAlike(const Counts& counts) {
  using namespace coppice::mpi;
  uint64_t least[] = {counts[kCountAllreduce], counts[kCountOverSwitches], counts[kCountNative]};
  uint64_t most[] = {least[0], least[1], least[2]};
  PMPI_Allreduce(MPI_IN_PLACE, least, 3, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
  PMPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  return least[0] == most[0] && least[1] == most[1] && least[2] == most[2];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* const stop = argc > 1 ? argv[1] : "";
  int64_t wrong = 0, different = 0;
  for (int round = 0;; ++round) {
    const int length = kLengths[round % 3];
    std::vector<int64_t> own(static_cast<size_t>(length)), sums(own.size());
    for (int i = 0; i < length; ++i) own[i] = int64_t{round} * 1000 + rank * 7 + i;
    own[0] = rank == 0 && access(stop, F_OK) == 0 ? 1 : 0;
    MPI_Allreduce(own.data(), sums.data(), length, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 1; i < length; ++i) {
      const int64_t right =
          (int64_t{round} * 1000 + i) * ranks + 7 * int64_t{ranks} * (ranks - 1) / 2;
      if (sums[i] != right) {
        ++wrong;
        break;
      }
    }
    if (round % kComparedEvery == 0 && !AreAlike(CountsNow())) ++different;
    if (rank == 0 && round % kSaidEvery == 0) {
      std::printf("round %d over switches %llu\n", round,
                  static_cast<unsigned long long>(CountsNow()[coppice::mpi::kCountOverSwitches]));
      std::fflush(stdout);
    }
    if (sums[0] != 0) break;
  }
  PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("end: wrong %lld different %lld\n", static_cast<long long>(wrong),
                static_cast<long long>(different));
  }
  MPI_Finalize();
  return wrong + different != 0;
}
