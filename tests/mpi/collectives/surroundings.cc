// What goes on around collectives: wrong arguments, other messages, threads, intercommunicators.
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/collectives/cases.h"

namespace coppice::conformance {
namespace {

using Call = std::function<int()>;

constexpr int kLongMessage = 1 << 20;

// Both fail alike: the same class of error, returned and not fatal. Without a negative count in a
// Reduce, which ends MPICH's process.
void CompareError(const Call& native, const Call& ours, const std::string& what, Report* report) {
  int native_class = MPI_SUCCESS;
  int our_class = MPI_SUCCESS;
  PMPI_Error_class(native(), &native_class);
  PMPI_Error_class(ours(), &our_class);
  report->Expect(native_class != MPI_SUCCESS && native_class == our_class,
                 what + ": error class " + std::to_string(our_class) + ", natively " +
                     std::to_string(native_class));
}

// Buffers that are none, at all ranks alike: what MPI says of them natively is said, and nobody
// waits.
template <class Compare>
void CompareBuffers(const Shape& shape, const Compare& compare) {
  constexpr int kMany = 5;
  int numbers[2 * kMany] = {};
  int sums[2 * kMany] = {};
  MPI_Datatype gaps = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  compare("Bcast of a type without commitment",
          [&](auto* bcast, auto*, auto*) { return bcast(numbers, 1, gaps, 0, shape.comm); });
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &op);
  compare("Allreduce of a type without commitment", [&](auto*, auto*, auto* allreduce) {
    return allreduce(numbers, sums, 1, gaps, op, shape.comm);
  });
  MPI_Op_free(&op);
  MPI_Type_free(&gaps);
  compare("Allreduce where own data lies", [&](auto*, auto*, auto* allreduce) {
    return allreduce(numbers, numbers, kMany, MPI_INT, MPI_SUM, shape.comm);
  });
  compare("Allreduce to MPI_IN_PLACE", [&](auto*, auto*, auto* allreduce) {
    return allreduce(numbers, MPI_IN_PLACE, kMany, MPI_INT, MPI_SUM, shape.comm);
  });
#ifndef OPEN_MPI  // which reads from there
  compare("Bcast at no address",
          [&](auto* bcast, auto*, auto*) { return bcast(nullptr, 1, MPI_INT, 0, shape.comm); });
  compare("Allreduce from no address", [&](auto*, auto*, auto* allreduce) {
    return allreduce(nullptr, sums, 1, MPI_INT, MPI_SUM, shape.comm);
  });
  compare("Allreduce to no address", [&](auto*, auto*, auto* allreduce) {
    return allreduce(numbers, nullptr, 1, MPI_INT, MPI_SUM, shape.comm);
  });
#endif
}

void SumUp(MPI_Comm comm, int rounds, int rank, int size, Report* report) {
  for (int round = 0; round < rounds; ++round) {
    int own = rank + round;
    int sum = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
    report->Expect(sum == size * (size - 1) / 2 + size * round, "a sum among others");
    int root = round % size;
    MPI_Bcast(&own, 1, MPI_INT, root, comm);
    report->Expect(own == root + round, "a broadcast among others");
    MPI_Reduce(&own, &sum, 1, MPI_INT, MPI_MAX, root, comm);
    if (rank == root) report->Expect(sum == root + round, "a maximum among others");
    if (round % 5 == 0) MPI_Barrier(comm);
  }
}

// A nonblocking one, which goes natively in a program of several threads.
void SumUpNonblocking(MPI_Comm comm, int rank, int size, Report* report) {
  int sum = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  report->Expect(sum == size * (size - 1) / 2, "a nonblocking sum among threads");
}

// What one thread does; its report is its own.
void RunThread(MPI_Comm comm, int rank, int size, Report* report) {
  for (int i = 0; i < 4; ++i) {
    MPI_Comm more = MPI_COMM_NULL;
    MPI_Comm_dup(comm, &more);
    SumUp(more, 10, rank, size, report);
    SumUpNonblocking(more, rank, size, report);
    MPI_Comm_free(&more);
    SumUp(comm, 10, rank, size, report);
  }
}

}  // namespace

void CompareErrors(const Shape& shape, Report* report) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Errhandler of_world = MPI_ERRHANDLER_NULL;  // whom Open MPI asks about some of them
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_world);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_get_errhandler(shape.comm, &handler);
  MPI_Comm_set_errhandler(shape.comm, MPI_ERRORS_RETURN);
  int x = 1;
  int y = 0;
  double real = 1;
  double result = 0;
  const auto compare = [&](const std::string& what, const auto& call) {
    CompareError([&] { return call(&PMPI_Bcast, &PMPI_Reduce, &PMPI_Allreduce); },
                 [&] { return call(&MPI_Bcast, &MPI_Reduce, &MPI_Allreduce); },
                 what + " on " + shape.name, report);
  };
  for (const int root : {-77, shape.size}) {
    compare("Bcast from no rank",
            [&](auto* bcast, auto*, auto*) { return bcast(&x, 1, MPI_INT, root, shape.comm); });
    compare("Reduce to no rank", [&](auto*, auto* reduce, auto*) {
      return reduce(&x, &y, 1, MPI_INT, MPI_SUM, root, shape.comm);
    });
  }
  compare("Bcast of -1",
          [&](auto* bcast, auto*, auto*) { return bcast(&x, -1, MPI_INT, 0, shape.comm); });
  compare("Bcast of no type", [&](auto* bcast, auto*, auto*) {
    return bcast(&x, 1, MPI_DATATYPE_NULL, 0, shape.comm);
  });
  compare("Allreduce by no operation", [&](auto*, auto*, auto* allreduce) {
    return allreduce(&x, &y, 1, MPI_INT, MPI_OP_NULL, shape.comm);
  });
  compare("Allreduce of no type", [&](auto*, auto*, auto* allreduce) {
    return allreduce(&x, &y, 1, MPI_DATATYPE_NULL, MPI_SUM, shape.comm);
  });
  compare("Allreduce of bits of reals", [&](auto*, auto*, auto* allreduce) {
    return allreduce(&real, &result, 1, MPI_DOUBLE, MPI_BXOR, shape.comm);
  });
  CompareBuffers(shape, compare);
  MPI_Comm_set_errhandler(shape.comm, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_world);
  MPI_Errhandler_free(&of_world);
}

