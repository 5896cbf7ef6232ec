// Uses of communicators that decide whether there are trees and how messages go along them:
//
//   odd_uses graphs          one communicator, and then graphs, each made, used and freed
//   odd_uses lives N USES    N duplicates of the world, each used so often and freed
//   odd_uses long USES       one duplicate, used so often
//   odd_uses pairs USES      ranks 2i and 2i + 1 together, used so often, and then the world
//   odd_uses sizes           sums of many lengths, twice each
//   odd_uses turns N USES    N duplicates in turns, each used so often: how often attributes were
//                            asked for meanwhile
//   odd_uses segments BYTES  a broadcast of so many bytes: the longest message of the preloaded
//                            library
//   odd_uses beside          collectives beside windows, on communicators of every origin, with
//                            data that has gaps, in place, of nothing
//
// Prints how many results were wrong.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

int rank = 0, size = 0;
long wrong = 0;
long longest = 0;
long asked_for = 0;  // attributes
bool is_measured = false;

void Check(bool holds) {
  if (!holds) ++wrong;
}

int RankIn(MPI_Comm comm) {
  int own = 0;
  MPI_Comm_rank(comm, &own);
  return own;
}

int SizeOf(MPI_Comm comm) {
  int all = 0;
  MPI_Comm_size(comm, &all);
  return all;
}

void Sum(MPI_Comm comm, int count = 1) {
  const int members = SizeOf(comm);
  std::vector<int> own(count, RankIn(comm)), sums(count);
  MPI_Allreduce(own.data(), sums.data(), count, MPI_INT, MPI_SUM, comm);
  Check(sums == std::vector<int>(count, members * (members - 1) / 2));
}

void Graphs() {
  constexpr int kRounds = 10;
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Comm first = MPI_COMM_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_create(MPI_COMM_WORLD, world, &first);
  MPI_Group_free(&world);
  std::vector<int> all(size), weights(size, 1);
  for (int i = 0; i < size; ++i) all[i] = i;
  for (int i = 0; i < 2 * kRounds; ++i) {
    MPI_Comm graph = MPI_COMM_NULL;
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &size, all.data(), weights.data(),
                          MPI_INFO_NULL, i % 2, &graph);
    Sum(graph);
    MPI_Comm_free(&graph);
  }
  MPI_Comm_free(&first);
}

void Lives(int count, int uses) {
  for (int i = 0; i < count; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int use = 0; use < uses; ++use) Sum(comm);
    MPI_Comm_free(&comm);
  }
}

void Pairs(int uses) {
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
  for (int use = 0; use < uses; ++use) Sum(pair);
  for (int use = 0; use < uses; ++use) Sum(MPI_COMM_WORLD);
  MPI_Comm_free(&pair);
}

void Sizes() {
  for (const int bytes : {4, 8188, 8192, 65536, 262144, 262148, 1 << 20}) {
    Sum(MPI_COMM_WORLD, bytes / 4);
    Sum(MPI_COMM_WORLD, bytes / 4);
  }
}

