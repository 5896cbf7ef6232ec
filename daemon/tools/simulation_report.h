// A comparison of simulated trees as coppice-plan simulate prints it.
#ifndef COPPICE_DAEMON_TOOLS_SIMULATION_REPORT_H_
#define COPPICE_DAEMON_TOOLS_SIMULATION_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "daemon/fabric/fabric.h"
#include "daemon/tools/builder_comparison.h"

namespace coppice {

struct SimulatedSize {
  size_t members = 0, communicators = 1;
};

// {"operation","members","communicators","skew_us","noise","pattern","seed","runs","rows":[{"bytes","builder","type","width",
// "height","predicted_us","simulated":{"median_us","min_us","max_us"},"links":[...]}]}; a tree that
// could not be built has "why_not" instead.
std::string SimulationToJson(const SimulateOptions& options, const SimulatedSize& size,
                             const Fabric& fabric, const std::vector<SimulatedRow>& rows);

// A line for each row; with links, then a table of channels for each, most packets first.
std::string SimulationToText(const SimulateOptions& options, const SimulatedSize& size,
                             const Fabric& fabric, const std::vector<SimulatedRow>& rows);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_SIMULATION_REPORT_H_
