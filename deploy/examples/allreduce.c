// allreduce BYTES TIMES: sums an array of 8-byte integers over all ranks, again and again. Rank 0
// prints the median time in microseconds, of the slowest rank each time, and how many ranks found a
// wrong sum; it ends when its input does, so that one can look at what runs.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int count = argc == 3 ? atoi(argv[1]) / 8 : 0, times = argc == 3 ? atoi(argv[2]) : 0;
  if (count < 1 || times < 1) {
    fprintf(stderr, "usage: allreduce BYTES TIMES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int rank, ranks, is_wrong = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int64_t* own = malloc(count * sizeof *own);
  int64_t* sum = malloc(count * sizeof *sum);
  double* took = malloc(times * sizeof *took);
  double* slowest = malloc(times * sizeof *slowest);
  for (int round = 0; round < times; ++round) {
    for (int i = 0; i < count; ++i) own[i] = (int64_t)rank + i + round;
    const double begin = MPI_Wtime();
    MPI_Allreduce(own, sum, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    took[round] = (MPI_Wtime() - begin) * 1e6;
    for (int i = 0; i < count; ++i) {
      is_wrong |= sum[i] != (int64_t)ranks * (ranks - 1) / 2 + (int64_t)ranks * (i + round);
    }
  }
  MPI_Reduce(took, slowest, times, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&is_wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    qsort(slowest, times, sizeof *slowest, compare);
    printf("median %.1f us, wrong %d\n", slowest[times / 2], wrong);
    fflush(stdout);
    while (getchar() != EOF) continue;
  }
  free(own);
  free(sum);
  free(took);
  free(slowest);
  MPI_Finalize();
  return wrong != 0;
}