// The fewest of all ranks and of some rounds, each with other handles: of one of them several may
// share a place of a table.
void Turns(int count, int uses) {
  constexpr int kRounds = 4;
  std::vector<MPI_Comm> comms(kRounds * count, MPI_COMM_NULL);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  long fewest = static_cast<long>(count) * uses;
  for (int round = 0; round < kRounds; ++round) {
    asked_for = 0;
    is_measured = true;
    for (int use = 0; use < uses; ++use) {
      for (int i = 0; i < count; ++i) Sum(comms[round * count + i]);
    }
    is_measured = false;
    fewest = std::min(fewest, asked_for);
  }
  PMPI_Allreduce(MPI_IN_PLACE, &fewest, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) std::printf("attributes asked for %ld\n", fewest);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

void Segments(int bytes) {
  std::vector<char> data(bytes, rank == 0 ? 'x' : '.');
  is_measured = true;
  MPI_Bcast(data.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  is_measured = false;
  Check(std::count(data.begin(), data.end(), 'x') == bytes);
  PMPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) std::printf("longest %ld\n", longest);
}

// ---- beside -------------------------------------------------------------------------------------

// 2 x 2 matrices of which the second column lies after a gap: their product does not commute.
struct Matrix {
  long a, b, gap, c, d;
};

void Multiply(void* earlier, void* later, int* count, MPI_Datatype*) {
  const auto* const left = static_cast<const Matrix*>(earlier);
  auto* const right = static_cast<Matrix*>(later);
  for (int i = 0; i < *count; ++i) {
    const Matrix l = left[i], r = right[i];
    right[i].a = (l.a * r.a + l.c * r.b) % 1009;
    right[i].b = (l.b * r.a + l.d * r.b) % 1009;
    right[i].c = (l.a * r.c + l.c * r.d) % 1009;
    right[i].d = (l.b * r.c + l.d * r.d) % 1009;
  }
}

Matrix MatrixOf(int number) { return {1 + number, 2, -1, number, 3 + number}; }

void Products(MPI_Comm comm) {
  MPI_Datatype pairs = MPI_DATATYPE_NULL, matrices = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 2, 3, MPI_LONG, &pairs);
  MPI_Type_create_resized(pairs, 0, sizeof(Matrix), &matrices);
  MPI_Type_commit(&matrices);
  MPI_Type_free(&pairs);
  MPI_Op product = MPI_OP_NULL;
  MPI_Op_create(Multiply, 0, &product);
  constexpr int kCount = 3;
  Matrix expected = MatrixOf(0);
  for (int i = 1; i < SizeOf(comm); ++i) {
    Matrix next = MatrixOf(i);
    int one = 1;
    Multiply(&expected, &next, &one, nullptr);
    expected = next;
  }
  const auto is_expected = [&](const Matrix& one) {
    return one.a == expected.a && one.b == expected.b && one.c == expected.c &&
           one.d == expected.d && one.gap == -1;
  };
  for (int root = -1; root < SizeOf(comm); ++root) {  // -1: all of them
    std::vector<Matrix> data(kCount, MatrixOf(RankIn(comm)));
    const bool has_result = root < 0 || root == RankIn(comm);
    if (root < 0) {
      MPI_Allreduce(MPI_IN_PLACE, data.data(), kCount, matrices, product, comm);
    } else {
      MPI_Reduce(has_result ? MPI_IN_PLACE : data.data(), data.data(), kCount, matrices, product,
                 root, comm);
    }
    for (const Matrix& one : data) Check(!has_result || is_expected(one));
    std::vector<Matrix> told(kCount, root == RankIn(comm) ? expected : Matrix{0, 0, -1, 0, 0});
    if (root >= 0) MPI_Bcast(told.data(), kCount, matrices, root, comm);
    for (const Matrix& one : told) Check(root < 0 || is_expected(one));
  }
  MPI_Op_free(&product);
  MPI_Type_free(&matrices);
}

void Nothing(MPI_Comm comm) {
  int one = 1, other = 7;
  MPI_Bcast(&one, 0, MPI_INT, 0, comm);
  MPI_Reduce(&one, &other, 0, MPI_INT, MPI_SUM, 0, comm);
  MPI_Allreduce(&one, &other, 0, MPI_INT, MPI_SUM, comm);
  MPI_Bcast(nullptr, 0, MPI_INT, 0, comm);
  Check(one == 1 && other == 7);
}

void UseAll(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return;
  Sum(comm);
  Products(comm);
  Nothing(comm);
  MPI_Barrier(comm);
  Sum(comm, 5000);
}

