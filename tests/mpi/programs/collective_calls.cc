#include "tests/mpi/programs/collective_calls.h"

#include <mpi.h>

#include <functional>
#include <map>
#include <vector>

namespace coppice::patterns {
namespace {

using Calls = std::map<std::string, std::function<void()>>;

void Wait(MPI_Request request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

// MPICH 4.0 starts a scatter of three ranks or more once only.
[[maybe_unused]] void Start(const std::string& name, MPI_Request request) {
  for (int turn = 0; turn < (name == "scatter" ? 1 : 3); ++turn) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
}

// A collective in all its forms, with the same arguments.
#define COPPICE_TWO_FORMS(NAME, CAPITAL, ...)     \
  {#NAME, [=] { MPI_##CAPITAL(__VA_ARGS__); }}, { \
    "i" #NAME, [=] {                              \
      MPI_Request request = MPI_REQUEST_NULL;     \
      MPI_I##NAME(__VA_ARGS__, &request);         \
      Wait(request);                              \
    }                                             \
  }
#if MPI_VERSION >= 4
#define COPPICE_FORMS(NAME, CAPITAL, ...)          \
  COPPICE_TWO_FORMS(NAME, CAPITAL, __VA_ARGS__), { \
#NAME "_init", [=] { \
    MPI_Request request = MPI_REQUEST_NULL;                           \
    MPI_##CAPITAL##_init(__VA_ARGS__, MPI_INFO_NULL, &request);       \
    Start(#NAME, request);                                             \
  }                             \
  }
#else
#define COPPICE_FORMS COPPICE_TWO_FORMS
#endif

// Counts and places of each rank's part.
struct Parts {
  std::vector<int> counts, at, wide_at;  // the last of two bytes each
  std::vector<MPI_Datatype> types;       // one byte, or two for odd ranks

  void Add(int count, MPI_Datatype type) {
    at.push_back(counts.empty() ? 0 : at.back() + counts.back());
    wide_at.push_back(2 * at.back());
    counts.push_back(count);
    types.push_back(type);
  }
};

MPI_Datatype TypeOf(int rank) { return rank % 2 == 0 ? MPI_CHAR : MPI_SHORT; }

struct World {
  int rank = 0, size = 1, bytes;
  // By sender: rank r has r * bytes for each. By receiver: each has 3 * to * bytes for rank `to`.
  Parts by_sender, to_receivers, from_senders;
  char *out, *in;

  World(int unit, std::vector<char>* sent, std::vector<char>* received) : bytes(unit) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int other = 0; other < size; ++other) {
      by_sender.Add(other * bytes, MPI_CHAR);
      to_receivers.Add(3 * other * bytes, TypeOf(other));
      from_senders.Add(3 * rank * bytes, TypeOf(rank));
    }
    for (std::vector<char>* buffer : {sent, received}) {
      buffer->resize(static_cast<size_t>(8) * size * size * bytes + bytes + 1);
    }
    out = sent->data();
    in = received->data();
  }
};

Calls CallsOfWorld(const World& w, int root) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  const MPI_Datatype number = MPI_UNSIGNED_CHAR;
  const int n = w.bytes, own = w.rank * n;
  const Parts &all = w.by_sender, &to = w.to_receivers, &from = w.from_senders;
  char *const out = w.out, *const in = w.in;
  const int* const each = all.counts.data();
  const int* const each_at = all.at.data();
  const int* const sent = to.counts.data();
  const int* const got = from.counts.data();
  return {
      COPPICE_FORMS(barrier, Barrier, comm),
      COPPICE_FORMS(bcast, Bcast, out, n, MPI_CHAR, root, comm),
      COPPICE_FORMS(reduce, Reduce, out, in, n, number, MPI_MAX, root, comm),
      COPPICE_FORMS(allreduce, Allreduce, out, in, n, number, MPI_MAX, comm),
      {"allreduce_in_place", [=] { MPI_Allreduce(MPI_IN_PLACE, in, n, number, MPI_MAX, comm); }},
      COPPICE_FORMS(scan, Scan, out, in, n, number, MPI_MAX, comm),
      COPPICE_FORMS(exscan, Exscan, out, in, n, number, MPI_MAX, comm),
      COPPICE_FORMS(reduce_scatter, Reduce_scatter, out, in, each, number, MPI_MAX, comm),
      COPPICE_FORMS(reduce_scatter_block, Reduce_scatter_block, out, in, n, number, MPI_MAX, comm),
      COPPICE_FORMS(gather, Gather, out, n, MPI_CHAR, in, n, MPI_CHAR, root, comm),
      COPPICE_FORMS(gatherv, Gatherv, out, own, MPI_CHAR, in, each, each_at, MPI_CHAR, root, comm),
      COPPICE_FORMS(scatter, Scatter, out, n, MPI_CHAR, in, n, MPI_CHAR, root, comm),
      COPPICE_FORMS(scatterv, Scatterv, out, sent, to.at.data(), MPI_CHAR, in, got[0], MPI_CHAR,
                    root, comm),
      COPPICE_FORMS(allgather, Allgather, out, n, MPI_CHAR, in, n, MPI_CHAR, comm),
      COPPICE_FORMS(allgatherv, Allgatherv, out, own, MPI_CHAR, in, each, each_at, MPI_CHAR, comm),
      COPPICE_FORMS(alltoall, Alltoall, out, n, MPI_CHAR, in, n, MPI_CHAR, comm),
      {"alltoall_in_place",
       [=] { MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, n, MPI_CHAR, comm); }},
      COPPICE_FORMS(alltoallv, Alltoallv, out, sent, to.at.data(), MPI_CHAR, in, got,
                    from.at.data(), MPI_CHAR, comm),
      COPPICE_FORMS(alltoallw, Alltoallw, out, sent, to.wide_at.data(), to.types.data(), in, got,
                    from.wide_at.data(), from.types.data(), comm)};
}

