#include "daemon/mapping/search/groups/metis_partition.h"

#include <metis.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// The greatest weight that METIS gets, and the greatest sum: it adds all weights of a graph up.
constexpr double kMaxMetisWeight = 1 << 20;
constexpr double kMaxMetisSum = 1 << 30;

// What METIS takes for two parts, in copies of the graph as GraphForMetis makes them, and what an
// edge in a row takes at least of it. Measured on stencils and meshes of 10^4 to 2*10^6 edges:
// 15 to 40 copies, 40 to 90 ns.
constexpr double kCutsPerCopy = 30;
constexpr double kMinSecondsPerEdge = 40e-9;
constexpr double kAlwaysInTime = 1e-3;  // seconds: not worth a thought
// How long one waits for METIS before asking again whether to stop.
constexpr absl::Duration kTurn = absl::Milliseconds(5);

// METIS keeps state in globals: one cut at a time in a process.
class MetisTurn {
 public:
  ~MetisTurn() {
    if (!is_ours_) return;
    absl::MutexLock lock(&Shared().mutex);
    Shared().is_taken = false;
  }
  // False: another still had it after `most`.
  bool TakeWithin(absl::Duration most) {
    Queue& queue = Shared();
    absl::MutexLock lock(&queue.mutex);
    const auto is_free = [&queue]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue.mutex) { return !queue.is_taken; };
    is_ours_ = queue.mutex.AwaitWithTimeout(absl::Condition(&is_free), most);
    if (is_ours_) queue.is_taken = true;
    return is_ours_;
  }

 private:
  struct Queue {
    absl::Mutex mutex;
    bool is_taken ABSL_GUARDED_BY(mutex) = false;
  };
  static Queue& Shared() {
    static Queue* const queue = new Queue;
    return *queue;
  }
  bool is_ours_ = false;
};

std::vector<idx_t> ScaledWeights(absl::Span<const double> weights) {
  double most = 0, sum = 0;
  for (const double w : weights) {
    most = std::max(most, w);
    sum += w;
  }
  const double room = kMaxMetisSum - static_cast<double>(weights.size());
  const double scale = most > 0 ? std::min(kMaxMetisWeight / most, room / sum) : 0.0;
  std::vector<idx_t> scaled(weights.size());
  for (size_t e = 0; e < weights.size(); ++e) {
    scaled[e] = std::max<idx_t>(1, static_cast<idx_t>(weights[e] * scale));
  }
  return scaled;
}

absl::Status CheckSize(const WeightedGraph& graph, size_t parts) {
  constexpr size_t kMaxCount = 1 << 28;  // half of what kMaxMetisSum leaves for edges of weight 1
  if (graph.neighbours.size() <= kMaxCount && graph.vertex_count() <= kMaxCount &&
      parts <= kMaxCount) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "a graph of %d vertices and %d edges to cut into %d parts: METIS takes %d of each at most; "
      "choose another algorithm",
      graph.vertex_count(), graph.neighbours.size() / 2, parts, kMaxCount));
}

// A graph as METIS reads it.
class GraphForMetis final {
 public:
  GraphForMetis(const WeightedGraph& graph, absl::Span<const uint32_t> part_sizes)
      : vertices_(static_cast<idx_t>(graph.vertex_count())),
        parts_(static_cast<idx_t>(part_sizes.size())),
        begin_(graph.begin.begin(), graph.begin.end()),
        neighbours_(graph.neighbours.begin(), graph.neighbours.end()),
        sizes_(graph.vertex_sizes.begin(), graph.vertex_sizes.end()),
        weights_(ScaledWeights(graph.weights)) {
    const double total = std::accumulate(part_sizes.begin(), part_sizes.end(), 0.0);
    for (const uint32_t size : part_sizes) shares_.push_back(static_cast<real_t>(size / total));
  }

