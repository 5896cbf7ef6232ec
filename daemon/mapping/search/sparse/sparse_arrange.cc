#include "daemon/mapping/search/sparse/sparse_arrange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/mapping/search/sparse/sparse_anneal.h"
#include "daemon/mapping/search/sparse/sparse_occupants.h"
#include "daemon/mapping/search/sparse/sparse_swaps.h"

namespace coppice {
namespace {

constexpr double kProposals = 300;  // for each part
constexpr double kHot = 0.5;
constexpr uint32_t kMaxParts = 4096;

double Cost(const SparseProblem& problem, const Seats& seats) {
  return VisitCost(*problem.distances, problem.graph,
                   [&](const auto& cost) { return CostOf(cost, seats); });
}

}  // namespace

void ArrangeParts(const SparseProblem& problem, uint64_t seed, const SearchControl& control,
                  Seats& seats) {
  const auto places = static_cast<uint32_t>(problem.capacities.size());
  if (problem.groups.exact || places > kMaxParts) return;
  for (const uint32_t capacity : problem.capacities) {
    if (capacity != problem.capacities[0]) return;
  }
  // Places without ranks are parts, too: somebody may be better off there.
  std::vector<uint32_t> part_of(seats);
  SparseProblem parts;
  parts.graph = Contract(problem.graph, part_of, problem.has_self_distances);
  const auto count = parts.graph.vertex_count();
  parts.graph.links.vertex_sizes.assign(count, 1);
  parts.distances = problem.distances;
  parts.capacities.assign(places, 1);
  parts.groups = problem.groups;
  parts.near = problem.near;
  parts.has_self_distances = problem.has_self_distances;
  Seats arranged(count);
  std::iota(arranged.begin(), arranged.end(), 0);
  const double before = Cost(parts, arranged);
  Seats annealed = arranged;
  SwapUntilLocalOptimum(parts, {seed}, control, arranged);
  Anneal(parts, {seed, kHot, kProposals}, control, annealed);
  SwapUntilLocalOptimum(parts, {seed}, control, annealed);
  if (Cost(parts, annealed) < Cost(parts, arranged)) arranged = annealed;
  if (!(Cost(parts, arranged) < before)) return;
  for (uint32_t& seat : seats) seat = arranged[seat];
}

namespace {

// [coarse vertex] its members, as rows.
struct CoarseRows {
  std::vector<uint32_t> begin, members;
};

CoarseRows RowsOf(const std::vector<uint32_t>& coarse_of) {
  CoarseRows rows;
  const uint32_t count =
      coarse_of.empty() ? 0 : *std::max_element(coarse_of.begin(), coarse_of.end()) + 1;
  rows.begin.assign(count + 1, 0);
  for (const uint32_t c : coarse_of) ++rows.begin[c + 1];
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  rows.members.resize(coarse_of.size());
  std::vector<uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
  for (uint32_t v = 0; v < coarse_of.size(); ++v) rows.members[next[coarse_of[v]]++] = v;
  return rows;
}

}  // namespace

std::vector<uint32_t> MatchNeighbours(const SparseGraph& graph, absl::Span<const uint64_t> keys,
                                      uint32_t largest, Xoshiro& random) {
  const WeightedGraph& links = graph.links;
  const uint32_t count = graph.vertex_count();
  std::vector<uint32_t> order(count), mate(count, kNoRank);
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  for (const uint32_t u : order) {
    if (mate[u] != kNoRank) continue;
    double best = 0;
    uint32_t with = u;
    for (size_t e = links.begin[u]; e < links.begin[u + 1]; ++e) {
      const uint32_t v = links.neighbours[e];
      if (mate[v] != kNoRank || keys[v] != keys[u]) continue;
      if (links.vertex_sizes[u] + links.vertex_sizes[v] > largest) continue;
      const double rating = links.weights[e] * links.weights[e] / links.vertex_sizes[v];
      if (rating > best) {
        best = rating;
        with = v;
      }
    }
    mate[u] = with;
    mate[with] = u;
  }
  std::vector<uint32_t> coarse_of(count);
  uint32_t next = 0;
  for (uint32_t u = 0; u < count; ++u) {
    coarse_of[u] = mate[u] >= u ? next++ : coarse_of[mate[u]];
  }
  return coarse_of;
}

SparseGraph Contract(const SparseGraph& graph, const std::vector<uint32_t>& coarse_of,
                     bool keep_self) {
  const WeightedGraph& links = graph.links;
  const bool directed = !graph.out.empty();
  const CoarseRows rows = RowsOf(coarse_of);
  const auto count = static_cast<uint32_t>(rows.begin.size() - 1);
  SparseGraph coarse;
  coarse.links.begin.assign(1, 0);
  coarse.links.begin.reserve(count + 1);
  coarse.links.vertex_sizes.assign(count, 0);
  if (keep_self) coarse.self.assign(count, 0.0);
  std::vector<size_t> place_in_row(count, 0);
  for (uint32_t c = 0; c < count; ++c) {
    const size_t row = coarse.links.neighbours.size();
    for (uint32_t i = rows.begin[c]; i < rows.begin[c + 1]; ++i) {
      const uint32_t v = rows.members[i];
      coarse.links.vertex_sizes[c] += links.vertex_sizes[v];
      if (keep_self && !graph.self.empty()) coarse.self[c] += graph.self[v];
      for (size_t e = links.begin[v]; e < links.begin[v + 1]; ++e) {
        const uint32_t to = coarse_of[links.neighbours[e]];
        if (to == c) {
          if (keep_self) coarse.self[c] += 0.5 * links.weights[e];  // both ends come by
          continue;
        }
        size_t& at = place_in_row[to];
        if (at < row || at >= coarse.links.neighbours.size() || coarse.links.neighbours[at] != to) {
          at = coarse.links.neighbours.size();
          coarse.links.neighbours.push_back(to);
          coarse.links.weights.push_back(0);
          if (directed) {
            coarse.out.push_back(0);
            coarse.in.push_back(0);
          }
        }
        coarse.links.weights[at] += links.weights[e];
        if (directed) {
          coarse.out[at] += graph.out[e];
          coarse.in[at] += graph.in[e];
        }
      }
    }
    coarse.links.begin.push_back(coarse.links.neighbours.size());
  }
  return coarse;
}

}  // namespace coppice
