// Calls that MPI does not allow, whose errors are returned: what comes of each has to be the same
// with and without the preloaded library.
//
//   invalid_calls list      each call of a list, on all ranks alike
//   invalid_calls lengths   broadcasts that are longer at all ranks but the root
//   invalid_calls alias     a Reduce whose root gives one address twice; the root then calls again
//   invalid_calls handlers  errors on communicators that were made before the world got a handler
//
// Each rank writes its lines, "RANK: WHAT: class CLASS handled TIMES", to stdout.
#include <mpi.h>

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

int rank = 0, size = 0;
int handled = 0;

void Count(MPI_Comm*, int*, ...) { ++handled; }

void Say(const std::string& what, int error) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(error, &error_class);
  std::printf("%d: %s: class %d handled %d\n", rank, what.c_str(), error_class,
              std::exchange(handled, 0));
  std::fflush(stdout);
}

using Call = std::pair<const char*, std::function<int()>>;

constexpr int kMany = 16;
int own[kMany] = {}, other[kMany] = {};
int counts[kMany] = {}, offsets[kMany] = {};
MPI_Datatype types[kMany] = {}, no_types[kMany] = {};
MPI_Request request = MPI_REQUEST_NULL;
const MPI_Datatype kNoType = MPI_DATATYPE_NULL;

std::vector<Call> Messages(MPI_Comm comm) {
  return {
      {"Send of no type", [=] { return MPI_Send(own, 1, kNoType, 0, 0, comm); }},
      {"Send of -1", [=] { return MPI_Send(own, -1, MPI_INT, 0, 0, comm); }},
      {"Send to no rank", [=] { return MPI_Send(own, 1, MPI_INT, size, 0, comm); }},
      {"Send to a negative rank", [=] { return MPI_Send(own, 1, MPI_INT, -77, 0, comm); }},
      {"Send with no tag", [=] { return MPI_Send(own, 1, MPI_INT, 0, -7, comm); }},
      {"Send over no communicator", [] { return MPI_Send(own, 1, MPI_INT, 0, 0, MPI_COMM_NULL); }},
      {"Ssend of no type", [=] { return MPI_Ssend(own, 1, kNoType, 0, 0, comm); }},
      {"Bsend to no rank", [=] { return MPI_Bsend(own, 1, MPI_INT, size, 0, comm); }},
      {"Isend of no type", [=] { return MPI_Isend(own, 1, kNoType, 0, 0, comm, &request); }},
      {"Isend of -1", [=] { return MPI_Isend(own, -1, MPI_INT, 0, 0, comm, &request); }},
      {"Send_init of no type",
       [=] { return MPI_Send_init(own, 1, kNoType, 0, 0, comm, &request); }},
      {"Send_init to no rank",
       [=] { return MPI_Send_init(own, 1, MPI_INT, size, 0, comm, &request); }},
      {"Sendrecv of no type",
       [=] {
         return MPI_Sendrecv(own, 1, kNoType, 0, 0, other, 1, MPI_INT, 0, 0, comm,
                             MPI_STATUS_IGNORE);
       }},
      {"Sendrecv to no rank",
       [=] {
         return MPI_Sendrecv(own, 1, MPI_INT, size, 0, other, 1, MPI_INT, 0, 0, comm,
                             MPI_STATUS_IGNORE);
       }},
  };
}

