#include "daemon/mapping/search/sparse/sparse_multilevel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_coarsen.h"
#include "daemon/mapping/search/sparse/sparse_moves.h"

namespace coppice {
namespace {

constexpr uint32_t kCoarsestPerPlace = 6;  // vertices of the coarsest level, at least
constexpr uint32_t kPiecesPerPlace = 6;    // no vertex is a larger part of a place than this
constexpr double kWorthALevel = 0.95;      // of the vertices: a level that keeps more is the last

struct Level {
  SparseGraph graph;
  std::vector<uint32_t> coarse_of;  // [vertex of the level below]
};

}  // namespace

double RefineOnAllLevels(const SparseProblem& problem, uint64_t seed, const Seats* other,
                         const SearchControl& control, Seats& seats) {
  Xoshiro random(seed);
  const auto places = static_cast<uint32_t>(problem.capacities.size());
  const auto largest =
      static_cast<uint32_t>(std::max<size_t>(2, seats.size() / places / kPiecesPerPlace));
  std::vector<uint64_t> keys(seats.size());
  for (uint32_t u = 0; u < seats.size(); ++u) {
    keys[u] = seats[u] * uint64_t{places} + (other == nullptr ? 0 : (*other)[u]);
  }
  std::vector<Level> levels;
  std::vector<Seats> seats_of = {seats};  // [level], the finest first
  for (uint32_t count = static_cast<uint32_t>(seats.size()); count > kCoarsestPerPlace * places;) {
    if (control.stopped()) break;
    const SparseGraph& fine = levels.empty() ? problem.graph : levels.back().graph;
    Level level;
    level.coarse_of = MatchNeighbours(fine, keys, largest, random);
    const uint32_t coarse = *std::max_element(level.coarse_of.begin(), level.coarse_of.end()) + 1;
    if (coarse > kWorthALevel * count) break;
    level.graph = Contract(fine, level.coarse_of, problem.has_self_distances);
    Seats coarse_seats(coarse);
    std::vector<uint64_t> coarse_keys(coarse);
    for (uint32_t v = 0; v < count; ++v) {
      coarse_seats[level.coarse_of[v]] = seats_of.back()[v];
      coarse_keys[level.coarse_of[v]] = keys[v];
    }
    keys = std::move(coarse_keys);
    seats_of.push_back(std::move(coarse_seats));
    levels.push_back(std::move(level));
    count = coarse;
  }
  double gained = 0;
  for (size_t level = levels.size() + 1; level-- > 0;) {
    const SparseGraph& graph = level == 0 ? problem.graph : levels[level - 1].graph;
    MoveOptions moves;
    moves.seed = random();
    gained += MoveToBetterPlaces(problem, graph, moves, control, seats_of[level]);
    if (level == 0) break;
    const std::vector<uint32_t>& coarse_of = levels[level - 1].coarse_of;
    Seats& fine = seats_of[level - 1];
    for (uint32_t v = 0; v < fine.size(); ++v) fine[v] = seats_of[level][coarse_of[v]];
  }
  seats = std::move(seats_of[0]);
  return gained;
}

}  // namespace coppice
