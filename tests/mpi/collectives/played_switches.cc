// Carries collectives out along a type II tree that the daemon granted, where there are no switches
// that aggregate: played_switches AGENT HOST... The first ranks are the members, one on each host,
// and as many of the others as the tree has serving switches play these: they know no more than a
// switch does, their parent and their children, and take each packet from below into one
// accumulator. Results are compared with the MPI library's own among the members.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "client/library/coppice.h"

namespace {

constexpr int kUp = 1;
constexpr int kDown = 2;

struct Node {
  int parent = -1;
  std::vector<int> children;
};

// Grants the tree, on rank 0; its nodes' parents, none if that failed. `ranks`: the members.
std::vector<int32_t> Grant(const char* agent, char** hosts, int ranks) {
  coppice_client* client = nullptr;
  coppice_job_request job = COPPICE_INIT(job);
  job.endpoints = hosts;
  job.endpoint_count = static_cast<uint32_t>(ranks);
  uint64_t id = 0;
  coppice_tree_request wanted = COPPICE_INIT(wanted);
  wanted.operation = COPPICE_OPERATION_ALLREDUCE;
  wanted.type = COPPICE_TREE_TYPE_II;
  coppice_tree* tree = nullptr;
  std::vector<int32_t> parents;
  bool is_granted = coppice_open(agent, 20000, &client) == COPPICE_OK &&
                    coppice_job_register(client, &job, &id) == COPPICE_OK;
  wanted.job = id;
  is_granted = is_granted && coppice_tree_create(client, &wanted, &tree) == COPPICE_OK;
  if (!is_granted) {
    std::fprintf(stderr, "no tree: %s\n", coppice_last_error());
  } else if (coppice_tree_kind(tree) == COPPICE_TREE_TYPE_II) {
    const int32_t* const first = coppice_tree_parents(tree);
    parents.assign(first, first + coppice_tree_nodes(tree));
  }
  coppice_tree_free(tree);
  coppice_close(client);
  return parents;
}

// A switch: all that arrives goes into the accumulator, and on; what comes down goes to all below.
template <typename Value, typename Combine>
void Play(const Node& node, MPI_Datatype type, int count, const Combine& combine) {
  std::vector<Value> sum;
  std::vector<Value> packet(count);
  for (size_t i = 0; i < node.children.size(); ++i) {
    MPI_Recv(packet.data(), count, type, MPI_ANY_SOURCE, kUp, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (sum.empty()) {
      sum = packet;
      continue;
    }
    std::transform(sum.begin(), sum.end(), packet.begin(), sum.begin(), combine);
  }
  if (node.parent >= 0) {
    MPI_Send(sum.data(), count, type, node.parent, kUp, MPI_COMM_WORLD);
    MPI_Recv(sum.data(), count, type, node.parent, kDown, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (const int child : node.children) {
    MPI_Send(sum.data(), count, type, child, kDown, MPI_COMM_WORLD);
  }
}

// A member: its data goes up to its switch, and the result comes down.
template <typename Value>
std::vector<Value> Take(const Node& node, MPI_Datatype type, std::vector<Value> own) {
  const int count = static_cast<int>(own.size());
  MPI_Send(own.data(), count, type, node.parent, kUp, MPI_COMM_WORLD);
  MPI_Recv(own.data(), count, type, node.parent, kDown, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return own;
}

// One allreduce; whether it came out as natively.
template <typename Value, typename Combine>
bool Compare(const Node& node, MPI_Comm members, MPI_Datatype type, MPI_Op op, int count, int rank,
             const Combine& combine) {
  if (members == MPI_COMM_NULL) {
    Play<Value>(node, type, count, combine);
    return true;
  }
  std::vector<Value> own(count);
  std::vector<Value> native(count);
  for (int i = 0; i < count; ++i) own[i] = static_cast<Value>((rank * 37 + i * 11) % 101 - 50);
  PMPI_Allreduce(own.data(), native.data(), count, type, op, members);
  return Take(node, type, own) == native;
}

// A broadcast is an allreduce to which all but one add nothing; a barrier, one of no data.
bool CompareBcast(const Node& node, MPI_Comm members, int root, int rank) {
  const auto combine = [](uint8_t a, uint8_t b) { return static_cast<uint8_t>(a | b); };
  constexpr int kBytes = 5000;
  if (members == MPI_COMM_NULL) {
    Play<uint8_t>(node, MPI_BYTE, kBytes, combine);
    return true;
  }
  std::vector<uint8_t> own(kBytes, 0);
  for (int i = 0; i < kBytes && rank == root; ++i) own[i] = static_cast<uint8_t>(i * 7 + root);
  std::vector<uint8_t> native = own;
  PMPI_Bcast(native.data(), kBytes, MPI_BYTE, root, members);
  return Take(node, MPI_BYTE, own) == native;
}

bool CompareAll(const Node& node, MPI_Comm members, int rank, int ranks) {
  bool are_equal = true;
  for (const int count : {0, 1, 100, 30000}) {
    are_equal &= Compare<int64_t>(node, members, MPI_INT64_T, MPI_SUM, count, rank,
                                  [](int64_t a, int64_t b) { return a + b; });
    are_equal &= Compare<double>(node, members, MPI_DOUBLE, MPI_MAX, count, rank,
                                 [](double a, double b) { return std::max(a, b); });
    are_equal &= Compare<double>(node, members, MPI_DOUBLE, MPI_SUM, count, rank,
                                 [](double a, double b) { return a + b; });
  }
  for (int root = 0; root < ranks; ++root) are_equal &= CompareBcast(node, members, root, rank);
  return are_equal;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int ranks = argc - 2;
  std::vector<int32_t> parents;
  if (rank == 0) parents = Grant(argv[1], argv + 2, ranks);
  int nodes = static_cast<int>(parents.size());
  MPI_Bcast(&nodes, 1, MPI_INT, 0, MPI_COMM_WORLD);
  parents.resize(nodes);
  MPI_Bcast(parents.data(), nodes, MPI_INT32_T, 0, MPI_COMM_WORLD);
  const bool is_possible = nodes > ranks && nodes <= size;
  Node node;
  for (int other = 0; other < nodes; ++other) {
    if (parents[other] == rank) node.children.push_back(other);
  }
  if (rank < nodes) node.parent = parents[rank];
  MPI_Comm members = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &members);
  int wrong = is_possible ? 0 : 1;
  if (is_possible && rank < nodes) wrong = CompareAll(node, members, rank, ranks) ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("members %d switches %d wrong %d\n", ranks, nodes - ranks, wrong);
  }
  if (members != MPI_COMM_NULL) MPI_Comm_free(&members);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
