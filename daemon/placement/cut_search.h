// GraphHunter's first stage: the most tightly connected set of free hosts, by the least cut that
// takes it out of the graph of free hosts.
#ifndef COPPICE_DAEMON_PLACEMENT_CUT_SEARCH_H_
#define COPPICE_DAEMON_PLACEMENT_CUT_SEARCH_H_

#include <cstdint>

#include "daemon/placement/count_state.h"

namespace coppice {

// What links between the chosen hosts and the other open hosts of the field weigh together: for
// each such pair 1 / hops^2.
double CutOf(const LeafField& field, const CountState& state);

// Exchanges hosts, from counts that meet the constraints, until no exchange makes the cut less or
// `patience` exchanges have been priced, which is counted down. Deterministic.
void ImproveCut(const LeafField& field, CountState& state, uint64_t& patience);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_CUT_SEARCH_H_
