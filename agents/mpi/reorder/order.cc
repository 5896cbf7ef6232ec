#include "agents/mpi/reorder/order.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <tuple>

#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/core/session.h"

namespace coppice::mpi {
namespace {

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
  try {
    if (agree != 0) room->resize(numbers / 3);
  } catch (const std::exception&) {  // no memory
    agree = 0;
  }
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
bool Ask(Session& session, int nodes, const std::vector<Hello>& all, std::vector<Edge> edges,
         std::vector<int>* process_of_node, int* wasted_ms) {
  const EdgeSums sums = AddUp(std::move(edges));
  if (sums.from.empty()) return false;  // nobody talks: any order is as good
  std::vector<const char*> hosts;
  for (const Hello& hello : all) hosts.push_back(hello.host);
  coppice_map_request request = {};
  request.size = sizeof(request);
  request.hosts = hosts.data();
  request.host_count = static_cast<uint32_t>(hosts.size());
  request.ranks_per_host = 1;
  request.rank_count = static_cast<uint32_t>(nodes);
  request.pair_count = sums.from.size();
  request.from = sums.from.data();
  request.to = sums.to.data();
  request.bytes = sums.weights.data();
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

}  // namespace

bool MayReorder(MPI_Comm comm) {
  const Session& session = Session::Get();
  if (!session.IsUp() || !session.settings().reorder || session.Job() == 0) return false;
  int is_inter = 1;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter) {
    return false;
  }
  return IsWithinWorld(comm);
}

bool FindOrder(MPI_Comm comm, int nodes, bool valid, const std::vector<Edge>& edges,
               std::vector<int>* process_of_node) {
  Session& session = Session::Get();
  int rank = 0, size = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
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
      told.is_found =
          Ask(session, nodes, all, std::move(gathered), process_of_node, &told.wasted_ms);
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

std::vector<int> NodeOfProcess(const std::vector<int>& process_of_node, int processes) {
  std::vector<int> nodes(processes, -1);
  for (size_t node = 0; node < process_of_node.size(); ++node) {
    const int process = process_of_node[node];
    if (process < 0 || process >= processes || nodes[process] >= 0) return {};  // no order
    nodes[process] = static_cast<int>(node);
  }
  return nodes;
}

EdgeSums AddUp(std::vector<Edge> edges) {
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  });
  EdgeSums sums;
  const Edge* last = nullptr;
  for (const Edge& edge : edges) {
    if (edge.from == edge.to || edge.weight <= 0) continue;
    if (last != nullptr && last->from == edge.from && last->to == edge.to) {
      sums.weights.back() += edge.weight;
      continue;
    }
    sums.from.push_back(static_cast<uint32_t>(edge.from));
    sums.to.push_back(static_cast<uint32_t>(edge.to));
    sums.weights.push_back(edge.weight);
    last = &edge;
  }
  return sums;
}

std::vector<Edge> GridEdges(const std::vector<int>& sizes, const std::vector<bool>& wraps) {
  int nodes = 1;
  for (const int size : sizes) nodes *= size;
  std::vector<Edge> edges;
  for (int node = 0; node < nodes; ++node) {
    int stride = nodes;
    for (size_t dimension = 0; dimension < sizes.size(); ++dimension) {
      const int size = sizes[dimension];
      stride /= size;
      const int at = node / stride % size;
      for (const int step : {-1, 1}) {
        int other = at + step;
        if (wraps[dimension]) other = (other + size) % size;
        if (other >= 0 && other < size) edges.push_back({node, node + (other - at) * stride, 1});
      }
    }
  }
  return edges;
}

}  // namespace coppice::mpi
