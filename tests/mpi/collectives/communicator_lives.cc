// What programs do with communicators of theirs from the beginning to the end:
//
//   communicator_lives ends first|last|pending COUNT
//       COUNT duplicates, each freed while an attribute of the program's is there, whose function
//       sums up over the communicator; it was set before the first collective, or after it, or
//       after it and with a receive under way at the last rank
//   communicator_lives lengths
//       a duplicate for nothing, short and long messages; and one for a long one alone
//   communicator_lives counts
//       rank 0 calls the functions with large counts, the others those with ints (MPI 4)
//
// Prints how many results were wrong.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

int rank = 0;
int size = 0;
long wrong = 0;
long farewells = 0;

void Check(bool holds) {
  if (!holds) ++wrong;
}

void SumUp(MPI_Comm comm, int count) {
  std::vector<int> own(count, rank), sums(count);
  MPI_Allreduce(own.data(), sums.data(), count, MPI_INT, MPI_SUM, comm);
  Check(sums == std::vector<int>(count, size * (size - 1) / 2));
}

int SayFarewell(MPI_Comm comm, int, void*, void*) {
  SumUp(comm, 1);
  MPI_Barrier(comm);
  ++farewells;
  return MPI_SUCCESS;
}

void End(const std::string& when, int count) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, SayFarewell, &key, nullptr);
  for (int i = 0; i < count; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (when == "first") MPI_Comm_set_attr(comm, key, nullptr);
    SumUp(comm, 1);
    if (when != "first") MPI_Comm_set_attr(comm, key, nullptr);
    MPI_Request receive = MPI_REQUEST_NULL;
    const bool is_pending = when == "pending" && rank == size - 1;
    if (is_pending) MPI_Irecv(nullptr, 0, MPI_INT, 0, 5, comm, &receive);
    if (when == "pending" && rank == 0) MPI_Send(nullptr, 0, MPI_INT, size - 1, 5, comm);
    // The latter waits for requests under way.
    if (i % 2 == 0 || when == "pending") {
      MPI_Comm_free(&comm);
    } else {
      MPI_Comm_disconnect(&comm);
    }
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    Check(farewells == i + 1);
  }
  MPI_Comm_free_keyval(&key);
}

void UseForLengths() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  for (const int count : {1, 2047, 2048, 100, 1 << 18, 2, 2049}) SumUp(comm, count);
  MPI_Comm_free(&comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  SumUp(comm, 1 << 18);
  MPI_Comm_free(&comm);
}

void MixCounts() {
#if MPI_VERSION >= 4
  for (int round = 0; round < 3; ++round) {
    int own = rank + round, sum = 0, greatest = -1;
    int numbers[10] = {};
    numbers[9] = rank == round % size ? 100 + round : 0;
    if (rank == 0) {
      MPI_Bcast_c(numbers, 10, MPI_INT, round % size, MPI_COMM_WORLD);
      MPI_Allreduce_c(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      MPI_Reduce_c(&own, &greatest, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    } else {
      MPI_Bcast(numbers, 10, MPI_INT, round % size, MPI_COMM_WORLD);
      MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      MPI_Reduce(&own, &greatest, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    }
    Check(numbers[9] == 100 + round && sum == size * (size - 1) / 2 + size * round);
    Check(greatest == (rank == 0 ? size - 1 + round : -1));
  }
  // More than an int holds, of no bytes: left to the MPI library by all.
  MPI_Datatype nothing = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  if (rank == 0) {
    MPI_Bcast_c(&wrong, MPI_Count{3} << 30U, nothing, 0, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(&wrong, 0, nothing, 0, MPI_COMM_WORLD);
  }
  MPI_Type_free(&nothing);
#endif  // MPI_VERSION >= 4
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "ends" && argc > 3) End(argv[2], std::atoi(argv[3]));
  if (what == "lengths") UseForLengths();
  if (what == "counts") MixCounts();
  PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("wrong %ld\n", wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
