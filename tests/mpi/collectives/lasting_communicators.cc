// Makes more communicators than a library that takes one more for each could: lasting_communicators
// COUNT. Keeps all of them, uses each, and frees them, every second one while a receive is pending.
// Then makes and frees as many again, one after the other.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int rank = 0;
int size = 0;
long wrong = 0;

void Check(bool holds) {
  if (!holds) ++wrong;
}

void Use(MPI_Comm comm, int number) {
  int own = rank + number;
  int sum = 0;
  MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
  Check(sum == size * (size - 1) / 2 + size * number);
}

// The communicator goes when the receive is over.
void FreeWithPendingReceive(MPI_Comm* comm) {
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  int taken = -1;
  MPI_Request pending = MPI_REQUEST_NULL;
  MPI_Irecv(&taken, 1, MPI_INT, before, 5, *comm, &pending);
  MPI_Comm last = *comm;
  if (rank % 2 == 0) {
    MPI_Send(&rank, 1, MPI_INT, next, 5, last);
    MPI_Comm_free(comm);
  } else {
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Isend(&rank, 1, MPI_INT, next, 5, last, &sent);
    MPI_Comm_free(comm);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
  }
  MPI_Wait(&pending, MPI_STATUS_IGNORE);
  Check(taken == before);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<MPI_Comm> comms(argc > 1 ? std::atoi(argv[1]) : 10);
  for (size_t i = 0; i < comms.size(); ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    Use(comms[i], static_cast<int>(i));
  }
  for (size_t i = 0; i < comms.size(); ++i) Use(comms[i], static_cast<int>(comms.size() - i));
  for (size_t i = 0; i < comms.size(); ++i) {
    if (i % 2 == 0) {
      MPI_Comm_free(&comms[i]);
    } else {
      FreeWithPendingReceive(&comms[i]);
    }
  }
  for (size_t i = 0; i < comms.size(); ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    Use(comm, static_cast<int>(i));
    MPI_Comm_free(&comm);
  }
  PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("wrong %ld\n", wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
