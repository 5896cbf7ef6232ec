// ping_pong BYTES ROUNDS, 2 ranks: prints the microseconds of a round there and back: the lowest
// tenth of what it was in the blocks that the rounds are measured in, so that those blocks do not
// count in which the machine did something else.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kBlock = 1000;  // rounds; below a millisecond on one host

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3 || size != 2) {
    std::fprintf(stderr, "usage: ping_pong BYTES ROUNDS, on 2 ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int bytes = std::atoi(argv[1]), blocks = std::max(std::atoi(argv[2]) / kBlock, 10);
  std::vector<char> ball(bytes);
  std::vector<double> seconds;
  for (int block = 0; block < blocks; ++block) {
    const double begin = MPI_Wtime();
    for (int round = 0; round < kBlock; ++round) {
      if (rank == 0) MPI_Send(ball.data(), bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(ball.data(), bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(ball.data(), bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    seconds.push_back(MPI_Wtime() - begin);
  }
  std::sort(seconds.begin(), seconds.end());
  if (rank == 0) std::printf("%.6f\n", 1e6 * seconds[blocks / 10] / kBlock);
  return MPI_Finalize();
}
