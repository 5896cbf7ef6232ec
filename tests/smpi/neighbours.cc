// Sparse neighbourhood exchange: every rank sends what a file says, as the halo of an unstructured
// mesh or the vector of a sparse matrix does.
//
//   neighbours FILE ROUNDS      FILE: Matrix Market, coordinate integer general; entry (i, j) is
//                               the bytes that rank i - 1 sends to rank j - 1 in a round
#include <mpi.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "tests/smpi/exchange.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 3) Refuse("usage: neighbours FILE ROUNDS");
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string path = argv[1];
  std::ifstream file(path);
  file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');  // the banner
  int rows = 0, columns = 0, entries = 0;
  file >> rows >> columns >> entries;
  if (rows != size || columns != size) Refuse(path + ": not as many rows as there are ranks");
  std::vector<Message> sent, received;
  for (int i = 0, from = 0, to = 0, bytes = 0; i < entries; ++i) {
    file >> from >> to >> bytes;
    if (!file) Refuse(path + ": ends before its last entry");
    if (from - 1 == rank) sent.push_back({to - 1, bytes});
    if (to - 1 == rank) received.push_back({from - 1, bytes});
  }
  TimeRounds(sent, received, std::atoi(argv[2]));
  MPI_Finalize();
  return 0;
}
