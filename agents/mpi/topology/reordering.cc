#include "agents/mpi/topology/reordering.h"

#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/tree_collectives.h"

namespace coppice::mpi {
namespace {

// Node `from` sends `weight` to node `to`.
struct Edge {
  int32_t from, to, weight;
};
static_assert(sizeof(Edge) == 3 * sizeof(int32_t));  // as it is gathered

// A topology with more edges is left as it is: its pattern would take gigabytes at the leader.
constexpr int kMaxEdges = 4'000'000;
static_assert(kMaxEdges < INT_MAX / 4);  // ranks and weights of a node's both ways fit one message

// What each process is then: its node; -1: none.
std::vector<int> NodeOfProcess(const std::vector<int>& process_of_node, int processes) {
  std::vector<int> nodes(processes, -1);
  for (size_t node = 0; node < process_of_node.size(); ++node) {
    const int process = process_of_node[node];
    if (process < 0 || process >= processes || nodes[process] >= 0) return {};  // no order
    nodes[process] = static_cast<int>(node);
  }
  return nodes;
}

// Both ends of every edge of a grid, whose nodes are numbered with the last dimension fastest.
std::vector<Edge> GridEdges(const Grid& grid, int nodes) {
  std::vector<Edge> edges;
  for (int node = 0; node < nodes; ++node) {
    int stride = nodes;
    for (int dimension = 0; dimension < grid.dimensions; ++dimension) {
      const int size = grid.sizes[dimension];
      stride /= size;
      const int at = node / stride % size;
      for (const int step : {-1, 1}) {
        int other = at + step;
        if (grid.periods[dimension] != 0) other = (other + size) % size;
        if (other >= 0 && other < size) edges.push_back({node, node + (other - at) * stride, 1});
      }
    }
  }
  return edges;
}

constexpr int kLeader = 0;
constexpr int kPresetBudgetMs = 1000;  // of coppice_map_request
// Of the present order's objective: an order that is hardly better gains less than it costs to make
// the communicator, and than what is measured from one run to the next.
constexpr double kWorthIt = 0.98;

// What each member says first.
struct Hello {
  int32_t valid, edges;
  char host[sizeof(coppice_capabilities::host)];
};

Hello HelloOf(const Session& session, bool valid, size_t edges) {
  Hello hello = {};
  hello.valid = valid && edges <= kMaxEdges && !session.host().empty();
  hello.edges = hello.valid ? static_cast<int32_t>(3 * edges) : 0;  // numbers
  std::memcpy(hello.host, session.host().data(), session.host().size());
  return hello;
}

// Collective: whether all members are valid; at the leader their hosts, how much each sends, and
// room for it.
bool AllAgree(MPI_Comm comm, int size, const Hello& own, bool is_leader, std::vector<Hello>* all,
              std::vector<Edge>* room) {
  all->resize(is_leader ? size : 0);
  PMPI_Gather(&own, sizeof(own), MPI_BYTE, all->data(), sizeof(own), MPI_BYTE, kLeader, comm);
  int agree = 1;
  int64_t numbers = 0;
  for (const Hello& hello : *all) {
    if (!hello.valid) agree = 0;
    numbers += hello.edges;
  }
  if (numbers > 3 * static_cast<int64_t>(kMaxEdges)) agree = 0;
  const auto make_room = [&] {
    room->resize(numbers / 3);
    return true;
  };
  if (agree != 0 && !HasMemoryFor(make_room)) agree = 0;
  PMPI_Bcast(&agree, 1, MPI_INT, kLeader, comm);
  return agree != 0;
}

// Collective: all edges at the leader.
void GatherEdges(MPI_Comm comm, const std::vector<Edge>& own, const std::vector<Hello>& all,
                 std::vector<Edge>* edges) {
  std::vector<int> counts, offsets;
  int numbers = 0;
  for (const Hello& hello : all) {
    counts.push_back(hello.edges);
    offsets.push_back(numbers);
    numbers += hello.edges;
  }
  PMPI_Gatherv(own.data(), static_cast<int>(3 * own.size()), MPI_INT32_T, edges->data(),
               counts.data(), offsets.data(), MPI_INT32_T, kLeader, comm);
}

// At the leader. False, with a word to the user: no order. *wasted_ms: what it waited in vain.
bool Ask(Session& session, int nodes, const std::vector<Hello>& all, const std::vector<Edge>& edges,
         std::vector<int>* process_of_node, int* wasted_ms) {
  std::vector<uint32_t> from, to;  // a pair may be there several times
  std::vector<double> weights;
  for (const Edge& edge : edges) {
    if (edge.from == edge.to || edge.weight <= 0) continue;
    from.push_back(static_cast<uint32_t>(edge.from));
    to.push_back(static_cast<uint32_t>(edge.to));
    weights.push_back(edge.weight);
  }
  if (from.empty()) return false;  // nobody talks: any order is as good
  std::vector<const char*> hosts;
  for (const Hello& hello : all) hosts.push_back(hello.host);
  coppice_map_request request = {};
  request.size = sizeof(request);
  request.hosts = hosts.data();
  request.host_count = static_cast<uint32_t>(hosts.size());
  request.ranks_per_host = 1;
  request.rank_count = static_cast<uint32_t>(nodes);
  request.pair_count = from.size();
  request.from = from.data();
  request.to = to.data();
  request.bytes = weights.data();
  request.budget_ms = static_cast<uint32_t>(session.settings().reorder_budget_ms);
  coppice_order* order = nullptr;
  // The search for an order takes what it may: that is asked for.
  const int budget_ms =
      request.budget_ms == 0 ? kPresetBudgetMs : session.settings().reorder_budget_ms;
  const Session::Answer answer =
      session.Ask([&](coppice_client* client) { return coppice_map(client, &request, &order); },
                  std::chrono::milliseconds(budget_ms));
  *wasted_ms = answer.wasted_ms;
  if (answer.status != COPPICE_OK) {
    session.Say("ranks stay as they are: " + answer.why_not);
    return false;
  }
  const uint32_t* const positions = coppice_order_positions(order);
  const bool fits = coppice_order_ranks(order) >= static_cast<uint32_t>(nodes);
  if (fits) process_of_node->assign(positions, positions + nodes);
  const double score = coppice_order_score(order);
  const bool is_worth_it = score <= kWorthIt;
  session.Say("order of " + std::to_string(nodes) + " nodes on " + std::to_string(hosts.size()) +
              " processes: " + std::to_string(score) + " of the present one" +
              (is_worth_it ? ". " : ", which is less than 2 % better: ranks stay as they are. ") +
              coppice_order_reason(order));
  coppice_order_free(order);
  return fits && is_worth_it &&
         !NodeOfProcess(*process_of_node, static_cast<int>(all.size())).empty();
}

// Whether Coppice is asked at all: the same at all members. Not if some are of another world, which
// may have no job, other settings or no library. O(members).
bool MayReorder(MPI_Comm comm) {
  const Session& session = Session::Get();
  if (!session.IsUp() || !session.settings().reorder || session.Job() == 0) return false;
  int is_inter = 1;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter) {
    return false;
  }
  return IsWithinWorld(comm);
}

// Collective over `comm`. `nodes` is at most its size and the same at all members; `edges` are any
// part of the topology's, each at one member. False, at all members: there is no order: a member
// says that its arguments are not `valid`, a host is not known, Coppice is away or says no.
// Else process_of_node[i] is the rank in `comm` of the process that node i goes to.
bool FindOrder(MPI_Comm comm, int nodes, bool valid, const std::vector<Edge>& edges,
               std::vector<int>* process_of_node) {
  Session& session = Session::Get();
  const int rank = RankIn(comm), size = SizeOf(comm);
  std::vector<Hello> all;
  const Hello own = HelloOf(session, valid, edges.size());
  std::vector<Edge> gathered;
  process_of_node->resize(valid ? nodes : 0);
  if (!AllAgree(comm, size, own, rank == kLeader, &all, &gathered)) return false;
  GatherEdges(comm, edges, all, &gathered);
  struct {
    int is_found = 0, wasted_ms = 0;
  } told;
  try {
    if (rank == kLeader) {
      told.is_found = Ask(session, nodes, all, gathered, process_of_node, &told.wasted_ms);
    }
  } catch (const std::exception& error) {  // no memory
    session.Say(std::string("ranks stay as they are: ") + error.what());
  }
  PMPI_Bcast(&told, 2, MPI_INT, kLeader, comm);
  if (rank != kLeader) session.WaitedForOthers(told.wasted_ms);
  if (!told.is_found) return false;
  PMPI_Bcast(process_of_node->data(), nodes, MPI_INT, kLeader, comm);
  return true;
}

constexpr int kTag = 0;

bool IsWeighted(const int* weights) { return weights != MPI_UNWEIGHTED; }

// Ranks below `size` and weights from 0 up, or none of either.
bool AreValid(int count, const int* ranks, const int* weights, int size) {
  if (count < 0) return false;
  if (count == 0) return true;
  const bool has_weights = IsWeighted(weights);
  if (ranks == nullptr || (has_weights && (weights == nullptr || weights == MPI_WEIGHTS_EMPTY))) {
    return false;
  }
  for (int i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= size || (has_weights && weights[i] < 0)) return false;
  }
  return true;
}

