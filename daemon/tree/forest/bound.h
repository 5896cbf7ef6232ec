// The least time that moving a long message takes by the fabric's cuts alone, whatever trees carry
// it: what a forest is measured by.
//
//       S: ranks 0..3 of two leaf switches          allgather: what S's ranks have, |S| M / N
//       bytes,
//     +-------------------+                         must leave S before the ranks outside have it
//     |  n0 n1 n2 n3      |---2 cables--->  rest
//     +-------------------+                         T >= max over S of (|S| M / N) / B+(S)
//
// Zhao et al., "ForestColl" (2024), section 4: the greatest ratio over all cuts that leave a rank
// outside is reached by an allgather over trees, one root a rank; a reduce-scatter is an allgather
// backwards, an Allreduce both, one after the other. Found as there: a guess of T is right if from
// a source that gives every rank its part a flow of all parts reaches each rank; where it does not,
// the least cut gives a greater T (Newton's or Dinkelbach's method on integers, so exact).
//
// A cut may pass through any cable: packets are taken to go where they like. Routes are fixed, so
// that trees may be unable to use what the bound counts; it stays a bound. Ports of one host on one
// switch are joined without limit, as their packets cross no link. Links count with what the
// snapshot's load leaves, bytes with the packets' headers. Latency and reduction are not in it.
#ifndef COPPICE_DAEMON_TREE_FOREST_BOUND_H_
#define COPPICE_DAEMON_TREE_FOREST_BOUND_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"

namespace coppice {

// A cut, by what decides: `ranks` of all ranks are inside.
struct BottleneckCut {
  uint32_t ranks = 0;
  double leaving_gbps = 0;  // 0: no cable leaves any host that has ranks
};

struct ForestBound {
  BottleneckCut cut;             // of the allgather
  double allgather_us = 0;       // M bytes in all, M / N of each rank
  double reduce_scatter_us = 0;  // of M bytes; the same where links have as much left both ways
  double allreduce_us = 0;       // of M bytes: both
  double bcast_us = 0;  // of M bytes from rank 0: M over the least cut between it and a rank
  // What no Allreduce in which ranks alone reduce can go below, also if both halves overlap and
  // ranks get unequal parts: M over the least cut between any two ranks; and 2 (H - 1) M, which
  // the ports of H hosts receive together. At most allreduce_us, the same where ports decide.
  double allreduce_floor_us = 0;
};

// Errors as FindMemberPlaces, and FAILED_PRECONDITION for members that no cable joins. A capacity
// that is unknown counts as the profile's port; below 1 Mb/s as that. O(N) maximum flows.
absl::StatusOr<ForestBound> FindForestBound(const Snapshot& snapshot, const CostProfile& profile,
                                            Members members, uint64_t bytes);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_FOREST_BOUND_H_
