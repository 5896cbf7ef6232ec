// A program that uses collectives all the time and prints what came out: steady ROUNDS [GATE
// [news]].
//
// In the middle rank 0 says "half" and waits until the file GATE is there, so that a test can take
// something away meanwhile. Communicators are made and freed before and after. All numbers are
// exact whatever the order of combination, so that the output is the same with any tree and without
// one.
//
// "news": goes on until the preloaded library has given up or replaced a tree.
#include <mpi.h>
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/mpi/tree_counts.h"

namespace {

struct Sums {
  uint64_t hash = 14695981039346656037U;
  void Add(double value) {
    auto bits = static_cast<uint64_t>(static_cast<int64_t>(value));
    for (int i = 0; i < 8; ++i, bits >>= 8U) hash = (hash ^ (bits & 0xffU)) * 1099511628211U;
  }
};

// One round of all four on a communicator, and of two nonblocking ones meanwhile.
void Round(MPI_Comm comm, int round, Sums* sums) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  std::vector<double> own(1 + round % 3 * 4000);
  std::vector<double> all(own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    own[i] = static_cast<double>((rank * 31 + round * 7 + i) % 1000);
  }
  const int count = static_cast<int>(own.size());
  const std::vector<double> mine = own;
  std::vector<double> most(own.size()), told = own;
  MPI_Request requests[2];
  MPI_Iallreduce(mine.data(), most.data(), count, MPI_DOUBLE, MPI_MAX, comm, &requests[0]);
  MPI_Allreduce(own.data(), all.data(), count, MPI_DOUBLE, MPI_SUM, comm);
  for (const double value : all) sums->Add(value);
  const int root = round % size;
  MPI_Ibcast(told.data(), count, MPI_DOUBLE, root, comm, &requests[1]);
  MPI_Bcast(own.data(), count, MPI_DOUBLE, root, comm);
  sums->Add(own[round % count]);
  MPI_Reduce(own.data(), all.data(), count, MPI_DOUBLE, MPI_MAX, root, comm);
  if (rank == root) sums->Add(all[count - 1]);
  MPI_Barrier(comm);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  sums->Add(most[count - 1]);
  sums->Add(told[count / 2]);
}

void WaitFor(const char* gate) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    std::printf("half\n");
    std::fflush(stdout);
    while (access(gate, F_OK) != 0) poll(nullptr, 0, 5);  // between two looks
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Trees that were given up or replaced, on all ranks together.
uint64_t News() {
  static auto* const read = coppice::FindTreeCounts();
  uint64_t counts[coppice::mpi::kTreeCounts] = {};
  if (read != nullptr) read(counts, coppice::mpi::kTreeCounts);
  uint64_t news = counts[coppice::mpi::kCountRevised] + counts[coppice::mpi::kCountGone];
  PMPI_Allreduce(MPI_IN_PLACE, &news, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return news;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Sums sums;
  MPI_Comm half = MPI_COMM_NULL;
  for (int round = 0; round < rounds; ++round) {
    if (argc > 2 && round == rounds / 2) WaitFor(argv[2]);
    if (round % 20 == 0) {
      if (half != MPI_COMM_NULL) MPI_Comm_free(&half);
      MPI_Comm_split(MPI_COMM_WORLD, (rank + round / 20) % 2, -rank, &half);
    }
    Round(MPI_COMM_WORLD, round, &sums);
    Round(half, round, &sums);
  }
  MPI_Comm_free(&half);
  constexpr double kPatienceSeconds = 120;
  double end = MPI_Wtime() + kPatienceSeconds;
  PMPI_Bcast(&end, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  while (argc > 3 && News() == 0) {
    int is_late = MPI_Wtime() > end ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &is_late, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (is_late != 0) break;
  }
  uint64_t all = 0;
  PMPI_Reduce(&sums.hash, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("result %016llx\n", static_cast<unsigned long long>(all));
  MPI_Finalize();
  return 0;
}
