// What coppice-plan simulate compares: every builder's trees, packet by packet, under noise, beside
// what the cost model predicts for them. Several communicators run at once, each with a tree of its
// own; a row then tells of the one that is done last in the first run.
#ifndef COPPICE_DAEMON_TOOLS_BUILDER_COMPARISON_H_
#define COPPICE_DAEMON_TOOLS_BUILDER_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/simulation/simulator.h"
#include "daemon/tools/tree_inputs.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/planner.h"

namespace coppice {

// Ranks are positions in the members.
struct CommunicatorOptions {
  std::string grid, list, random, axes;
  std::string order = "last";
  std::optional<uint32_t> seed;  // of `random`
};

struct SimulateOptions {
  TreeOptions tree;
  SimulationOptions simulation;
  CommunicatorOptions communicators;
  double skew_us = 0;
  std::optional<uint32_t> seed, runs, header_bytes;
  std::string pattern = "poisson";
  bool links = false, is_wide = false;

  uint64_t first_seed() const { return seed.value_or(1); }
  uint64_t run_count() const { return runs.value_or(1); }
};

// One builder's trees for one size.
struct SimulatedRow {
  std::string builder;
  uint64_t bytes = 0;
  // Of the communicator done last in the first run; nullopt: some tree could not be built.
  std::optional<TreePlan> plan;
  std::string why_not;
  std::vector<double> total_us;          // until all are done, of every run, sorted
  std::vector<ChannelTraffic> channels;  // of the first run
};

// Rows of each size of --bytes. Trees that cannot be built are a row that says why. Errors of the
// planner and of Simulator::Prepare.
absl::StatusOr<std::vector<SimulatedRow>> CompareBuilders(
    const SimulateOptions& options, const Snapshot& snapshot, const CostProfile& profile,
    const std::vector<SwitchCapacity>& capacity, const TreeRequest& request,
    const std::vector<BatchCommunicator>& communicators);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_BUILDER_COMPARISON_H_
