// What is asked of a placement on the command line: its options, and what their words mean.
#ifndef COPPICE_CLIENT_CLI_PLACEMENT_OPTIONS_H_
#define COPPICE_CLIENT_CLI_PLACEMENT_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/commands.h"
#include "coppice/v1/placements.pb.h"

namespace coppice {

struct PlacementRequestOptions {
  v1::PlacementRequest request;
  std::string candidates, include, avoid, pattern, budget, weights;
};

// `options` outlives the command.
void AddPlacementRequestOptions(CLI::App& command, PlacementRequestOptions& options);

// Reads the words into options.request. INVALID_ARGUMENT names option and word; NOT_FOUND: a file.
absl::Status CompleteRequest(PlacementRequestOptions& options);

// "leaf-switches=1,distance=2": the fields of PlacementObjective, also written leaf_switches.
// INVALID_ARGUMENT: another form or name (lists the names), one twice, a weight that is no number
// from 0 up, or none above 0.
absl::StatusOr<v1::PlacementObjective> ParseWeights(absl::string_view text);

// As ReadNodeWords (words.h); lists stay as they are, the daemon reads them. Nothing: none.
absl::Status ReadNodesOption(const std::string& text,
                             google::protobuf::RepeatedPtrField<std::string>& nodes);

// How placements are shown: tables for people, JSON for programs.

// Which columns -o wide adds: to a listing since when, and the nodes; to what was asked for just
// now what is alike for all.
enum class PlacementColumns { kListing, kGranted };
void PrintPlacements(const google::protobuf::RepeatedPtrField<v1::Placement>& placements,
                     PlacementColumns columns, bool is_wide);

// What it costs, and why.
void PrintMeasures(const v1::Placement& placement);

// All of it, or why there is none; returns the exit status.
int ShowPlacement(Session& session, const absl::StatusOr<v1::Placement>& placement);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_PLACEMENT_OPTIONS_H_