// All edges that this process names. False: its arguments are none.
bool EdgesOf(const DistGraph& graph, int size, std::vector<Edge>* edges) {
  if (!AreValid(graph.count, graph.sources, MPI_UNWEIGHTED, size)) return false;
  int64_t all = 0;
  for (int i = 0; i < graph.count; ++i) {
    if (graph.degrees == nullptr || graph.degrees[i] < 0) return false;
    all += graph.degrees[i];
  }
  if (all > kMaxEdges ||
      !AreValid(static_cast<int>(all), graph.destinations, graph.weights, size)) {
    return false;
  }
  edges->reserve(all);
  int at = 0;
  for (int i = 0; i < graph.count; ++i) {
    for (int j = 0; j < graph.degrees[i]; ++j, ++at) {
      const int weight = IsWeighted(graph.weights) ? graph.weights[at] : 1;
      edges->push_back({graph.sources[i], graph.destinations[at], weight});
    }
  }
  return true;
}

// The same of the edges that go out from `rank`.
bool EdgesOf(const AdjacentGraph& graph, int rank, int size, std::vector<Edge>* edges) {
  if (!AreValid(graph.in_degree, graph.sources, graph.in_weights, size) ||
      !AreValid(graph.out_degree, graph.destinations, graph.out_weights, size) ||
      graph.in_degree > kMaxEdges || graph.out_degree > kMaxEdges) {
    return false;
  }
  for (int i = 0; i < graph.out_degree; ++i) {
    const int weight = IsWeighted(graph.out_weights) ? graph.out_weights[i] : 1;
    edges->push_back({rank, graph.destinations[i], weight});
  }
  return true;
}

