// What is asked of a placement on the command line: its options, and what their words mean.
#ifndef COPPICE_CLIENT_CLI_PLACEMENT_OPTIONS_H_
#define COPPICE_CLIENT_CLI_PLACEMENT_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// INVALID_ARGUMENT, naming the option: no duration above 0.
absl::Status ReadDurationOption(const std::string& option, const std::string& text,
                                google::protobuf::Duration& to);

// As ReadNodeWords (words.h); lists stay as they are, the daemon reads them. Nothing: none.
absl::Status ReadNodesOption(const std::string& text,
                             google::protobuf::RepeatedPtrField<std::string>& nodes);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_PLACEMENT_OPTIONS_H_