  // Whoever calls has the lock.
  absl::StatusOr<std::vector<uint32_t>> Cut(const PartitionOptions& options) {
    std::vector<idx_t> settings(METIS_NOPTIONS), part(static_cast<size_t>(vertices_), 0);
    METIS_SetDefaultOptions(settings.data());
    settings[METIS_OPTION_SEED] = static_cast<idx_t>(options.seed & 0x7fffffff);
    settings[METIS_OPTION_NUMBERING] = 0;
    settings[METIS_OPTION_UFACTOR] =
        std::max<idx_t>(1, static_cast<idx_t>(1000 * options.imbalance));
    idx_t constraints = 1, cut = 0;
    auto* const run =
        options.method == PartitionMethod::kWays ? METIS_PartGraphKway : METIS_PartGraphRecursive;
    const int result =
        run(&vertices_, &constraints, begin_.data(), neighbours_.data(), sizes_.data(), nullptr,
            weights_.data(), &parts_, shares_.data(), nullptr, settings.data(), &cut, part.data());
    if (result == METIS_OK) return std::vector<uint32_t>(part.begin(), part.end());
    return absl::ResourceExhaustedError(absl::StrFormat(
        "METIS could not cut a graph of %d vertices into %d parts (its error %d): free memory or "
        "choose another algorithm",
        vertices_, parts_, result));
  }

 private:
  idx_t vertices_, parts_;
  std::vector<idx_t> begin_, neighbours_, sizes_, weights_;
  std::vector<real_t> shares_;
};

// From above, about; `copying` is not a number if nobody knows what that took.
double SecondsOfMetis(const WeightedGraph& graph, size_t parts, double copying) {
  const auto edges = static_cast<double>(graph.neighbours.size() + graph.vertex_count());
  double seconds = edges * kMinSecondsPerEdge;
  if (copying > 0) seconds = std::max(seconds, std::min(copying * kCutsPerCopy, 3 * seconds));
  seconds *= std::log2(static_cast<double>(parts));
  return seconds < kAlwaysInTime ? 0 : seconds;
}

}  // namespace

WeightedGraph GraphOf(const Pattern& pattern) {
  WeightedGraph graph;
  graph.begin.assign(1, 0);
  graph.vertex_sizes.assign(pattern.rank_count(), 1);
  graph.neighbours.reserve(2 * pattern.pair_count());
  graph.weights.reserve(2 * pattern.pair_count());
  for (uint32_t r = 0; r < pattern.rank_count(); ++r) {
    for (const Exchange& exchange : pattern.exchanges(r)) {
      graph.neighbours.push_back(exchange.peer);
      graph.weights.push_back(exchange.both());
    }
    graph.begin.push_back(graph.neighbours.size());
  }
  return graph;
}

std::vector<GraphPart> SplitGraph(const WeightedGraph& graph, absl::Span<const uint32_t> parts,
                                  uint32_t count) {
  std::vector<GraphPart> split(count);
  std::vector<uint32_t> number(graph.vertex_count());
  for (uint32_t v = 0; v < graph.vertex_count(); ++v) {
    number[v] = static_cast<uint32_t>(split[parts[v]].vertices.size());
    split[parts[v]].vertices.push_back(v);
  }
  for (uint32_t part = 0; part < count; ++part) {
    WeightedGraph& among = split[part].graph;
    among.begin.assign(1, 0);
    for (const uint32_t v : split[part].vertices) {
      for (size_t e = graph.begin[v]; e < graph.begin[v + 1]; ++e) {
        if (parts[graph.neighbours[e]] != part) continue;
        among.neighbours.push_back(number[graph.neighbours[e]]);
        among.weights.push_back(graph.weights[e]);
      }
      among.begin.push_back(among.neighbours.size());
      among.vertex_sizes.push_back(graph.vertex_sizes[v]);
    }
  }
  return split;
}

absl::StatusOr<std::vector<uint32_t>> Partition(const WeightedGraph& graph,
                                                absl::Span<const uint32_t> part_sizes,
                                                const PartitionOptions& options,
                                                const SearchControl& control) {
  RETURN_IF_ERROR(CheckSize(graph, part_sizes.size()));
  if (part_sizes.size() < 2 || graph.vertex_count() == 0) {
    return std::vector<uint32_t>(graph.vertex_count(), 0);
  }
  const double before = control.remaining();
  GraphForMetis copy(graph, part_sizes);
  MetisTurn turn;
  const double copying = before - control.remaining();  // not a number without a deadline
  do {
    if (control.stopped() ||
        control.remaining() < SecondsOfMetis(graph, part_sizes.size(), copying)) {
      return absl::CancelledError(absl::StrFormat(
          "stopped before METIS cut a graph of %d vertices: give more time", graph.vertex_count()));
    }
  } while (!turn.TakeWithin(kTurn));
  return copy.Cut(options);
}

}  // namespace coppice
