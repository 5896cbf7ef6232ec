// How much memory a search may take, told before it begins: who runs several can refuse one more.
#ifndef COPPICE_DAEMON_MANAGER_MAPPING_SEARCH_BYTES_H_
#define COPPICE_DAEMON_MANAGER_MAPPING_SEARCH_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_problem.h"

namespace coppice {

// Numbers of a problem that is not there yet, and of the method that is to solve it.
struct SearchExtent {
  size_t ranks = 0, pairs = 0;   // of the pattern
  size_t slots = 0, places = 0;  // of the places
  size_t leaves = 0;             // leaf switches of the places; places where there is no fabric
  size_t channels = 0, switches = 0;  // of the fabric
  bool tables = false;                // routes are forwarding tables
  bool counts_links = false;          // bytes on channels are kept
  uint32_t lines = 0;                 // searches over links that wait beside those at work
  bool dense = false;                 // matrices of all slots
  bool populations = false;           // beside them as many as CheckPopulationMemory() allows
  size_t coordinates = 0;             // numbers in eigenvectors of the ranks, and of how many ranks
  size_t clustered = 0;               // they may be found as those of a full matrix
};

// Fills in what `algorithm` takes by its SearchMemory, with `parameters` by name and presets
// elsewhere; ranks, slots and `objective` are known.
void SetMethod(const MappingAlgorithm& algorithm,
               absl::Span<const std::pair<std::string, double>> parameters,
               const Objective& objective, SearchExtent& extent);

// From above, on `threads` threads, beside pattern, places, distances and snapshot. Grows with
// ranks, pairs, slots, channels and with places times leaf switches, the last up to
// PlaceDistances::kMaxTableBytes; tables of routes and dense problems are bounded by constants.
size_t SearchBytes(const SearchExtent& extent, uint32_t threads);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MAPPING_SEARCH_BYTES_H_
