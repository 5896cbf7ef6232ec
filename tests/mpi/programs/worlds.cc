// Programs whose processes do not all stand alike: several worlds, several commands, attributes
// that must not be copied.
//
//   worlds bcast                  each rank in turn broadcasts numbers; nothing else happens before
//   worlds spawn COMMAND WORD...  starts 2 processes of another world, which run WORD..., the last
//                                 being "child"; their world and this one sum up and become a grid
//                                 together
//   worlds child
//   worlds attributes             the world has an attribute whose copy function fails
//   worlds grids N                N grids with reorder = true, one after the other; says how many
//                                 ranks are others in each than in the world
//   worlds communicators N        N copies of the world, each led by another rank, one after the
//                                 other, with a sum over each
//
// A result that is wrong ends the program with status 3. Each rank says on stderr at the end how
// many names that were published at the launcher in its process were not taken back.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

int names_left = 0;

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "worlds: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

int SizeOf(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

void Broadcast() {
  constexpr int kNumbers = 64;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int root = 0; root < SizeOf(MPI_COMM_WORLD); ++root) {
    std::vector<int> numbers(kNumbers, rank == root ? 100 + root : -1);
    MPI_Bcast(numbers.data(), kNumbers, MPI_INT, root, MPI_COMM_WORLD);
    Check(numbers == std::vector<int>(kNumbers, 100 + root), "a broadcast brings other numbers");
  }
}

// The collectives that trees carry, the first of them being a communicator's first.
void SumUp(MPI_Comm comm) {
  const int size = SizeOf(comm), most = 1000;
  int rank = 0, sum = 0, greatest = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  Check(sum == size * (size - 1) / 2, "a sum is another one");
  MPI_Barrier(comm);
  for (int root = 0; root < size; ++root) {
    std::vector<int> numbers(most, rank == root ? root : -1);
    MPI_Bcast(numbers.data(), most, MPI_INT, root, comm);
    Check(numbers == std::vector<int>(most, root), "a broadcast brings other numbers");
    MPI_Reduce(&rank, &greatest, 1, MPI_INT, MPI_MAX, root, comm);
    if (rank == root) Check(greatest == size - 1, "a maximum is another one");
  }
}

// Both worlds, each in a ring of its own, and all of both as a grid.
void Together(MPI_Comm other, bool high) {
  const int zero = 0, size = SizeOf(MPI_COMM_WORLD);
  MPI_Comm ring = MPI_COMM_NULL, both = MPI_COMM_NULL, grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &zero, 0, &ring);
  int before = 0, after = 0, token = 0;
  MPI_Cart_shift(ring, 0, 1, &before, &after);
  MPI_Sendrecv(&token, 1, MPI_INT, after, 0, &token, 1, MPI_INT, before, 0, ring,
               MPI_STATUS_IGNORE);
  MPI_Comm_free(&ring);
  SumUp(MPI_COMM_WORLD);
  MPI_Intercomm_merge(other, high, &both);
  const int nodes = SizeOf(both), wraps = 1;
  SumUp(both);
  MPI_Cart_create(both, 1, &nodes, &wraps, 1, &grid);
  Check(grid != MPI_COMM_NULL && SizeOf(grid) == nodes, "the grid of both worlds has not all");
  std::vector<int> all(nodes);
  MPI_Comm_rank(grid, &token);
  MPI_Allgather(&token, 1, MPI_INT, all.data(), 1, MPI_INT, grid);
  Check(all.back() == nodes - 1, "the grid of both worlds carries nothing");
  MPI_Comm_free(&grid);
  MPI_Comm_free(&both);
  MPI_Comm_disconnect(&other);
}

void Spawn(int argc, char** argv) {
  Check(argc > 3, "spawn wants a command");
  MPI_Comm children = MPI_COMM_NULL;
  MPI_Comm_spawn(argv[2], argv + 3, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                 MPI_ERRCODES_IGNORE);
  Together(children, false);
}

void Child() {
  MPI_Comm parents = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parents);
  Together(parents, true);
}

int FailToCopy(MPI_Comm, int, void*, void*, void*, int*) {
  std::fprintf(stderr, "worlds: an attribute is copied\n");
  return MPI_ERR_OTHER;
}

void Attributes() {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(FailToCopy, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, nullptr);
  MPI_Comm_free_keyval(&key);
}

void Grids(int times) {
  const int size = SizeOf(MPI_COMM_WORLD), wraps = 1;
  for (int i = 0; i < times; ++i) {
    MPI_Comm grid = MPI_COMM_NULL;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &wraps, 1, &grid);
    Check(SizeOf(grid) == size, "a grid has not all ranks");
    int before = 0, after = 0, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &before);
    MPI_Comm_rank(grid, &after);
    const int is_moved = before != after;
    MPI_Reduce(&is_moved, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (before == 0) std::printf("moved %d of %d\n", all, size);
    MPI_Comm_free(&grid);
  }
}

void Communicators(int times) {
  const int size = SizeOf(MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < times; ++i) {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, (rank + i) % size, &copy);
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copy);
    Check(sum == size * (size - 1) / 2, "a sum is another one");
    MPI_Comm_free(&copy);
  }
}

}  // namespace

// These stand before the MPI library's own, for the preloaded library.
extern "C" {

int PMPI_Publish_name(const char* name, MPI_Info info, const char* port) {
  using Function = int (*)(const char*, MPI_Info, const char*);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "PMPI_Publish_name"));
  const int error = next(name, info, port);
  if (error == MPI_SUCCESS) ++names_left;
  return error;
}

int PMPI_Unpublish_name(const char* name, MPI_Info info, const char* port) {
  using Function = int (*)(const char*, MPI_Info, const char*);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "PMPI_Unpublish_name"));
  const int error = next(name, info, port);
  if (error == MPI_SUCCESS) --names_left;
  return error;
}

}  // extern "C"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::map<std::string, std::function<void()>> programs = {
      {"bcast", Broadcast},
      {"spawn", [&] { Spawn(argc, argv); }},
      {"child", Child},
      {"attributes", Attributes},
      {"grids", [&] { Grids(argc > 2 ? std::atoi(argv[2]) : 1); }},
      {"communicators", [&] { Communicators(argc > 2 ? std::atoi(argv[2]) : 1); }}};
  const auto program = programs.find(argc > 1 ? argv[1] : "");
  Check(program != programs.end(), "no program is called so");
  program->second();
  const int error = MPI_Finalize();
  std::fprintf(stderr, "worlds: names left %d\n", names_left);
  return error;
}
