// What a search of a problem that is there is said to take, with the presets of its method.
#ifndef COPPICE_TESTS_SUPPORT_SEARCH_BYTES_H_
#define COPPICE_TESTS_SUPPORT_SEARCH_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "daemon/manager/mapping/search_bytes.h"
#include "daemon/mapping/search/groups/groups.h"

namespace coppice {

inline size_t SearchBytes(const MappingAlgorithm& algorithm, const MappingProblem& problem,
                          uint32_t threads) {
  const Places& places = *problem.places;
  SearchExtent extent;
  extent.ranks = problem.rank_count();
  extent.pairs = problem.pattern->pair_count();
  extent.slots = places.slot_count();
  extent.places = extent.leaves = places.count();
  SetMethod(algorithm, {}, problem.objective, extent);
  if (problem.on_fabric()) {
    const Fabric& fabric = *problem.snapshot->fabric;
    extent.channels = fabric.channel_count();
    extent.switches = fabric.switch_count();
    extent.tables = problem.snapshot->routes->kind() == RouteKind::kForwardingTables;
    const LeafRings rings(fabric, places);
    if (rings.complete()) extent.leaves = rings.count();
  }
  return SearchBytes(extent, threads);
}

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_SEARCH_BYTES_H_
