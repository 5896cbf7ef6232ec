#include "tests/mpi/collectives/shapes.h"

#include <utility>

namespace coppice::conformance {
namespace {

void Add(const char* name, MPI_Comm comm, std::vector<Shape>* shapes) {
  Shape shape;
  shape.name = name;
  shape.comm = comm;
  shape.number = static_cast<int>(shapes->size());
  if (comm != MPI_COMM_NULL) {
    MPI_Comm_rank(comm, &shape.rank);
    MPI_Comm_size(comm, &shape.size);
  }
  shapes->push_back(std::move(shape));
}

MPI_Comm Split(int color, int place) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, place, &made);
  return made;
}

void AddGrids(int size, std::vector<Shape>* shapes) {
  int sizes[2] = {0, 0};
  const int periods[2] = {1, 0};
  MPI_Dims_create(size, 2, sizes);
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
  Add("grid", grid, shapes);
  for (const int axis : {0, 1}) {
    const int remain[2] = {axis == 0 ? 1 : 0, axis == 1 ? 1 : 0};
    MPI_Comm line = MPI_COMM_NULL;
    MPI_Cart_sub(grid, remain, &line);
    Add(axis == 0 ? "column" : "row", line, shapes);
  }
}

MPI_Comm EveryThird(int size) {
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group third = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int range[1][3] = {{0, size - 1, 3}};
  MPI_Group_range_incl(world, 1, range, &third);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_create(MPI_COMM_WORLD, third, &made);
  MPI_Group_free(&third);
  MPI_Group_free(&world);
  return made;
}

}  // namespace

std::vector<Shape> MakeShapes() {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<Shape> shapes;
  Add("world", MPI_COMM_WORLD, &shapes);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  Add("duplicate", made, &shapes);
  Add("half", Split(rank % 2, rank), &shapes);
  Add("reversed", Split(0, -rank), &shapes);
  Add("shuffled", Split(0, rank * 7 % (size + 3)), &shapes);
  AddGrids(size, &shapes);
  Add("every third", EveryThird(size), &shapes);
  Add("single", Split(rank, 0), &shapes);
  return shapes;
}

void FreeShapes(std::vector<Shape>* shapes) {
  for (Shape& shape : *shapes) {
    if (shape.comm != MPI_COMM_WORLD && shape.comm != MPI_COMM_NULL) MPI_Comm_free(&shape.comm);
  }
  shapes->clear();
}

MPI_Comm MakeIntercommunicator() {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) return MPI_COMM_NULL;
  const bool is_upper = rank >= size / 2;
  MPI_Comm local = Split(is_upper ? 1 : 0, rank);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, is_upper ? 0 : size / 2, 17, &made);
  MPI_Comm_free(&local);
  return made;
}

}  // namespace coppice::conformance
