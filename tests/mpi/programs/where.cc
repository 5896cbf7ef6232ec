// Each rank says where it is: "rank R host NAME", one line each, printed by rank 0. Then a ring of
// 1,000 bytes, so that ranks on different hosts have talked.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  constexpr int kBytes = 256;
  char name[kBytes] = {};
  gethostname(name, kBytes - 1);
  std::vector<char> all(static_cast<size_t>(size) * kBytes);
  MPI_Gather(name, kBytes, MPI_CHAR, all.data(), kBytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < size; ++r) {
    std::printf("rank %d host %s\n", r, &all[static_cast<size_t>(r) * kBytes]);
  }
  std::vector<char> out(1000), in(1000);
  MPI_Sendrecv(out.data(), 1000, MPI_CHAR, (rank + 1) % size, 0, in.data(), 1000, MPI_CHAR,
               (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return MPI_Finalize();
}