std::vector<Call> Reductions(MPI_Comm comm) {
  return {
      {"Reduce by no operation",
       [=] { return MPI_Reduce(own, other, 1, MPI_INT, MPI_OP_NULL, 0, comm); }},
      {"Reduce of no type", [=] { return MPI_Reduce(own, other, 1, kNoType, MPI_SUM, 0, comm); }},
      {"Reduce to no rank",
       [=] { return MPI_Reduce(own, other, 1, MPI_INT, MPI_SUM, size, comm); }},
      {"Reduce over no communicator",
       [] { return MPI_Reduce(own, other, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_NULL); }},
      {"Allreduce by no operation",
       [=] { return MPI_Allreduce(own, other, 1, MPI_INT, MPI_OP_NULL, comm); }},
      {"Allreduce of no type",
       [=] { return MPI_Allreduce(own, other, 1, kNoType, MPI_SUM, comm); }},
      {"Allreduce where own data lies",
       [=] { return MPI_Allreduce(own, own, 4, MPI_INT, MPI_SUM, comm); }},
      {"Allreduce over no communicator",
       [] { return MPI_Allreduce(own, other, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL); }},
      {"Iallreduce by no operation",
       [=] { return MPI_Iallreduce(own, other, 1, MPI_INT, MPI_OP_NULL, comm, &request); }},
      {"Iallreduce of no type",
       [=] { return MPI_Iallreduce(own, other, 1, kNoType, MPI_SUM, comm, &request); }},
      {"Scan by no operation", [=] { return MPI_Scan(own, other, 1, MPI_INT, MPI_OP_NULL, comm); }},
      {"Scan of no type", [=] { return MPI_Scan(own, other, 1, kNoType, MPI_SUM, comm); }},
      {"Exscan of no type", [=] { return MPI_Exscan(own, other, 1, kNoType, MPI_SUM, comm); }},
      {"Reduce_scatter by no operation",
       [=] { return MPI_Reduce_scatter(own, other, counts, MPI_INT, MPI_OP_NULL, comm); }},
      {"Reduce_scatter of no type",
       [=] { return MPI_Reduce_scatter(own, other, counts, kNoType, MPI_SUM, comm); }},
      {"Reduce_scatter_block of no type",
       [=] { return MPI_Reduce_scatter_block(own, other, 1, kNoType, MPI_SUM, comm); }},
#ifdef OPEN_MPI  // of which MPICH makes no error but an end
      {"Reduce_scatter_block of -1",
       [=] { return MPI_Reduce_scatter_block(own, other, -1, MPI_INT, MPI_SUM, comm); }},
#endif
  };
}

std::vector<Call> Others(MPI_Comm comm) {
  return {
      {"Barrier over no communicator", [] { return MPI_Barrier(MPI_COMM_NULL); }},
      {"Ibarrier over no communicator", [] { return MPI_Ibarrier(MPI_COMM_NULL, &request); }},
      {"Bcast of -1", [=] { return MPI_Bcast(own, -1, MPI_INT, 0, comm); }},
      {"Bcast of no type", [=] { return MPI_Bcast(own, 1, kNoType, 0, comm); }},
      {"Bcast from no rank", [=] { return MPI_Bcast(own, 1, MPI_INT, size, comm); }},
      {"Bcast from a negative rank", [=] { return MPI_Bcast(own, 1, MPI_INT, -77, comm); }},
      {"Bcast over no communicator", [] { return MPI_Bcast(own, 1, MPI_INT, 0, MPI_COMM_NULL); }},
      {"Ibcast of no type", [=] { return MPI_Ibcast(own, 1, kNoType, 0, comm, &request); }},
      {"Gather of no type",
       [=] { return MPI_Gather(own, 1, kNoType, other, 1, MPI_INT, 0, comm); }},
      {"Gather to no rank",
       [=] { return MPI_Gather(own, 1, MPI_INT, other, 1, MPI_INT, size, comm); }},
      {"Gatherv to no rank",
       [=] { return MPI_Gatherv(own, 1, MPI_INT, other, counts, offsets, MPI_INT, size, comm); }},
      {"Scatter from no rank",
       [=] { return MPI_Scatter(own, 1, MPI_INT, other, 1, MPI_INT, size, comm); }},
      {"Scatterv from no rank",
       [=] { return MPI_Scatterv(own, counts, offsets, MPI_INT, other, 1, MPI_INT, -77, comm); }},
      {"Allgather of no type",
       [=] { return MPI_Allgather(own, 1, kNoType, other, 1, MPI_INT, comm); }},
      {"Allgather to no type",
       [=] { return MPI_Allgather(own, 1, MPI_INT, other, 1, kNoType, comm); }},
      {"Allgatherv of no type",
       [=] { return MPI_Allgatherv(own, 1, kNoType, other, counts, offsets, MPI_INT, comm); }},
      {"Iallgather of no type",
       [=] { return MPI_Iallgather(own, 1, kNoType, other, 1, MPI_INT, comm, &request); }},
      {"Alltoall of no type",
       [=] { return MPI_Alltoall(own, 1, kNoType, other, 1, MPI_INT, comm); }},
      {"Alltoall of -1", [=] { return MPI_Alltoall(own, -1, MPI_INT, other, 1, MPI_INT, comm); }},
      {"Alltoallv of no type",
       [=] {
         return MPI_Alltoallv(own, counts, offsets, kNoType, other, counts, offsets, MPI_INT, comm);
       }},
      {"Alltoallw of no types",
       [=] {
         return MPI_Alltoallw(own, counts, offsets, no_types, other, counts, offsets, types, comm);
       }},
#ifdef OPEN_MPI  // MPICH reads from there
      {"Alltoallv without counts",
       [=] {
         return MPI_Alltoallv(own, nullptr, nullptr, MPI_INT, other, nullptr, nullptr, MPI_INT,
                              comm);
       }},
      {"Alltoallw without counts",
       [=] {
         return MPI_Alltoallw(own, nullptr, nullptr, types, other, nullptr, nullptr, types, comm);
       }},
      {"Ialltoallv without counts",
       [=] {
         return MPI_Ialltoallv(own, nullptr, nullptr, MPI_INT, other, nullptr, nullptr, MPI_INT,
                               comm, &request);
       }},
      {"Scatterv without counts",
       [=] { return MPI_Scatterv(own, nullptr, nullptr, MPI_INT, other, 1, MPI_INT, rank, comm); }},
      {"Allgatherv without counts",
       [=] { return MPI_Allgatherv(own, 1, MPI_INT, other, nullptr, nullptr, MPI_INT, comm); }},
      {"Reduce_scatter without counts",
       [=] { return MPI_Reduce_scatter(own, other, nullptr, MPI_INT, MPI_SUM, comm); }},
#endif
  };
}

