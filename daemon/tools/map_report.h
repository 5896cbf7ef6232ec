// What coppice-plan map and coppice-search print of an order that they found; and the list of
// algorithms. Decides nothing.
#ifndef COPPICE_DAEMON_TOOLS_MAP_REPORT_H_
#define COPPICE_DAEMON_TOOLS_MAP_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "daemon/tools/map_inputs.h"
#include "daemon/tools/map_options.h"
#include "daemon/tools/map_search.h"

namespace coppice {

// Writes what was found as the options say: for a launcher, as JSON or for people, with the busiest
// links if they were asked for. Errors as LaunchText, FindBusyLinks, WriteTextFile and PrintText.
absl::Status PrintMap(const MapOptions& options, const MapQuestion& question,
                      const MapResult& result);

// Names, sources and parameters of all algorithms.
std::string AlgorithmsToJson();
std::string AlgorithmsToText();

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_MAP_REPORT_H_
