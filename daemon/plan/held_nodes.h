// The question behind a call of coppice-plan place: fabric, who holds what, and the request, from
// the options and the files that they name.
#ifndef COPPICE_DAEMON_TOOLS_PLACE_INPUTS_H_
#define COPPICE_DAEMON_TOOLS_PLACE_INPUTS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placer.h"

namespace coppice {

// What coppice-plan place is asked on the command line: options, and what their words mean. Reads
// no files.

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

struct PlaceQuestion {
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const PlacementIndex> index;
  Occupancy occupancy;
  PlacementRequest request;
};

// Errors are those of the readers, of fabric_source.h and of routes.h, and name file or option.
absl::StatusOr<PlaceQuestion> LoadPlaceQuestion(const PlaceOptions& options);

// The hosts of a node list, in its order; lists on several lines are one after another, and lines
// that begin with # are skipped. INVALID_ARGUMENT as ParseNodeList; NOT_FOUND: no such hosts (names
// the first few); both name `origin`.
absl::StatusOr<std::vector<HostIndex>> ReadHostList(const Fabric& fabric, absl::string_view text,
                                                    absl::string_view origin);

// "NODES HOLDER" a line: NODES is a list, HOLDER any word. [host] number of the holder, from 1 in
// the order of the words; Occupancy::kFree for others. INVALID_ARGUMENT: another form, or a host
// twice; NOT_FOUND as above; both name `origin` and line.
absl::StatusOr<std::vector<uint32_t>> ReadHolders(const Fabric& fabric, absl::string_view text,
                                                  absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_PLACE_INPUTS_H_
