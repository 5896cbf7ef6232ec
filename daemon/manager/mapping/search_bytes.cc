#include "daemon/manager/mapping/search_bytes.h"

#include <algorithm>

#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/mapping/places.h"
#include "daemon/mapping/search/cluster/clusters.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/groups/groups.h"
#include "daemon/mapping/search/links/traffic_routes.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"

namespace coppice {
namespace {

// Bytes for each of them, counted from the structures and found to be enough
// (tests/unit/manager/mapping/search_bytes_test.cc, tests/benchmark/README.md).
constexpr size_t kOfPair = 2 * (4 + 8 + 8 + 8);  // a graph: neighbour, weight, both directions
constexpr size_t kGraphs = 5;    // of the ranks: one kept, the others while a task cuts or joins
constexpr size_t kOfRank = 400;  // seats, queues, stamps, mappings of a task
constexpr size_t kOfPopulation = 4 * 24;  // mappings that the portfolio keeps and tells of
constexpr size_t kOfPlace = 300;          // groups, occupants, tallies
constexpr size_t kOfChannel = 150;        // bytes, changes, the tournament, capacities
constexpr size_t kOfSwitch = 100;
constexpr size_t kOfEvenShares = 1032;  // a list of up to 64 channels with their shares
constexpr size_t kOfAll = size_t{8} << 20;

// Matrices of a dense search, and what each thread has of them.
size_t DenseBytes(size_t slots, size_t threads) {
  slots = std::min<size_t>(slots, DenseQap::kMaxSlots);
  const size_t matrix = slots * (slots + 64) * 8;
  // Two read, four kept; for each thread distances by slot, prices, times, and a population of
  // at most 60 or 10,000 / slots.
  return matrix * (6 + 4 * std::max<size_t>(2, threads)) + 2 * 60 * slots * 16;
}

// Of methods that find eigenvectors: the basis and the vectors in three forms
// (search/cluster/clusters.h), and for each thread its rows.
size_t EmbeddingBytes(const SearchExtent& e, size_t threads) {
  const size_t full = std::min<size_t>(e.clustered, kMaxDenseVertices);
  return (7 + 2 * threads) * sizeof(double) * e.coordinates + 4 * sizeof(double) * full * full;
}

// The portfolio does without them beyond so many ranks.
constexpr size_t kMaxClustered = 20000;
constexpr uint32_t kLines = 2;  // of the portfolio (algorithm/auto.h)

}  // namespace

void SetMethod(const MappingAlgorithm& algorithm,
               absl::Span<const std::pair<std::string, double>> parameters,
               const Objective& objective, SearchExtent& extent) {
  const SearchMemory memory = algorithm.memory;
  const bool portfolio = memory == SearchMemory::kPortfolio;
  extent.populations = memory == SearchMemory::kPopulations;
  extent.dense = portfolio ? extent.slots <= kPortfolioDenseSlots
                           : extent.populations || memory == SearchMemory::kDense;
  extent.counts_links = portfolio ? objective.congestion > 0 : memory == SearchMemory::kLinks;
  extent.lines = portfolio && extent.counts_links ? kLines : 0;
  if (!portfolio && memory != SearchMemory::kEigenvectors) return;
  extent.clustered = portfolio && extent.ranks > kMaxClustered ? 0 : extent.ranks;
  size_t vectors = kPresetEigenvectors;
  for (const auto& [name, value] : parameters) {
    if (name == "eigenvectors") vectors = static_cast<size_t>(value);
  }
  if (vectors == 0) vectors = extent.clustered;  // one for each cluster
  extent.coordinates = std::min(extent.clustered * vectors, kMaxCoordinates);
}

size_t SearchBytes(const SearchExtent& e, uint32_t threads) {
  const size_t at_once = std::max(1U, threads);
  size_t bytes = kOfAll + kOfRank * e.ranks + kOfPair * e.pairs + kOfPopulation * e.ranks;
  bytes += at_once * (kOfRank * e.ranks + kGraphs * kOfPair * e.pairs);
  bytes += (1 + at_once) * kOfPlace * e.places + NearPlaces::kListed * 4 * e.places;
  bytes += (1 + at_once) * (kOfChannel * e.channels + kOfSwitch * e.switches);
  // Distances between links, while those of all places are still there.
  const size_t columns = e.tables ? e.places : e.leaves;
  if (e.channels > 0) bytes += std::min(e.leaves * columns, PlaceDistances::kMaxTableBytes);
  if (e.places <= kMaxMixedPlaces) bytes += 16 * e.places * e.places;
  if (e.counts_links) {
    const size_t table = std::max(4 * e.places * e.switches, kOfEvenShares * e.leaves * e.leaves) +
                         kOfChannel * e.channels;
    bytes += (at_once + e.lines) * std::min(table, TrafficRoutes::kMaxTableBytes);
  }
  if (e.populations) bytes += kMaxPopulationBytes;
  bytes += EmbeddingBytes(e, at_once);
  return e.dense ? bytes + DenseBytes(e.slots, at_once) : bytes;
}

}  // namespace coppice
