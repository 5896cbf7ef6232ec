// Sends known patterns, so that a test can compute by hand what a trace of them must say:
//
//   known_patterns PATTERN NUMBER... [+ PATTERN NUMBER...]...
//
// PATTERN may be "collective NAME", of collective_calls.h, with BYTES and ROOT.
//
// All ranks check what they receive where a library that is preloaded could spoil it.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/programs/collective_calls.h"

namespace {

int world_rank = 0, world_size = 1;
std::vector<int> numbers;

int Number(size_t i) { return i < numbers.size() ? numbers[i] : 0; }
std::vector<char> Buffer(size_t bytes) { return std::vector<char>(bytes + 1); }

#if MPI_VERSION >= 4

// Each rank to the next, by the calls of MPI 4: of *bytes, and twice as many, and so on.
void NewRing(int next, int last, int* bytes) {
  std::vector<char> out = Buffer(1 << 16), in = Buffer(1 << 16);
  MPI_Request request;
  *bytes *= 2;
  MPI_Isendrecv(out.data(), *bytes, MPI_CHAR, next, 0, in.data(), *bytes, MPI_CHAR, last, 0,
                MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  *bytes *= 2;
  MPI_Isendrecv_replace(out.data(), *bytes, MPI_CHAR, next, 0, last, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  // Of four parts each.
  *bytes *= 2;
  MPI_Request parts[2];
  MPI_Psend_init(out.data(), 4, *bytes / 4, MPI_CHAR, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &parts[0]);
  MPI_Precv_init(in.data(), 4, *bytes / 4, MPI_CHAR, last, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &parts[1]);
  MPI_Startall(2, parts);
  for (int part = 0; part < 4; ++part) MPI_Pready(part, parts[0]);
  MPI_Waitall(2, parts, MPI_STATUSES_IGNORE);
  for (MPI_Request& part : parts) MPI_Request_free(&part);
}

#endif  // MPI_VERSION >= 4

// Each rank to the next, by every mode of sending in turn: bytes 1, 2, 4, ... tell them apart.
void Ring() {
  const int next = (world_rank + 1) % world_size;
  const int last = (world_rank + world_size - 1) % world_size;
  using Send = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
  using Isend = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  std::vector<char> attached(1 << 16);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  int bytes = 1;
  std::vector<char> out = Buffer(4096), in = Buffer(4096);
  for (const Send send : {Send{MPI_Send}, Send{MPI_Bsend}, Send{MPI_Ssend}, Send{MPI_Rsend}}) {
    MPI_Request request;
    MPI_Irecv(in.data(), bytes, MPI_CHAR, last, bytes, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);  // for Rsend; its messages have no bytes
    send(out.data(), bytes, MPI_CHAR, next, bytes, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bytes *= 2;
  }
  for (const Isend send :
       {Isend{MPI_Isend}, Isend{MPI_Ibsend}, Isend{MPI_Issend}, Isend{MPI_Irsend}}) {
    MPI_Request requests[2];
    MPI_Irecv(in.data(), bytes, MPI_CHAR, last, bytes, MPI_COMM_WORLD, &requests[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    send(out.data(), bytes, MPI_CHAR, next, bytes, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    bytes *= 2;
  }
  MPI_Sendrecv(out.data(), bytes, MPI_CHAR, next, 0, in.data(), bytes, MPI_CHAR, last, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  bytes *= 2;
  MPI_Sendrecv_replace(out.data(), bytes, MPI_CHAR, next, 0, last, 0, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  MPI_Send(out.data(), 9999, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
#if MPI_VERSION >= 4
  NewRing(next, last, &bytes);
#endif
  void* detached = nullptr;
  int size = 0;
  MPI_Buffer_detach(&detached, &size);
}

// Errors are returned as long as it lives.
class ReturnedErrors final {
 public:
  ReturnedErrors() {
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler_);
    Set(MPI_ERRORS_RETURN);
  }
  ~ReturnedErrors() {
    Set(handler_);
    MPI_Errhandler_free(&handler_);
  }

 private:
  static void Set(MPI_Errhandler handler) {
    for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
      MPI_Comm_set_errhandler(comm, handler);
    }
  }
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

// 1 byte to the next rank, and then one to nobody on no communicator, which is an error.
void Nobody() {
  const ReturnedErrors returned;
  const char out = 1;
  char in = 0;
  MPI_Sendrecv(&out, 1, MPI_CHAR, (world_rank + 1) % world_size, 0, &in, 1, MPI_CHAR,
               (world_rank + world_size - 1) % world_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(MPI_Send(&out, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_NULL), &error_class);
  if (error_class != MPI_ERR_COMM) MPI_Abort(MPI_COMM_WORLD, 3);
}

// 1 byte to the next rank, before and after sends of 100 that fail for each of their arguments.
void Failing() {
  const ReturnedErrors returned;
  const int next = (world_rank + 1) % world_size;
  const int last = (world_rank + world_size - 1) % world_size;
  std::vector<char> out = Buffer(100), in = Buffer(100);
  struct Arguments {
    int count;
    MPI_Datatype type;
    int to, tag;
  };
  const auto send_one = [&] {
    MPI_Sendrecv(out.data(), 1, MPI_CHAR, next, 0, in.data(), 1, MPI_CHAR, last, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  };
  const auto expect_error = [](int error) {
    if (error == MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
  };
  send_one();
  for (const Arguments& a : {Arguments{-1, MPI_CHAR, next, 0},
                             {100, MPI_DATATYPE_NULL, next, 0},
                             {100, MPI_CHAR, world_size + 5, 0},
                             {100, MPI_CHAR, next, -5}}) {
    MPI_Request request = MPI_REQUEST_NULL;
    expect_error(MPI_Send(out.data(), a.count, a.type, a.to, a.tag, MPI_COMM_WORLD));
    expect_error(MPI_Ssend(out.data(), a.count, a.type, a.to, a.tag, MPI_COMM_WORLD));
    expect_error(MPI_Isend(out.data(), a.count, a.type, a.to, a.tag, MPI_COMM_WORLD, &request));
    expect_error(MPI_Send_init(out.data(), a.count, a.type, a.to, a.tag, MPI_COMM_WORLD, &request));
    expect_error(MPI_Sendrecv(out.data(), a.count, a.type, a.to, a.tag, in.data(), 100, MPI_CHAR,
                              MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  send_one();
}

// To the next rank, numbers[0] times, with every mode of persistent sends: 8, 16, 32, 64 bytes; and
// one that is never started.
void Persistent() {
  const int next = (world_rank + 1) % world_size;
  const int last = (world_rank + world_size - 1) % world_size;
  using Init = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  const Init inits[] = {MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init};
  std::vector<char> attached(1 << 16), out = Buffer(64), in = Buffer(64);
  std::vector<std::vector<char>> inboxes(4, in);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  MPI_Request requests[9];
  for (int i = 0; i < 4; ++i) {
    MPI_Recv_init(inboxes[i].data(), 64, MPI_CHAR, last, i, MPI_COMM_WORLD, &requests[i]);
    inits[i](out.data(), 1 << i, MPI_DOUBLE, next, i, MPI_COMM_WORLD, &requests[4 + i]);
  }
  MPI_Send_init(out.data(), 8, MPI_DOUBLE, next, 9, MPI_COMM_WORLD, &requests[8]);
  for (int round = 0; round < Number(0); ++round) {
    for (int i = 0; i < 4; ++i) MPI_Start(&requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (round % 2 == 0) {
      MPI_Startall(4, requests + 4);
    } else {
      for (int i = 4; i < 8; ++i) MPI_Start(&requests[i]);
    }
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
  void* detached = nullptr;
  int size = 0;
  MPI_Buffer_detach(&detached, &size);
}

// A grid of numbers[0] x numbers[1] without wrap-around: numbers[2] bytes to each neighbour, by
// point-to-point on the grid's communicator.
void Stencil() {
  const int sizes[] = {Number(0), Number(1)}, periods[] = {0, 0};
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
  if (grid == MPI_COMM_NULL) return;
  std::vector<char> out = Buffer(Number(2)), in = Buffer(Number(2));
  for (int dimension = 0; dimension < 2; ++dimension) {
    for (const int step : {1, -1}) {
      int from = MPI_PROC_NULL, to = MPI_PROC_NULL;
      MPI_Cart_shift(grid, dimension, step, &from, &to);
      MPI_Sendrecv(out.data(), Number(2), MPI_CHAR, to, 0, in.data(), Number(2), MPI_CHAR, from, 0,
                   grid, MPI_STATUS_IGNORE);
    }
  }
  MPI_Comm_free(&grid);
}

// The same exchange by neighbourhood collectives, blocking and not, on a grid that wraps around.
void Neighbourhood() {
  const int sizes[] = {Number(0), Number(1)}, periods[] = {1, 1};
  const int bytes = Number(2);
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
  std::vector<char> out = Buffer(4 * bytes), in = Buffer(4 * bytes);
  MPI_Neighbor_allgather(out.data(), bytes, MPI_CHAR, in.data(), bytes, MPI_CHAR, grid);
  MPI_Request request;
  MPI_Ineighbor_alltoall(out.data(), bytes, MPI_CHAR, in.data(), bytes, MPI_CHAR, grid, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&grid);
}

// A graph in which rank r sends r + 1 elements to 2r + 1 and 2r + 2, by an alltoallv of its
// neighbours.
void Tree() {
  std::vector<int> sources, destinations, send_counts, receive_counts, send_at, receive_at;
  if (world_rank > 0) sources.push_back((world_rank - 1) / 2);
  for (const int child : {2 * world_rank + 1, 2 * world_rank + 2}) {
    if (child < world_size) destinations.push_back(child);
  }
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(),
                                 MPI_UNWEIGHTED, static_cast<int>(destinations.size()),
                                 destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  for (const int source : sources) receive_counts.push_back(source + 1);
  send_counts.assign(destinations.size(), world_rank + 1);
  send_at.assign(destinations.size(), 0);
  receive_at.assign(sources.size(), 0);
  std::vector<double> out(world_size + 1), in(world_size + 1);
  MPI_Neighbor_alltoallv(out.data(), send_counts.data(), send_at.data(), MPI_DOUBLE, in.data(),
                         receive_counts.data(), receive_at.data(), MPI_DOUBLE, graph);
  MPI_Comm_free(&graph);
}

// Ranks that are even, odd, even in turn, each time in descending order in a communicator, where
// its rank 0 sends 100 bytes to its rank 1. One that is made where another was freed must not be
// taken for it.
void Split() {
  for (int turn = 0; turn < 3; ++turn) {
    MPI_Comm part = MPI_COMM_NULL;
    const bool is_in = world_rank % 2 == turn % 2;
    MPI_Comm_split(MPI_COMM_WORLD, is_in ? 0 : MPI_UNDEFINED, -world_rank, &part);
    if (!is_in) continue;
    int rank = 0, size = 0;
    MPI_Comm_rank(part, &rank);
    MPI_Comm_size(part, &size);
    std::vector<char> buffer = Buffer(100);
    if (size > 1 && rank == 0) MPI_Send(buffer.data(), 100, MPI_CHAR, 1, 0, part);
    if (rank == 1) MPI_Recv(buffer.data(), 100, MPI_CHAR, 0, 0, part, MPI_STATUS_IGNORE);
    MPI_Comm_free(&part);
  }
}

// Ranks below half in one group, the others in the other: rank r of the first sends 10 bytes to
// rank r of the second, then a broadcast of 50 bytes from the first's rank 0, and a barrier.
void Inter() {
  const int half = world_size / 2;
  const bool is_low = world_rank < half;
  MPI_Comm own = MPI_COMM_NULL, both = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, is_low, world_rank, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, is_low ? half : 0, 7, &both);
  std::vector<char> buffer = Buffer(50);
  int rank = 0, remote = 0;
  MPI_Comm_rank(both, &rank);
  MPI_Comm_remote_size(both, &remote);
  if (is_low) {
    MPI_Send(buffer.data(), 10, MPI_CHAR, rank, 0, both);
  } else if (rank < remote) {
    MPI_Recv(buffer.data(), 10, MPI_CHAR, rank, 0, both, MPI_STATUS_IGNORE);
  }
  MPI_Bcast(buffer.data(), 50, MPI_CHAR, is_low ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, both);
  MPI_Barrier(both);
  MPI_Comm_free(&both);
  MPI_Comm_free(&own);
}

// Four threads at once, each 200 times 8 bytes to the next rank on a duplicate of their own. All is
// received after that: such messages need nobody who waits for them.
void Threads() {
  const int next = (world_rank + 1) % world_size;
  const int last = (world_rank + world_size - 1) % world_size;
  std::vector<MPI_Comm> comms(4);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::thread> threads;
  for (const MPI_Comm comm : comms) {
    threads.emplace_back([=] {
      const double out = 1;
      for (int i = 0; i < 200; ++i) MPI_Send(&out, 1, MPI_DOUBLE, next, i, comm);
    });
  }
  for (int i = 0; i < 100; ++i) {  // communicators go while others are sent on
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    const double out = 1;
    double in = 0;
    MPI_Sendrecv(&out, 1, MPI_DOUBLE, 0, 0, &in, 1, MPI_DOUBLE, 0, 0, own, MPI_STATUS_IGNORE);
    MPI_Comm_free(&own);
  }
  for (std::thread& thread : threads) thread.join();
  for (MPI_Comm& comm : comms) {
    double in = 0;
    for (int i = 0; i < 200; ++i) {
      MPI_Recv(&in, 1, MPI_DOUBLE, last, i, comm, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&comm);
  }
}

void AllToAll() {
  std::vector<char> out = Buffer(static_cast<size_t>(world_size) * Number(0)), in = out;
  MPI_Alltoall(out.data(), Number(0), MPI_CHAR, in.data(), Number(0), MPI_CHAR, MPI_COMM_WORLD);
}

// False: no pattern is called so.
bool Send(const std::vector<std::string>& words) {
  const std::map<std::string, void (*)()> patterns = {
      {"ring", Ring},         {"persistent", Persistent},
      {"stencil", Stencil},   {"tree", Tree},
      {"split", Split},       {"inter", Inter},
      {"alltoall", AllToAll}, {"neighbourhood", Neighbourhood},
      {"threads", Threads},   {"nobody", Nobody},
      {"failing", Failing}};
  const bool is_collective = words.size() > 1 && words[0] == "collective";
  numbers.clear();
  for (size_t i = is_collective ? 2 : 1; i < words.size(); ++i) {
    numbers.push_back(std::stoi(words[i]));
  }
  if (is_collective) {
    return coppice::patterns::CallCollective(words[1], Number(0), Number(1));
  }
  const auto pattern = patterns.find(words.empty() ? "" : words[0]);
  if (pattern != patterns.end()) pattern->second();
  return pattern != patterns.end();
}

}  // namespace

int main(int argc, char** argv) {
  const bool has_threads = std::getenv("KNOWN_PATTERNS_THREADS") != nullptr;
  if (has_threads) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  std::vector<std::vector<std::string>> all(1);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "+") == 0) {
      all.emplace_back();
    } else {
      all.back().push_back(argv[i]);
    }
  }
  for (const std::vector<std::string>& words : all) {
    if (Send(words)) continue;
    std::fprintf(stderr, "known_patterns: no pattern is called \"%s\"\n",
                 words.empty() ? "" : words[0].c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return MPI_Finalize();
}