std::vector<Call> Communicators(MPI_Comm comm) {
  static MPI_Comm made = MPI_COMM_NULL;
  static const int too_many = size + 1, none = 0, wraps = 1;
  return {
      {"Comm_dup of none", [] { return MPI_Comm_dup(MPI_COMM_NULL, &made); }},
      {"Comm_split of none", [] { return MPI_Comm_split(MPI_COMM_NULL, 0, 0, &made); }},
      {"Comm_split by a negative color", [=] { return MPI_Comm_split(comm, -77, 0, &made); }},
      {"Comm_create of no group", [=] { return MPI_Comm_create(comm, MPI_GROUP_NULL, &made); }},
      {"Cart_create with too many nodes",
       [=] { return MPI_Cart_create(comm, 1, &too_many, &wraps, 1, &made); }},
      {"Cart_create of -1 dimensions",
       [=] { return MPI_Cart_create(comm, -1, &none, &wraps, 1, &made); }},
      {"Cart_create over no communicator",
       [] { return MPI_Cart_create(MPI_COMM_NULL, 1, &wraps, &wraps, 1, &made); }},
      {"Dist_graph_create_adjacent with -1 neighbours",
       [=] {
         return MPI_Dist_graph_create_adjacent(comm, -1, &none, MPI_UNWEIGHTED, 0, &none,
                                               MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &made);
       }},
      {"Dist_graph_create with -1 sources",
       [=] {
         return MPI_Dist_graph_create(comm, -1, &none, &wraps, &none, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                      1, &made);
       }},
      {"Intercomm_merge of none", [] { return MPI_Intercomm_merge(MPI_COMM_NULL, 0, &made); }},
      {"Neighbor_alltoall without neighbours",
       [=] { return MPI_Neighbor_alltoall(own, 1, MPI_INT, other, 1, MPI_INT, comm); }},
#ifndef OPEN_MPI  // which reads from there
      {"Neighbor_allgather over no communicator",
       [] { return MPI_Neighbor_allgather(own, 1, MPI_INT, other, 1, MPI_INT, MPI_COMM_NULL); }},
#endif
  };
}

