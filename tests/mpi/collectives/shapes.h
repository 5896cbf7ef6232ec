// Communicators of every shape that the collectives are compared on.
#ifndef COPPICE_TESTS_MPI_COLLECTIVES_SHAPES_H_
#define COPPICE_TESTS_MPI_COLLECTIVES_SHAPES_H_

#include <mpi.h>

#include <string>
#include <vector>

namespace coppice::conformance {

struct Shape {
  std::string name;
  MPI_Comm comm = MPI_COMM_NULL;  // null where this process is no member
  int rank = 0;
  int size = 0;
  int number = 0;  // among the shapes
};

// Intracommunicators: the world, a duplicate, halves, reversed, sub-grids, every third process,
// single ones. Made by the MPI_ functions, so that the preloaded library sees them.
std::vector<Shape> MakeShapes();
void FreeShapes(std::vector<Shape>* shapes);

// Lower against upper half of the world; MPI_COMM_NULL for a world of one.
MPI_Comm MakeIntercommunicator();

}  // namespace coppice::conformance

#endif  // COPPICE_TESTS_MPI_COLLECTIVES_SHAPES_H_
