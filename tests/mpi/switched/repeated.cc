// Repeats one collective: repeated allreduce|flat|barrier BYTES TIMES. Rank 0 prints the median of
// its time in microseconds, over all ranks the slowest of each, and whether all results were right.
// "flat": an Allreduce in which each rank sends to rank 0 and hears from it.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace {

constexpr int kWarmUps = 10;

// Of `count` integers, in the round of that number.
bool IsRight(const std::vector<int64_t>& sums, int round, int ranks) {
  for (size_t i = 0; i < sums.size(); ++i) {
    const int64_t each = static_cast<int64_t>(i) + round;
    if (sums[i] != each * ranks + int64_t{ranks} * (ranks - 1) / 2) return false;
  }
  return true;
}

void FlatAllreduce(const std::vector<int64_t>& own, std::vector<int64_t>* sums, int rank,
                   int ranks) {
  const int count = static_cast<int>(own.size());
  if (rank != 0) {
    MPI_Send(own.data(), count, MPI_INT64_T, 0, 1, MPI_COMM_WORLD);
    MPI_Recv(sums->data(), count, MPI_INT64_T, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  std::vector<int64_t> one(own.size());
  *sums = own;
  for (int from = 1; from < ranks; ++from) {
    MPI_Recv(one.data(), count, MPI_INT64_T, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::transform(one.begin(), one.end(), sums->begin(), sums->begin(), std::plus<>());
  }
  for (int to = 1; to < ranks; ++to) {
    MPI_Send(sums->data(), count, MPI_INT64_T, to, 2, MPI_COMM_WORLD);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: repeated allreduce|flat|barrier BYTES TIMES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const bool is_barrier = std::strcmp(argv[1], "barrier") == 0;
  const bool is_flat = std::strcmp(argv[1], "flat") == 0;
  const size_t count = std::strtoull(argv[2], nullptr, 10) / sizeof(int64_t);
  const int times = std::atoi(argv[3]);
  int rank = 0, ranks = 1, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<int64_t> own(count), sums(count);
  std::vector<double> took;
  for (int round = -kWarmUps; round < times; ++round) {
    for (size_t i = 0; i < count; ++i) own[i] = static_cast<int64_t>(i) + round + rank;
    const double begin = MPI_Wtime();
    if (is_barrier) {
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      if (is_flat) {
        FlatAllreduce(own, &sums, rank, ranks);
      } else {
        MPI_Allreduce(own.data(), sums.data(), static_cast<int>(count), MPI_INT64_T, MPI_SUM,
                      MPI_COMM_WORLD);
      }
      if (!IsRight(sums, round, ranks)) ++wrong;
    }
    if (round >= 0) took.push_back((MPI_Wtime() - begin) * 1e6);
  }
  std::vector<double> slowest(took.size());
  PMPI_Reduce(took.data(), slowest.data(), static_cast<int>(took.size()), MPI_DOUBLE, MPI_MAX, 0,
              MPI_COMM_WORLD);
  int all_wrong = 0;
  PMPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && !slowest.empty()) {
    std::nth_element(slowest.begin(), slowest.begin() + times / 2, slowest.end());
    std::printf("median %.2f us, wrong %d\n", slowest[slowest.size() / 2], all_wrong);
  }
  MPI_Finalize();
  return all_wrong != 0;
}
