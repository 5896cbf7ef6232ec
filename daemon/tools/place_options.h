// What coppice-plan place is asked on the command line: options, and what their words mean. Reads
// no files.
#ifndef COPPICE_DAEMON_TOOLS_PLACE_OPTIONS_H_
#define COPPICE_DAEMON_TOOLS_PLACE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/placement/placement_request.h"

namespace coppice {

struct PlaceOptions {
  std::string fabric, routes = "shortest";
  std::string candidates, include, avoid, down;    // lists, or files with lists
  std::string held, load, full_switches, pattern;  // files
  std::string weights, budget = "1s";
  std::optional<uint32_t> nodes, nodes_per_leaf, max_nodes_per_leaf, max_leaf_switches,
      min_leaf_switches, min_pods, entries, trees, ranks_per_node, seed;
  bool same_pod = false, exclusive_switches = false, json = false;
};

// All options with their checks.
void AddPlacementOptions(CLI::App& command, PlaceOptions& options);

// "pods=4,leaf_switches=1" over the terms of PlacementObjective; terms not named weigh nothing.
// nullopt: another form, a term that does not exist or is named twice, a weight that is negative or
// no number, or all 0.
std::optional<PlacementObjective> ParseWeights(absl::string_view text);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_PLACE_OPTIONS_H_
