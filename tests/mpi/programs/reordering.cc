// Makes topologies with reorder = true, holds what comes back against what was asked for, and sends
// along their edges, so that a trace shows where bytes go.
//
//   reordering grid PERIODIC SIZE...     a grid, of all ranks or of fewer
//   reordering adjacent SEED             a random graph, each rank naming its own neighbours
//   reordering anywhere SEED             the same, each rank naming edges of other ranks
//   reordering wrong                     arguments that are none: the MPI library's error
//
// --bytes=N before these: along an edge, for each unit of its weight; else 1000.
//
// Rank 0 of the world prints "order: P...": the rank of the world that each node went to. A
// topology that is not what was asked for ends the program with status 3 and a word why.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

int unit_bytes = 1000;  // along an edge, for each unit of its weight

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "reordering: %s\n", what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 3);
  std::abort();
}
void Check(bool holds, const char* what) {
  if (!holds) Fail(what);
}

int RankOf(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}
int SizeOf(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

// Gathers by messages whose bytes are none of the trace's: at rank 0 of the world, nodes'
// processes.
void PrintOrder(MPI_Comm made, int nodes) {
  const int node = made == MPI_COMM_NULL ? -1 : RankOf(made), size = SizeOf(MPI_COMM_WORLD);
  std::vector<int> all(size), order(nodes, -1);
  PMPI_Gather(&node, 1, MPI_INT, all.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (RankOf(MPI_COMM_WORLD) != 0) return;
  int members = 0;
  for (int rank = 0; rank < size; ++rank) {
    if (all[rank] < 0) continue;
    Check(all[rank] < nodes && order[all[rank]] < 0, "two processes are one node");
    order[all[rank]] = rank;
    ++members;
  }
  Check(members == nodes, "a node is nobody");
  std::printf("order:");
  for (const int process : order) std::printf(" %d", process);
  std::printf("\n");
}

void Grid(const std::vector<int>& sizes, bool wraps) {
  const int dimensions = static_cast<int>(sizes.size());
  const std::vector<int> periods(dimensions, wraps);
  int nodes = 1;
  for (const int size : sizes) nodes *= size;
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, sizes.data(), periods.data(), 1, &grid);
  if (grid != MPI_COMM_NULL) {
    int topology = 0;
    MPI_Topo_test(grid, &topology);
    Check(topology == MPI_CART && SizeOf(grid) == nodes, "the grid is no grid of its size");
    std::vector<int> got(dimensions), got_periods(dimensions), at(dimensions);
    MPI_Cart_get(grid, dimensions, got.data(), got_periods.data(), at.data());
    Check(got == sizes && got_periods == periods, "sizes or periods are others");
    int node = 0;
    for (int d = 0; d < dimensions; ++d) node = node * sizes[d] + at[d];
    Check(node == RankOf(grid), "a rank has not the coordinates of its number");
    std::vector<char> out(2 * dimensions * unit_bytes), in = out;
    MPI_Neighbor_alltoall(out.data(), unit_bytes, MPI_CHAR, in.data(), unit_bytes, MPI_CHAR, grid);
  }
  PrintOrder(grid, nodes);
  if (grid != MPI_COMM_NULL) MPI_Comm_free(&grid);
}

struct Edge {
  int from, to, weight;
  bool operator<(const Edge& other) const {
    if (from != other.from) return from < other.from;
    return to != other.to ? to < other.to : weight < other.weight;
  }
  bool operator==(const Edge&) const = default;
};

// The same everywhere: most edges within shuffled groups of 4, some anywhere, weights of 1 to 9.
std::vector<Edge> RandomGraph(unsigned seed, int ranks) {
  std::mt19937 random(seed);
  std::vector<int> shuffled(ranks);
  for (int i = 0; i < ranks; ++i) shuffled[i] = i;
  for (int i = ranks - 1; i > 0; --i) std::swap(shuffled[i], shuffled[random() % (i + 1)]);
  std::map<std::pair<int, int>, int> weights;
  for (int i = 0; i < 8 * ranks; ++i) {
    const int a = static_cast<int>(random() % ranks);
    const int b = i % 4 == 0 ? static_cast<int>(random() % ranks)
                             : std::min<int>(ranks - 1, a / 4 * 4 + static_cast<int>(random() % 4));
    if (a != b) weights[{shuffled[a], shuffled[b]}] = 1 + static_cast<int>(random() % 9);
  }
  std::vector<Edge> edges;
  for (const auto& [pair, weight] : weights) edges.push_back({pair.first, pair.second, weight});
  return edges;
}

struct Neighbours {
  std::vector<int> sources, in_weights, destinations, out_weights;
  int weighted = 0;
};

Neighbours NeighboursOf(MPI_Comm graph) {
  int in = 0, out = 0;
  Neighbours n;
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &n.weighted);
  n.sources.resize(in + 1);  // never a null pointer
  n.in_weights.resize(in + 1);
  n.destinations.resize(out + 1);
  n.out_weights.resize(out + 1);
  MPI_Dist_graph_neighbors(graph, in, n.sources.data(), n.in_weights.data(), out,
                           n.destinations.data(), n.out_weights.data());
  n.sources.resize(in);
  n.in_weights.resize(in);
  n.destinations.resize(out);
  n.out_weights.resize(out);
  return n;
}

