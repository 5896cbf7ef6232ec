// Halo exchange of a stencil on a grid of ranks, the first dimension fastest, without wrap-around.
//
//   stencil EXTENTS POINTS CELLS ROUNDS [PATTERN]     stencil 8x8x8 27 64 10 pattern.mtx
//
// Each rank has CELLS cells of 8 bytes along every dimension. POINTS says who is a neighbour: 5 and
// 7 those across a face of two and three dimensions, 9 and 27 those across edges and corners too.
//
//     9 points    +---+---+---+     to a neighbour that differs in k of d dimensions go the cells
//     in 2-D      | 1 | n | 1 |     along the border: 8 CELLS^(d - k) bytes
//                 +---+---+---+
//                 | n |   | n |     n = CELLS
//                 +---+---+---+
//                 | 1 | n | 1 |
//                 +---+---+---+
//
// PATTERN, if given, is written with what is sent.
#include <mpi.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/smpi/exchange.h"

namespace {

constexpr int kCellBytes = 8;

std::vector<int> ParseExtents(const std::string& text) {
  std::vector<int> extents;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, 'x');)
    extents.push_back(std::atoi(word.c_str()));
  return extents;
}

// The message to the neighbour at `steps` (-1, 0 or 1 in each dimension) from the rank at `at`;
// bytes are 0 if there is none.
Message ToNeighbour(const std::vector<int>& extents, const std::vector<int>& at,
                    const std::vector<int>& steps, int cells) {
  Message message = {0, kCellBytes};
  int stride = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    const int x = at[d] + steps[d];
    if (x < 0 || x >= extents[d]) return {0, 0};
    message.peer += x * stride;
    stride *= extents[d];
    if (steps[d] == 0) message.bytes *= cells;
  }
  return message;
}

// What a rank sends; it receives the same, because a neighbour's border is as long.
std::vector<Message> Neighbours(const std::vector<int>& extents, bool only_faces, int cells,
                                int rank) {
  std::vector<int> at(extents.size()), steps(extents.size());
  int combinations = 1, rest = rank;
  for (size_t d = 0; d < extents.size(); ++d) {
    at[d] = rest % extents[d];
    rest /= extents[d];
    combinations *= 3;
  }
  std::vector<Message> messages;
  for (int combination = 0; combination < combinations; ++combination) {
    int differing = 0, digits = combination;
    for (int& step : steps) {
      step = digits % 3 - 1;
      digits /= 3;
      differing += step != 0 ? 1 : 0;
    }
    if (differing == 0 || (only_faces && differing > 1)) continue;
    const Message message = ToNeighbour(extents, at, steps, cells);
    if (message.bytes > 0) messages.push_back(message);
  }
  return messages;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 5) Refuse("usage: stencil EXTENTS POINTS CELLS ROUNDS [PATTERN]");
  const std::vector<int> extents = ParseExtents(argv[1]);
  const std::string points = argv[2];
  const bool only_faces = points == (extents.size() == 2 ? "5" : "7");
  if (!only_faces && points != (extents.size() == 2 ? "9" : "27")) {
    Refuse(points + " points: 5 or 9 in two dimensions, 7 or 27 in three");
  }
  int rank = 0, size = 0, grid = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (const int extent : extents) grid *= extent;
  if (grid != size) Refuse(std::string(argv[1]) + ": not as many as there are ranks");
  const std::vector<Message> messages = Neighbours(extents, only_faces, std::atoi(argv[3]), rank);
  TimeRounds(messages, messages, std::atoi(argv[4]));
  if (argc > 5) WritePattern(argv[5], messages);
  MPI_Finalize();
  return 0;
}
