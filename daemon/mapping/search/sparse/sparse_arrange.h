// Whole parts of the pattern exchanged between places: a multisection knows which ranks belong
// together, but where distances are no nested groups (a torus, a dragonfly) it matters, too, which
// of two like groups each half goes to.
//
//      A | B     cut first      the half of A that talks to B       a1 | a0   b0 | b1
//     ---+---                   must end up at B's side:            the halves turned round
//
// The parts are the vertices of a small one-to-one problem (Wang 2015, 4.4: aggregated pair
// exchange), which swaps and annealing solve in milliseconds.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_ARRANGE_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_ARRANGE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_cost.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Exchanges what sits on places of one capacity; never makes `seats` worse. Nothing to do, and
// nothing done, where places differ in their capacities or groups say all that distances say.
void ArrangeParts(const SparseProblem& problem, uint64_t seed, const SearchControl& control,
                  Seats& seats);

// A sparse graph with pairs of neighbours joined into one vertex, again and again: what moves
// together on a coarse level is a whole piece of the pattern.

// Matches every vertex, in random order, with the free neighbour of the same `key` whose link is
// the heaviest for the sizes of both: weight^2 / (size * size) (M. Holtgrewe, P. Sanders and
// C. Schulz, "Engineering a scalable high quality graph partitioner", 2010: expansion*2). No pair
// is larger than `largest`. Returns [vertex] the number of its coarse vertex. O(edges).
std::vector<uint32_t> MatchNeighbours(const SparseGraph& graph, absl::Span<const uint64_t> keys,
                                      uint32_t largest, Xoshiro& random);

// The graph of the coarse vertices: links between two are added up, links within one are dropped,
// or kept as what it sends to itself where `keep_self`. O(edges).
SparseGraph Contract(const SparseGraph& graph, const std::vector<uint32_t>& coarse_of,
                     bool keep_self);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_ARRANGE_H_
