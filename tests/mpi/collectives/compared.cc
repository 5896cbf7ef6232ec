// A collective as the library carries it out against the MPI library's own, in turns:
//
//   compared allreduce|bcast|reduce|barrier BYTES TIMES
//
// Calls go through MPI's functions first, 100 of them, so that what is measured is known; then each
// way by turns, with a native barrier before each. Rank 0 prints medians, in microseconds, of the
// slowest rank's time.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int kWarmUps = 100;

struct Data {
  std::vector<double> own, result;
};

void Call(const std::string& name, Data* data, bool natively) {
  const int count = static_cast<int>(data->own.size());
  double* const own = data->own.data();
  double* const result = data->result.data();
  if (name == "allreduce") {
    (natively ? PMPI_Allreduce : MPI_Allreduce)(own, result, count, MPI_DOUBLE, MPI_SUM,
                                                MPI_COMM_WORLD);
  } else if (name == "reduce") {
    (natively ? PMPI_Reduce : MPI_Reduce)(own, result, count, MPI_DOUBLE, MPI_SUM, 0,
                                          MPI_COMM_WORLD);
  } else if (name == "bcast") {
    (natively ? PMPI_Bcast : MPI_Bcast)(own, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  } else {
    (natively ? PMPI_Barrier : MPI_Barrier)(MPI_COMM_WORLD);
  }
}

// At rank 0, of the slowest rank's.
double MedianUs(const std::vector<double>& took) {
  std::vector<double> slowest(took.size());
  PMPI_Reduce(took.data(), slowest.data(), static_cast<int>(took.size()), MPI_DOUBLE, MPI_MAX, 0,
              MPI_COMM_WORLD);
  const auto middle = slowest.begin() + static_cast<std::ptrdiff_t>(slowest.size() / 2);
  std::nth_element(slowest.begin(), middle, slowest.end());
  return *middle * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4 || std::atoi(argv[3]) < 1) {
    std::fprintf(stderr, "usage: compared allreduce|bcast|reduce|barrier BYTES TIMES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const size_t count = std::strtoull(argv[2], nullptr, 10) / sizeof(double);
  Data data = {std::vector<double>(count, rank), std::vector<double>(count)};
  for (int call = 0; call < kWarmUps; ++call) {
    PMPI_Barrier(MPI_COMM_WORLD);
    Call(argv[1], &data, false);
  }
  std::vector<double> took[2];
  for (int call = 0; call < 2 * std::atoi(argv[3]); ++call) {
    const bool natively = call % 4 == 1 || call % 4 == 2;
    PMPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    Call(argv[1], &data, natively);
    took[natively].push_back(MPI_Wtime() - begin);
  }
  const double chosen = MedianUs(took[0]), native = MedianUs(took[1]);
  if (rank == 0) std::printf("chosen %.2f us, native %.2f us\n", chosen, native);
  MPI_Finalize();
  return 0;
}