// What a process says of its node's neighbours, as it is sent to who becomes that node: how many
// there are and whether they have weights, then sources, their weights, destinations, their
// weights.
std::vector<int> Packed(const AdjacentGraph& graph) {
  std::vector<int> numbers = {graph.in_degree, graph.out_degree, IsWeighted(graph.in_weights),
                              IsWeighted(graph.out_weights)};
  const auto append = [&](const int* values, int count) {
    if (count > 0) numbers.insert(numbers.end(), values, values + count);
  };
  append(graph.sources, graph.in_degree);
  if (IsWeighted(graph.in_weights)) append(graph.in_weights, graph.in_degree);
  append(graph.destinations, graph.out_degree);
  if (IsWeighted(graph.out_weights)) append(graph.out_weights, graph.out_degree);
  return numbers;
}

// Valid as long as `numbers` are.
AdjacentGraph Unpacked(const std::vector<int>& numbers) {
  const int in = numbers[0], out = numbers[1];
  const int* const sources = &numbers[0] + 4;
  const int* const destinations = sources + static_cast<size_t>(in) * (1 + numbers[2]);
  const auto weights = [](const int* ranks, int count, bool are_weighted) -> const int* {
    if (!are_weighted) return MPI_UNWEIGHTED;
    return count == 0 ? MPI_WEIGHTS_EMPTY : ranks + count;
  };
  return {in,  sources,      weights(sources, in, numbers[2] != 0),
          out, destinations, weights(destinations, out, numbers[3] != 0)};
}

// Sends `own` to `to` and returns what `from` sends.
std::vector<int> Exchange(const std::vector<int>& own, int to, int from, MPI_Comm comm) {
  const int size = static_cast<int>(own.size());
  int other_size = 0;
  PMPI_Sendrecv(&size, 1, MPI_INT, to, kTag, &other_size, 1, MPI_INT, from, kTag, comm,
                MPI_STATUS_IGNORE);
  std::vector<int> other(other_size);
  PMPI_Sendrecv(own.data(), size, MPI_INT, to, kTag, other.data(), other_size, MPI_INT, from, kTag,
                comm, MPI_STATUS_IGNORE);
  return other;
}