void CompareAmongOthers(const Shape& shape, Report* report) {
  // A receive that would take any message of the communicator's.
  int taken = -1;
  MPI_Request any = MPI_REQUEST_NULL;
  MPI_Irecv(&taken, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, shape.comm, &any);
  int own = shape.rank + 1;
  int sum = 0;
  MPI_Request nonblocking = MPI_REQUEST_NULL;
  MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, shape.comm, &nonblocking);
  SumUp(shape.comm, 12, shape.rank, shape.size, report);
  MPI_Wait(&nonblocking, MPI_STATUS_IGNORE);
  report->Expect(sum == shape.size * (shape.size + 1) / 2, "a nonblocking sum on " + shape.name);
  const int next = (shape.rank + 1) % shape.size;
  const int before = (shape.rank + shape.size - 1) % shape.size;
  MPI_Send(&shape.rank, 1, MPI_INT, next, 3, shape.comm);
  MPI_Wait(&any, MPI_STATUS_IGNORE);
  report->Expect(taken == before, "a message on " + shape.name);
  // A message that its receiver needs before the collective, and that is too long to be gone when
  // the sender is in the collective.
  std::vector<char> message(kLongMessage);
  MPI_Request under_way = MPI_REQUEST_NULL;
  if (shape.rank % 2 == 1) {
    MPI_Recv(message.data(), kLongMessage, MPI_CHAR, before, 4, shape.comm, MPI_STATUS_IGNORE);
  } else if (shape.rank + 1 < shape.size) {
    MPI_Isend(message.data(), kLongMessage, MPI_CHAR, next, 4, shape.comm, &under_way);
  }
  SumUp(shape.comm, 1, shape.rank, shape.size, report);
  MPI_Wait(&under_way, MPI_STATUS_IGNORE);
}

void CompareThreads(Report* report) {
  constexpr int kThreads = 3;
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm comms[kThreads];
  std::vector<Report> reports(kThreads, Report(report->options()));
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const uint64_t before = report->AlongTrees();
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(RunThread, comms[i], rank, size, &reports[i]);
  }
  for (std::thread& thread : threads) thread.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  for (const Report& one : reports) report->Add(one);
  // Each thread: 4 x 20 rounds of three calls, and a barrier in every fifth of them.
  constexpr uint64_t kCalls = kThreads * 4 * (20 * 3 + 4);
  if (report->options().expects_trees) {
    report->Expect(report->AlongTrees() == before + (size > 1 ? kCalls : 0),
                   "threads: trees for all collectives");
  }
}

void CompareIntercommunicator(Report* report) {
  MPI_Comm inter = MakeIntercommunicator();
  if (inter == MPI_COMM_NULL) return;
  int rank = 0;
  int size = 0;
  int world = 0;
  int remote = 0;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_size(inter, &size);
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  const bool is_upper = world >= remote && world != rank;
  const uint64_t before = report->AlongTrees();
  int one = 1;
  int sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
  report->Expect(sum == remote, "Allreduce on an intercommunicator");
  const int root = is_upper ? 0 : (rank == 0 ? MPI_ROOT : MPI_PROC_NULL);
  int told = is_upper ? 0 : 42;
  MPI_Bcast(&told, 1, MPI_INT, root, inter);
  report->Expect(told == 42, "Bcast on an intercommunicator");
  MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, root, inter);
  if (root == MPI_ROOT) report->Expect(sum == remote, "Reduce on an intercommunicator");
  MPI_Barrier(inter);
  // Open MPI makes them of collectives of the two groups, which its component carries out.
  report->Expect(report->AlongTrees() == before || FindTreeComponent() != nullptr,
                 "an intercommunicator has no tree");
  // What Open MPI makes of broadcasts of types of its own.
  MPI_Comm merged = MPI_COMM_NULL;
  MPI_Intercomm_merge(inter, is_upper ? 1 : 0, &merged);
  int members = 0;
  MPI_Comm_rank(merged, &rank);
  MPI_Comm_size(merged, &members);
  std::vector<int> counts(members, 1), offsets(members), ranks(members, -1), expected(members);
  std::iota(offsets.begin(), offsets.end(), 0);
  std::iota(expected.begin(), expected.end(), 0);
  MPI_Allgatherv(&rank, 1, MPI_INT, ranks.data(), counts.data(), offsets.data(), MPI_INT, merged);
  report->Expect(ranks == expected, "Allgatherv on a merged communicator");
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
}

}  // namespace coppice::conformance