// Weight times unit_bytes to each neighbour, by an alltoallv of them.
void SendAlong(MPI_Comm graph, const Neighbours& n) {
  std::vector<int> out_counts, in_counts, out_at, in_at;
  int out = 0, in = 0;
  for (const int weight : n.out_weights) {
    out_counts.push_back(weight * unit_bytes);
    out_at.push_back(out);
    out += out_counts.back();
  }
  for (const int weight : n.in_weights) {
    in_counts.push_back(weight * unit_bytes);
    in_at.push_back(in);
    in += in_counts.back();
  }
  std::vector<char> outbox(out + 1), inbox(in + 1);
  MPI_Neighbor_alltoallv(outbox.data(), out_counts.data(), out_at.data(), MPI_CHAR, inbox.data(),
                         in_counts.data(), in_at.data(), MPI_CHAR, graph);
}

// What rank `node` of the graph must have for neighbours, in the order in which they were named.
Neighbours Specified(const std::vector<Edge>& edges, int node) {
  Neighbours n;
  for (const Edge& edge : edges) {
    if (edge.to == node) {
      n.sources.push_back(edge.from);
      n.in_weights.push_back(edge.weight);
    }
    if (edge.from == node) {
      n.destinations.push_back(edge.to);
      n.out_weights.push_back(edge.weight);
    }
  }
  return n;
}

// In descending order of their ranks, so that an order that is lost shows.
Neighbours Reversed(Neighbours n) {
  for (std::vector<int>* list : {&n.sources, &n.in_weights, &n.destinations, &n.out_weights}) {
    std::reverse(list->begin(), list->end());
  }
  return n;
}

const int* OrEmpty(const std::vector<int>& weights) {
  return weights.empty() ? MPI_WEIGHTS_EMPTY : weights.data();
}

void Adjacent(unsigned seed) {
  const int ranks = SizeOf(MPI_COMM_WORLD);
  const std::vector<Edge> edges = RandomGraph(seed, ranks);
  const Neighbours own = Reversed(Specified(edges, RankOf(MPI_COMM_WORLD)));
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(own.sources.size()),
                                 own.sources.data(), OrEmpty(own.in_weights),
                                 static_cast<int>(own.destinations.size()), own.destinations.data(),
                                 OrEmpty(own.out_weights), MPI_INFO_NULL, 1, &graph);
  const Neighbours got = NeighboursOf(graph), want = Reversed(Specified(edges, RankOf(graph)));
  Check(got.weighted, "the graph has no weights");
  Check(got.sources == want.sources && got.in_weights == want.in_weights, "other sources");
  Check(got.destinations == want.destinations && got.out_weights == want.out_weights,
        "other destinations");
  SendAlong(graph, got);
  PrintOrder(graph, ranks);
  MPI_Comm_free(&graph);
}

