// A comparison of simulated trees as coppice-plan prints it. Decides nothing.
#ifndef COPPICE_DAEMON_TOOLS_SIMULATION_REPORT_H_
#define COPPICE_DAEMON_TOOLS_SIMULATION_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fabric/snapshot.h"
#include "daemon/simulation/simulator.h"
#include "daemon/tree/planner.h"

namespace coppice {

// What holds for all rows.
struct SimulationHeading {
  std::string operation;
  uint32_t members = 0;
  size_t communicators = 1;
  double skew_us = 0;
  double noise = 0;
  std::string pattern;
  uint64_t seed = 1;
  uint64_t runs = 1;
  bool links = false;  // print the channels, too
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

// {"operation","members","communicators","skew_us","noise","pattern","seed","runs","rows":[{"bytes","builder","type","width",
// "height","predicted_us","simulated":{"median_us","min_us","max_us"},"links":[...]}]}; a tree that
// could not be built has "why_not" instead.
std::string SimulationToJson(const Snapshot& snapshot, const SimulationHeading& heading,
                             const std::vector<SimulatedRow>& rows);

// A line for each row; with links, then a table of channels for each, most packets first.
std::string SimulationToText(const Snapshot& snapshot, const SimulationHeading& heading,
                             const std::vector<SimulatedRow>& rows);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_SIMULATION_REPORT_H_
