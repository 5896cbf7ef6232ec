// A broadcast that one member has less room for, whose error is to be returned: errors
// world|duplicate late|early|starved, with 2 ranks. It goes over the world or over a duplicate of
// it, whose handler only counts; the handler of the world ends the program in the second case.
//
//   late   rank 0 sends when rank 1 waits in PMPI_Waitany, if it ever does (along trees), and at
//          once if not (natively)
//   early  rank 1 begins when rank 0 is through
//
// Or barriers for which the preloaded library has no memory (scripted_coppice.cc):
//
//   starved  the first collective of one communicator, and a later one of another
//
// Rank 1 says on stdout what came of it: "class CLASS handled TIMES times", and both ranks go on to
// sum up over another duplicate. Status 3: a sum is wrong, or rank 0 fails.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/mpi/tree_counts.h"

namespace {

constexpr int kToken = 7;
bool is_awaited = false;  // rank 0 waits to hear of it
int handled = 0;

void Count(MPI_Comm*, int*, ...) { ++handled; }

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "errors: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

void SayToken(int to) { PMPI_Send(nullptr, 0, MPI_BYTE, to, kToken, MPI_COMM_WORLD); }
void AwaitToken(int from) {
  PMPI_Recv(nullptr, 0, MPI_BYTE, from, kToken, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void SumUp(MPI_Comm comm) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  Check(sum == 2, "a sum is another one");
}

// Returns the class of the error.
int Broadcast(MPI_Comm comm, int rank, bool is_late, bool has_trees) {
  constexpr int kNumbers = 100;
  int numbers[kNumbers] = {};
  if (is_late && has_trees && rank == 0) AwaitToken(1);
  if (!is_late && rank == 1) AwaitToken(0);
  is_awaited = is_late && has_trees && rank == 1;
  const int error = MPI_Bcast(numbers, rank == 0 ? kNumbers : kNumbers / 2, MPI_INT, 0, comm);
  if (!is_late && rank == 0) SayToken(1);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(error, &error_class);
  return error_class;
}

int Starved(MPI_Comm comm) {
  setenv("COPPICE_TEST_SCRIPT_STARVED", "1", 1);
  const int error = MPI_Barrier(comm);
  unsetenv("COPPICE_TEST_SCRIPT_STARVED");
  int error_class = MPI_SUCCESS;
  MPI_Error_class(error, &error_class);
  return error_class;
}

// Of both.
int Starve(MPI_Comm comm) {
  MPI_Comm later = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &later);  // with its handler
  const int first = Starved(comm);
  SumUp(later);
  const int second = Starved(later);
  MPI_Comm_free(&later);
  return first == second ? first : MPI_SUCCESS;
}

}  // namespace

// Stands before the MPI library's own, for the preloaded library.
extern "C" int PMPI_Waitany(int count, MPI_Request requests[], int* ready, MPI_Status* status) {
  using Function = int (*)(int, MPI_Request*, int*, MPI_Status*);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "PMPI_Waitany"));
  if (is_awaited) SayToken(0);
  is_awaited = false;
  return next(count, requests, ready, status);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bool is_world = argc > 1 && std::strcmp(argv[1], "world") == 0;
  const bool is_late = argc > 2 && std::strcmp(argv[2], "late") == 0;
  const bool is_starved = argc > 2 && std::strcmp(argv[2], "starved") == 0;
  const bool has_trees = coppice::FindTreeCounts() != nullptr;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comm = MPI_COMM_WORLD, other = MPI_COMM_NULL;
  if (!is_world) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Errhandler count = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(Count, &count);
  MPI_Comm_set_errhandler(comm, count);
  int error_class = MPI_SUCCESS;
  if (is_starved) {
    error_class = Starve(comm);
  } else {
    SumUp(comm);
    error_class = Broadcast(comm, rank, is_late, has_trees);
    Check(rank == 1 || error_class == MPI_SUCCESS, "rank 0 fails");
  }
  if (rank == 1) {
    const char* const name = error_class == MPI_ERR_TRUNCATE ? "truncate"
                             : error_class == MPI_ERR_NO_MEM ? "no memory"
                                                             : "another";
    std::printf("class %s handled %d times\n", name, handled);
    std::fflush(stdout);
  }
  SumUp(other);
  MPI_Comm_free(&other);
  if (!is_world) MPI_Comm_free(&comm);
  MPI_Errhandler_free(&count);
  return MPI_Finalize();
}