std::vector<Edge> Sorted(std::vector<Edge> edges) {
  std::sort(edges.begin(), edges.end());
  return edges;
}

// Without weights when `is_weighted` is false: MPI says nothing of them then.
void CheckAsSets(MPI_Comm graph, const std::vector<Edge>& edges, bool is_weighted) {
  const Neighbours got = NeighboursOf(graph);
  const int node = RankOf(graph);
  std::vector<Edge> want_in, want_out, got_in, got_out;
  for (const Edge& edge : edges) {
    const int weight = is_weighted ? edge.weight : 0;
    if (edge.to == node) want_in.push_back({edge.from, node, weight});
    if (edge.from == node) want_out.push_back({node, edge.to, weight});
  }
  for (size_t i = 0; i < got.sources.size(); ++i) {
    got_in.push_back({got.sources[i], node, is_weighted ? got.in_weights[i] : 0});
  }
  for (size_t i = 0; i < got.destinations.size(); ++i) {
    got_out.push_back({node, got.destinations[i], is_weighted ? got.out_weights[i] : 0});
  }
  Check(!!got.weighted == is_weighted, "weights appear or disappear");
  Check(Sorted(got_in) == Sorted(want_in), "other sources");
  Check(Sorted(got_out) == Sorted(want_out), "other destinations");
}

// Edge i is named by rank i mod ranks, whoever its ends are; rank 1 names none.
void Anywhere(unsigned seed) {
  const int ranks = SizeOf(MPI_COMM_WORLD), rank = RankOf(MPI_COMM_WORLD);
  const std::vector<Edge> edges = RandomGraph(seed, ranks);
  std::vector<int> sources, degrees, destinations, weights;
  for (size_t i = 0; i < edges.size(); ++i) {
    const int names = static_cast<int>(i) % ranks;
    if ((names == 1 ? 0 : names) != rank) continue;
    sources.push_back(edges[i].from);
    degrees.push_back(1);
    destinations.push_back(edges[i].to);
    weights.push_back(edges[i].weight);
  }
  for (const bool is_weighted : {false, true}) {
    MPI_Comm graph = MPI_COMM_NULL;
    MPI_Dist_graph_create(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(),
                          degrees.data(), destinations.data(),
                          is_weighted ? OrEmpty(weights) : MPI_UNWEIGHTED, MPI_INFO_NULL, 1,
                          &graph);
    CheckAsSets(graph, edges, is_weighted);
    if (is_weighted) {
      SendAlong(graph, NeighboursOf(graph));
      PrintOrder(graph, ranks);
    }
    MPI_Comm_free(&graph);
  }
}

// Too large a grid: what the MPI library says to it.
void Wrong() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int sizes[] = {SizeOf(MPI_COMM_WORLD) + 1}, periods[] = {0};
  MPI_Comm grid = MPI_COMM_NULL;
  const int error = MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, 1, &grid);
  Check(error != MPI_SUCCESS, "a grid larger than the world was made");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc > 1 && std::sscanf(argv[1], "--bytes=%d", &unit_bytes) == 1) {
    --argc;
    ++argv;
  }
  const std::string what = argc > 1 ? argv[1] : "";
  std::vector<int> numbers;
  for (int i = 2; i < argc; ++i) numbers.push_back(std::atoi(argv[i]));
  if (what == "grid" && numbers.size() > 1) {
    Grid({numbers.begin() + 1, numbers.end()}, numbers[0] != 0);
  } else if (what == "adjacent" && numbers.size() == 1) {
    Adjacent(static_cast<unsigned>(numbers[0]));
  } else if (what == "anywhere" && numbers.size() == 1) {
    Anywhere(static_cast<unsigned>(numbers[0]));
  } else if (what == "wrong") {
    Wrong();
  } else {
    Fail("no such topology: " + what);
  }
  return MPI_Finalize();
}
