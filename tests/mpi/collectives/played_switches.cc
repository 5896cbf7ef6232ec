// Carries collectives out along a type II tree that the daemon granted, where there are no switches
// that aggregate: played_switches AGENT HOST... The first ranks are the members, one on each host,
// and as many of the others as the tree has serving switches play these: they know no more than a
// switch does, their parent and their children, behind which of these each member is, and take each
// packet from below into one accumulator. Results are compared with the MPI library's own among the
// members. Switches that have a switch for their parent are counted at the end.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "client/library/coppice.h"

namespace {

constexpr int kAll = -1;  // members, as those that want the result

// A node knows packets of different operations apart, as after a reduce not all nodes wait for it.
struct Node {
  int parent = -1;
  std::vector<int> children;
  std::vector<int> behind;  // [member] the child behind which it is; -1: it is not below
  int operation = 0;        // its number, by which packets are tagged

  void Begin() { operation = (operation + 1) % 10000; }
  int Up() const { return 2 * operation; }
  int Down() const { return 2 * operation + 1; }
};

Node MakeNode(const std::vector<int32_t>& parents, int self, int members) {
  Node node;
  node.parent = parents[self];
  node.behind.assign(members, -1);
  for (int other = 0; other < static_cast<int>(parents.size()); ++other) {
    if (parents[other] == self) node.children.push_back(other);
  }
  for (int member = 0; member < members; ++member) {
    for (int at = member; at >= 0; at = parents[at]) {
      if (parents[at] == self) node.behind[member] = at;
    }
  }
  return node;
}

int SwitchesBelowSwitches(const std::vector<int32_t>& parents, int members) {
  return static_cast<int>(
      std::count_if(parents.begin() + members, parents.end(), [](int32_t up) { return up >= 0; }));
}

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

// A switch: all that arrives goes into the accumulator, and on; what comes down goes to all below,
// or on the way to the one member that wants it.
template <typename Value, typename Combine>
void Play(Node* node, MPI_Datatype type, int count, int target, const Combine& combine) {
  node->Begin();
  std::vector<Value> sum;
  std::vector<Value> packet(count);
  for (size_t i = 0; i < node->children.size(); ++i) {
    MPI_Recv(packet.data(), count, type, MPI_ANY_SOURCE, node->Up(), MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    if (sum.empty()) {
      sum = packet;
      continue;
    }
    std::transform(sum.begin(), sum.end(), packet.begin(), sum.begin(), combine);
  }
  if (node->parent >= 0) {
    MPI_Send(sum.data(), count, type, node->parent, node->Up(), MPI_COMM_WORLD);
    if (target != kAll && node->behind[target] < 0) return;
    MPI_Recv(sum.data(), count, type, node->parent, node->Down(), MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }
  for (const int child : node->children) {
    if (target != kAll && node->behind[target] != child) continue;
    MPI_Send(sum.data(), count, type, child, node->Down(), MPI_COMM_WORLD);
  }
}

// A member: its data goes up to its switch, and the result comes down, if it wants that.
template <typename Value>
std::vector<Value> Take(Node* node, MPI_Datatype type, bool wants, std::vector<Value> own) {
  node->Begin();
  const int count = static_cast<int>(own.size());
  MPI_Send(own.data(), count, type, node->parent, node->Up(), MPI_COMM_WORLD);
  if (!wants) return {};
  MPI_Recv(own.data(), count, type, node->parent, node->Down(), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return own;
}

// One allreduce, or a reduce to the target; whether it came out as natively.
template <typename Value, typename Combine>
bool Compare(Node* node, MPI_Comm members, MPI_Datatype type, MPI_Op op, int count, int target,
             int rank, const Combine& combine) {
  if (members == MPI_COMM_NULL) {
    Play<Value>(node, type, count, target, combine);
    return true;
  }
  std::vector<Value> own(count);
  std::vector<Value> native(count);
  for (int i = 0; i < count; ++i) own[i] = static_cast<Value>((rank * 37 + i * 11) % 101 - 50);
  if (target == kAll) {
    PMPI_Allreduce(own.data(), native.data(), count, type, op, members);
    return Take(node, type, true, own) == native;
  }
  PMPI_Reduce(own.data(), native.data(), count, type, op, target, members);
  const std::vector<Value> result = Take(node, type, rank == target, own);
  return rank != target || result == native;
}

// A broadcast is an allreduce to which all but one add nothing; a barrier, one of no data.
bool CompareBcast(Node* node, MPI_Comm members, int root, int rank) {
  const auto combine = [](uint8_t a, uint8_t b) { return static_cast<uint8_t>(a | b); };
  constexpr int kBytes = 5000;
  if (members == MPI_COMM_NULL) {
    Play<uint8_t>(node, MPI_BYTE, kBytes, kAll, combine);
    return true;
  }
  std::vector<uint8_t> own(kBytes, 0);
  for (int i = 0; i < kBytes && rank == root; ++i) own[i] = static_cast<uint8_t>(i * 7 + root);
  std::vector<uint8_t> native = own;
  PMPI_Bcast(native.data(), kBytes, MPI_BYTE, root, members);
  return Take(node, MPI_BYTE, true, own) == native;
}

bool CompareReductions(Node* node, MPI_Comm members, int target, int rank) {
  bool are_equal = true;
  for (const int count : {0, 1, 100, 30000}) {
    are_equal &= Compare<int64_t>(node, members, MPI_INT64_T, MPI_SUM, count, target, rank,
                                  [](int64_t a, int64_t b) { return a + b; });
    are_equal &= Compare<double>(node, members, MPI_DOUBLE, MPI_MAX, count, target, rank,
                                 [](double a, double b) { return std::max(a, b); });
    are_equal &= Compare<double>(node, members, MPI_DOUBLE, MPI_SUM, count, target, rank,
                                 [](double a, double b) { return a + b; });
  }
  return are_equal;
}

bool CompareAll(Node* node, MPI_Comm members, int rank, int ranks) {
  bool are_equal = CompareReductions(node, members, kAll, rank);
  for (int root = 0; root < ranks; ++root) {
    are_equal &= CompareBcast(node, members, root, rank);
    are_equal &= CompareReductions(node, members, root, rank);
  }
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
  MPI_Comm members = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &members);
  int wrong = is_possible ? 0 : 1;
  if (is_possible && rank < nodes) {
    Node node = MakeNode(parents, rank, ranks);
    wrong = CompareAll(&node, members, rank, ranks) ? 0 : 1;
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("members %d switches %d below switches %d wrong %d\n", ranks, nodes - ranks,
                nodes > ranks ? SwitchesBelowSwitches(parents, ranks) : 0, wrong);
  }
  if (members != MPI_COMM_NULL) MPI_Comm_free(&members);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