void List(MPI_Comm comm) {
  for (int i = 0; i < kMany; ++i) {
    counts[i] = 1;
    offsets[i] = i;
    types[i] = MPI_INT;
    no_types[i] = MPI_DATATYPE_NULL;
  }
  for (const auto& calls : {Messages(comm), Reductions(comm), Others(comm), Communicators(comm)}) {
    for (const auto& [what, call] : calls) {
      PMPI_Barrier(MPI_COMM_WORLD);
      const int error = call();
      Say(what, error);
    }
  }
}

void Sum(MPI_Comm comm) {
  int sum = 0;
  const int error = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (error != MPI_SUCCESS || sum != size * (size - 1) / 2) Say("a sum is another one", error);
}

void Lengths() {
  for (const int bytes : {4, 100, 1000}) {
    for (const int more : {1, 7, 3000}) {
      MPI_Comm comm = MPI_COMM_NULL;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      Sum(comm);
      std::vector<char> data(bytes + more, 'x');
      const int error = MPI_Bcast(data.data(), rank == 0 ? bytes : bytes + more, MPI_CHAR, 0, comm);
      Say(std::to_string(bytes) + " bytes for " + std::to_string(bytes + more), error);
      PMPI_Barrier(MPI_COMM_WORLD);  // `comm` is not to be used any more
    }
  }
}

void Alias(MPI_Comm comm) {
  Sum(comm);
  for (const int count : {1, 5}) {
    for (int root = 0; root < size; ++root) {
      std::vector<int> data(count, rank + 1), result(count, -1);
      int error = MPI_Reduce(data.data(), rank == root ? data.data() : nullptr, count, MPI_INT,
                             MPI_SUM, root, comm);
      Say("a Reduce where own data lies", error);
      if (error == MPI_SUCCESS) continue;
      error = MPI_Reduce(data.data(), result.data(), count, MPI_INT, MPI_SUM, root, comm);
      Say("the same to elsewhere, " + std::to_string(result[count - 1]), error);
    }
  }
  Sum(comm);
}

void SendNowhere(const std::string& what, MPI_Comm comm) {
  int nothing = 0;
  Say(what, MPI_Send(&nothing, 1, MPI_INT, 77, 0, comm));
}

void Handlers() {
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  MPI_Comm early = MPI_COMM_NULL, part = MPI_COMM_NULL, late = MPI_COMM_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  Say(before == MPI_ERRORS_ARE_FATAL ? "errors are fatal" : "errors are not fatal", MPI_SUCCESS);
  MPI_Comm_dup(MPI_COMM_WORLD, &early);
  MPI_Comm_split(early, rank % 2, 0, &part);
  Sum(early);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Sum(early);
  SendNowhere("over the world", MPI_COMM_WORLD);
#ifndef OPEN_MPI  // where a communicator has the handler that its parent had
  SendNowhere("over an early duplicate", early);
  SendNowhere("over a part of it", part);
  SendNowhere("over this process", MPI_COMM_SELF);
  MPI_Errhandler counting = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(Count, &counting);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
  SendNowhere("over an early duplicate, counted", early);
  Sum(early);
  MPI_Comm_get_errhandler(early, &before);
  Say(before == MPI_ERRORS_ARE_FATAL ? "fatal there" : "not fatal there", MPI_SUCCESS);
  MPI_Errhandler_free(&counting);
#endif
  MPI_Comm_dup(MPI_COMM_WORLD, &late);
  SendNowhere("over a late duplicate", late);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  for (MPI_Comm* comm : {&early, &part, &late}) MPI_Comm_free(comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "handlers") {
    Handlers();
    return MPI_Finalize();
  }
  MPI_Errhandler count = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(Count, &count);
  for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, count);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (what == "list") List(comm);
  if (what == "lengths") Lengths();
  if (what == "alias") Alias(comm);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&count);
  return MPI_Finalize();
}