// All ranks in a ring. What goes to place 0 of a rank's neighbours comes from place 1.
MPI_Comm Ring(const World& w, int topology) {
  MPI_Comm ring = MPI_COMM_NULL;
  const int next = (w.rank + 1) % w.size, last = (w.rank + w.size - 1) % w.size, wraps = 1;
  const int neighbours[] = {next, last};
  if (topology == 0) MPI_Cart_create(MPI_COMM_WORLD, 1, &w.size, &wraps, 0, &ring);
  if (topology == 1) {
    std::vector<int> index, edges;
    for (int rank = 0; rank < w.size; ++rank) {
      edges.push_back((rank + 1) % w.size);
      edges.push_back((rank + w.size - 1) % w.size);
      index.push_back(static_cast<int>(edges.size()));
    }
    MPI_Graph_create(MPI_COMM_WORLD, w.size, index.data(), edges.data(), 0, &ring);
  }
  if (topology == 2) {
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, neighbours, MPI_UNWEIGHTED, 2, neighbours,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  }
  return ring;
}

struct RingParts {
  // n elements to place 0 and 2 * n to place 1, these of two bytes in alltoallw; allgatherv sends
  // (rank + 1) * n.
  int sent[2], got[2], at[2], all[2], all_at[2];
  MPI_Aint wide_at[2];
  MPI_Datatype sent_types[2] = {MPI_CHAR, MPI_SHORT}, got_types[2] = {MPI_SHORT, MPI_CHAR};
};

Calls CallsOfRing(const World& w, MPI_Comm ring, const RingParts& p) {
  const int n = w.bytes, own = (w.rank + 1) * n;
  char *const out = w.out, *const in = w.in;
  const RingParts* const parts = &p;
  return {
      COPPICE_FORMS(neighbor_allgather, Neighbor_allgather, out, n, MPI_CHAR, in, n, MPI_CHAR,
                    ring),
      COPPICE_FORMS(neighbor_allgatherv, Neighbor_allgatherv, out, own, MPI_CHAR, in, parts->all,
                    parts->all_at, MPI_CHAR, ring),
      COPPICE_FORMS(neighbor_alltoall, Neighbor_alltoall, out, n, MPI_CHAR, in, n, MPI_CHAR, ring),
      COPPICE_FORMS(neighbor_alltoallv, Neighbor_alltoallv, out, parts->sent, parts->at, MPI_CHAR,
                    in, parts->got, parts->at, MPI_CHAR, ring),
      COPPICE_FORMS(neighbor_alltoallw, Neighbor_alltoallw, out, parts->sent, parts->wide_at,
                    parts->sent_types, in, parts->got, parts->wide_at, parts->got_types, ring)};
}

bool CallOfRing(const World& w, const std::string& name, int topology) {
  const int n = w.bytes;
  const int before = (w.rank + w.size - 1) % w.size, after = (w.rank + 1) % w.size;
  const int first = topology == 0 ? before : after, second = topology == 0 ? after : before;
  const int most = w.size * n;
  const RingParts parts = {{n, 2 * n}, {2 * n, n},
                           {0, 2 * n}, {(first + 1) * n, (second + 1) * n},
                           {0, most},  {0, MPI_Aint{4} * n}};
  MPI_Comm ring = Ring(w, topology);
  const Calls calls = CallsOfRing(w, ring, parts);
  const auto call = calls.find(name);
  if (call != calls.end()) call->second();
  MPI_Comm_free(&ring);
  return call != calls.end();
}

}  // namespace

bool CallCollective(const std::string& name, int bytes, int more) {
  std::vector<char> sent, received;
  const World world(bytes, &sent, &received);
  if (name.find("neighbor") != std::string::npos) return CallOfRing(world, name, more);
  const Calls calls = CallsOfWorld(world, more);
  const auto call = calls.find(name);
  if (call == calls.end()) return false;
  call->second();
  return true;
}

}  // namespace coppice::patterns
