// Makes communicators, uses each of them, and waits: many_communicators COUNT GATE. Rank 0 says
// "made" when all are there, how many of them have members on several hosts (COPPICE_HOST) and how
// often others were used, and frees them when the file GATE is.
#include <mpi.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
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

// Whether its members are on more hosts than one: others have no trees. By calls that none sees.
bool SpansHosts(MPI_Comm comm) {
  const char* const host = std::getenv("COPPICE_HOST");
  const long own = static_cast<long>(std::hash<std::string>()(host == nullptr ? "" : host) >> 2);
  long ends[2] = {own, -own};
  PMPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_LONG, MPI_MAX, comm);
  return ends[0] != -ends[1];
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
  long alone = 0;
  for (int i = 0; i < count; ++i) {
    comms[i] = Make(i, rank, size);
    int own = 0;
    int members = 0;
    MPI_Comm_rank(comms[i], &own);
    MPI_Comm_size(comms[i], &members);
    const bool spans = SpansHosts(comms[i]);
    if (spans && own == 0) ++leaders;
    for (int again = 0; again < 2; ++again) {
      int sum = 0;
      MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
      if (sum != members * (members - 1) / 2) ++wrong;
      MPI_Bcast(&sum, 1, MPI_INT, members - 1, comms[i]);
      if (!spans) alone += 2;
    }
  }
  long all[3] = {wrong, leaders, alone};
  PMPI_Allreduce(MPI_IN_PLACE, all, 3, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("made %ld wrong %ld alone %ld\n", all[1], all[0], all[2]);
    std::fflush(stdout);
    while (argc > 2 && access(argv[2], F_OK) != 0) poll(nullptr, 0, 5);  // between two looks
  }
  PMPI_Barrier(MPI_COMM_WORLD);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