void Windows() {
  std::vector<long> memory(2 * size, 0);
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(long)), sizeof(long),
                 MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  const long own = 100 + rank;
  MPI_Win_fence(0, window);
  for (int to = 0; to < size; ++to) MPI_Put(&own, 1, MPI_LONG, to, rank, 1, MPI_LONG, window);
  Sum(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_fence(0, window);
  for (int i = 0; i < size; ++i) Check(memory[i] == 100 + i);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < 10; ++i) {
    const long one = 1;
    long before = 0;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, size, MPI_SUM, window);
    Sum(MPI_COMM_WORLD);
    MPI_Win_flush_all(window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_fence(0, window);
  if (rank == 0) Check(memory[size] == 10L * size);
  MPI_Win_free(&window);
}

void Neighbours() {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  for (int i = 0; i < 5; ++i) {
    int told = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ineighbor_allgather(&rank, 1, MPI_INT, &told, 1, MPI_INT, graph, &request);
    UseAll(graph);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    Check(told == before);
  }
  MPI_Comm_free(&graph);
  std::vector<int> index(size), edges;
  for (int i = 0; i < size; ++i) {
    edges.push_back((i + 1) % size);
    index[i] = static_cast<int>(edges.size());
  }
  MPI_Graph_create(MPI_COMM_WORLD, size, index.data(), edges.data(), 0, &graph);
  UseAll(graph);
  if (graph != MPI_COMM_NULL) MPI_Comm_free(&graph);
}

void Origins() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
  Sum(MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  UseAll(copy);
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL, both = MPI_COMM_NULL;
  MPI_Comm_split(copy, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, copy, (rank + 1) % 2, 5, &inter);
  for (int i = 0; i < 3; ++i) {
    int others = 0;
    const int one = 1;
    MPI_Allreduce(&one, &others, 1, MPI_INT, MPI_SUM, inter);
    int expected = 0;
    MPI_Comm_remote_size(inter, &expected);
    Check(others == expected);
    UseAll(half);
    MPI_Barrier(inter);
  }
  MPI_Intercomm_merge(inter, rank % 2, &both);
  UseAll(both);
  MPI_Group group = MPI_GROUP_NULL, part = MPI_GROUP_NULL;
  MPI_Comm_group(both, &group);
  int left_out = SizeOf(both) - 1;
  MPI_Group_excl(group, 1, &left_out, &part);
  MPI_Comm few = MPI_COMM_NULL;
  if (RankIn(both) != left_out) MPI_Comm_create_group(both, part, 3, &few);
  UseAll(few);
  if (few != MPI_COMM_NULL) MPI_Comm_free(&few);
  MPI_Group_free(&part);
  MPI_Group_free(&group);
  for (MPI_Comm* comm : {&both, &inter, &half, &copy}) MPI_Comm_free(comm);
}

void Beside() {
  UseAll(MPI_COMM_WORLD);
  UseAll(MPI_COMM_SELF);
  Windows();
  Neighbours();
  Origins();
}

}  // namespace

// These stand before the MPI library's own, for the preloaded library.
extern "C" {

int PMPI_Comm_get_attr(MPI_Comm comm, int key, void* value, int* is_there) {
  using Function = decltype(&PMPI_Comm_get_attr);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "PMPI_Comm_get_attr"));
  if (is_measured) ++asked_for;
  return next(comm, key, value, is_there);
}

int PMPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  using Function = decltype(&PMPI_Isend);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "PMPI_Isend"));
  int type_bytes = 0;
  if (is_measured && PMPI_Type_size(type, &type_bytes) == MPI_SUCCESS) {
    longest = std::max(longest, static_cast<long>(count) * type_bytes);
  }
  return next(data, count, type, to, tag, comm, request);
}

}  // extern "C"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string what = argc > 1 ? argv[1] : "";
  const int first = argc > 2 ? std::atoi(argv[2]) : 0, second = argc > 3 ? std::atoi(argv[3]) : 0;
  if (what == "graphs") Graphs();
  if (what == "lives") Lives(first, second);
  if (what == "long") Lives(1, first);
  if (what == "pairs") Pairs(first);
  if (what == "sizes") Sizes();
  if (what == "turns") Turns(first, second);
  if (what == "segments") Segments(first);
  if (what == "beside") Beside();
  PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("wrong %ld\n", wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
