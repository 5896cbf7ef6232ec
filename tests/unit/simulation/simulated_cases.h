// What the simulator's tests share: snapshots without ceremony, trees by their parents, plain
// numbers.
#ifndef COPPICE_TESTS_UNIT_SIMULATION_SIMULATED_CASES_H_
#define COPPICE_TESTS_UNIT_SIMULATION_SIMULATED_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/simulation/simulator.h"
#include "tests/support/fabrics.h"

namespace coppice {

// Shortest paths, no load.
Snapshot SnapshotOf(const FabricPtr& fabric);
Snapshot SnapshotOfModel(const std::string& spec);

// A type I tree: rank r on endpoint `members[r]`, below rank `parents[r]`.
AggregationTree TreeOf(const Fabric& fabric, const std::vector<uint32_t>& members,
                       const std::vector<int32_t>& parents);

// Round numbers for sums in the head: phi 1, theta 0.1, gamma 0.001 per byte, c_send 0.05, l 0.2,
// same host 0.3; MTU 1000. 1,000 bytes take 0.04 us on the 200 Gb/s links of tests/support/fabrics.
CostProfile RoundProfile();

// Fails the test, and answers an empty result, where the simulator refuses.
SimulationResult Simulated(const Snapshot& snapshot, const CostProfile& profile,
                           const std::vector<SimulatedCollective>& collectives,
                           const SimulationOptions& options = {}, uint64_t seed = 1);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_SIMULATION_SIMULATED_CASES_H_