// How many nodes it has; 0: its arguments are none, or it has more than `size`.
int NodesOf(const Grid& grid, int size) {
  if (grid.dimensions < 1 || grid.sizes == nullptr || grid.periods == nullptr) return 0;
  int64_t nodes = 1;
  for (int dimension = 0; dimension < grid.dimensions; ++dimension) {
    if (grid.sizes[dimension] < 1) return 0;
    nodes *= grid.sizes[dimension];
    if (nodes > size) return 0;
  }
  return static_cast<int>(nodes);
}

// Collective: what `make` makes of `comm` in the order that was found. All members take the same
// way, here and in the functions below: true: *made was made and *error is what MPI returns; false:
// nothing was made, and the native call is to be made.
template <typename Make>
bool MakeInOrder(MPI_Comm comm, int nodes, bool valid, const std::vector<Edge>& edges,
                 MPI_Comm* made, int* error, const Make& make) {
  std::vector<int> process_of_node;
  if (!FindOrder(comm, nodes, valid, edges, &process_of_node)) return false;
  MPI_Comm reordered = MPI_COMM_NULL;
  *made = MPI_COMM_NULL;
  const int node = NodeOfProcess(process_of_node, SizeOf(comm))[RankIn(comm)];  // -1: none
  *error = PMPI_Comm_split(comm, node < 0 ? MPI_UNDEFINED : 0, node, &reordered);
  if (*error != MPI_SUCCESS || reordered == MPI_COMM_NULL) return true;
  *error = make(reordered, process_of_node);
  PMPI_Comm_free(&reordered);
  return true;
}

}  // namespace

bool ReorderDistGraph(MPI_Comm comm, const DistGraph& graph, MPI_Info info, MPI_Comm* made,
                      int* error) {
  if (!MayReorder(comm)) return false;
  const int size = SizeOf(comm);
  std::vector<Edge> edges;
  const bool valid = HasMemoryFor([&] { return EdgesOf(graph, size, &edges); });
  return MakeInOrder(comm, size, valid, edges, made, error, [&](MPI_Comm reordered, const auto&) {
    return PMPI_Dist_graph_create(reordered, graph.count, graph.sources, graph.degrees,
                                  graph.destinations, graph.weights, info, 0, made);
  });
}

bool ReorderAdjacentGraph(MPI_Comm comm, const AdjacentGraph& graph, MPI_Info info, MPI_Comm* made,
                          int* error) {
  if (!MayReorder(comm)) return false;
  const int size = SizeOf(comm), rank = RankIn(comm);
  std::vector<Edge> edges;
  const bool valid = HasMemoryFor([&] { return EdgesOf(graph, rank, size, &edges); });
  // Node `rank` was described here; who is node `node` now, here, was described at old rank `node`.
  const auto make = [&](MPI_Comm reordered, const std::vector<int>& process_of_node) {
    const std::vector<int> node_of_process = NodeOfProcess(process_of_node, size);
    const int node = node_of_process[rank];
    const std::vector<int> numbers =
        Exchange(Packed(graph), rank, node_of_process[node], reordered);
    const AdjacentGraph its = Unpacked(numbers);
    return PMPI_Dist_graph_create_adjacent(reordered, its.in_degree, its.sources, its.in_weights,
                                           its.out_degree, its.destinations, its.out_weights, info,
                                           0, made);
  };
  return MakeInOrder(comm, size, valid, edges, made, error, make);
}

bool ReorderGrid(MPI_Comm comm, const Grid& grid, MPI_Comm* made, int* error) {
  if (!MayReorder(comm)) return false;
  const int nodes = NodesOf(grid, SizeOf(comm));
  std::vector<Edge> edges;
  const bool valid = nodes > 0 && HasMemoryFor([&] {
                       if (RankIn(comm) == 0) edges = GridEdges(grid, nodes);
                       return true;
                     });
  return MakeInOrder(comm, nodes, valid, edges, made, error, [&](MPI_Comm reordered, const auto&) {
    return PMPI_Cart_create(reordered, grid.dimensions, grid.sizes, grid.periods, 0, made);
  });
}

}  // namespace coppice::mpi
