// Makes communicators, uses each of them, and waits: many_communicators COUNT GATE. Rank 0 says
// "made" when all are there, and frees them when the file GATE is.
#include <mpi.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

// Lines of grids, blocks, reversed ones and duplicates, with at least two members each.
MPI_Comm Make(int number, int rank, int size) {
  MPI_Comm made = MPI_COMM_NULL;
  const int parts = 1 + number % 7;
  const int color = number % 2 == 0 ? rank % parts : rank / ((size + parts - 1) / parts);
  MPI_Comm_split(MPI_COMM_WORLD, size / parts >= 2 ? color : 0, number % 3 == 0 ? -rank : rank,
                 &made);
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int count = argc > 1 ? std::atoi(argv[1]) : 10;
  std::vector<MPI_Comm> comms(count);
  long wrong = 0;
  long leaders = 0;
  for (int i = 0; i < count; ++i) {
    comms[i] = Make(i, rank, size);
    int own = 0;
    int members = 0;
    MPI_Comm_rank(comms[i], &own);
    MPI_Comm_size(comms[i], &members);
    if (own == 0) ++leaders;
    for (int again = 0; again < 2; ++again) {
      int sum = 0;
      MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
      if (sum != members * (members - 1) / 2) ++wrong;
      MPI_Bcast(&sum, 1, MPI_INT, members - 1, comms[i]);
    }
  }
  long all[2] = {wrong, leaders};
  PMPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("made %ld wrong %ld\n", all[1], all[0]);
    std::fflush(stdout);
    while (argc > 2 && access(argv[2], F_OK) != 0) poll(nullptr, 0, 5);  // between two looks
  }
  PMPI_Barrier(MPI_COMM_WORLD);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
