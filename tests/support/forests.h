// A forest in the simulator: all its trees at once, each with its share, as one collective of the
// same ranks.
#ifndef COPPICE_TESTS_SUPPORT_FORESTS_H_
#define COPPICE_TESTS_SUPPORT_FORESTS_H_

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/simulation/simulator.h"
#include "daemon/tree/forest/walk.h"

namespace coppice {

// Microseconds of an Allreduce of `bytes`. Errors as Simulator::Prepare.
inline absl::StatusOr<double> SimulatedForestUs(const Snapshot& snapshot,
                                                const CostProfile& profile, Members members,
                                                absl::Span<const ShapedTree> trees,
                                                uint64_t bytes) {
  const std::vector<uint64_t> shares = SharesOf(trees, bytes, profile.mtu_bytes);
  std::vector<SimulatedCollective> collectives;
  for (size_t t = 0; t < trees.size(); ++t) {
    if (shares[t] == 0) continue;
    SimulatedCollective one;
    one.tree.rank_count = static_cast<uint32_t>(members.size());
    for (const EndpointIndex member : members) {
      one.tree.vertices.push_back(snapshot.fabric->Vertex(member));
    }
    one.tree.parents = trees[t].parents;
    one.payload = PayloadOf(Operation::kAllreduce, shares[t]);
    one.forest = 0;
    collectives.push_back(std::move(one));
  }
  ASSIGN_OR_RETURN(const Simulator simulator,
                   Simulator::Prepare(snapshot, profile, collectives, {}));
  double last_us = 0;
  for (const CollectiveTimes& times : simulator.Run(1).collectives) {
    last_us = std::max(last_us, times.total_us);
  }
  return last_us;
}

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_FORESTS_H_
