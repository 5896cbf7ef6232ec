// Makes counts of hosts cheaper by moving hosts from leaf switch to leaf switch, and mends those
// that break least numbers of leaf switches or pods; with a pattern, by the least cut.
#ifndef COPPICE_DAEMON_PLACEMENT_COUNT_IMPROVEMENT_H_
#define COPPICE_DAEMON_PLACEMENT_COUNT_IMPROVEMENT_H_

#include <cstdint>

#include "daemon/placement/count_state.h"

namespace coppice {

// Until no move makes `state`, which meets the constraints, cheaper, or `patience` moves have been
// priced, which is counted down. Deterministic.
void ImproveCounts(const LeafField& field, CountState& state, uint64_t& patience);

// Spreads hosts over further leaf switches and pods until there are as many as asked for, at the
// least rise of the cost. False: `state` cannot be made to meet the constraints so. Not for
// hosts_per_leaf, whose counts must be right.
bool MendCounts(const LeafField& field, CountState& state);

// GraphHunter's first stage: the most tightly connected set of free hosts, by the least cut that
// takes it out of the graph of free hosts.

// What links between the chosen hosts and the other open hosts of the field weigh together: for
// each such pair 1 / hops^2.
double CutOf(const LeafField& field, const CountState& state);

// Exchanges hosts, from counts that meet the constraints, until no exchange makes the cut less or
// `patience` exchanges have been priced, which is counted down. Deterministic.
void ImproveCut(const LeafField& field, CountState& state, uint64_t& patience);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_COUNT_IMPROVEMENT_H_
