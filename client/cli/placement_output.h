// How placements are shown: tables for people, JSON for programs.
#ifndef COPPICE_CLIENT_CLI_PLACEMENT_OUTPUT_H_
#define COPPICE_CLIENT_CLI_PLACEMENT_OUTPUT_H_

#include "absl/status/statusor.h"
#include "client/cli/commands.h"
#include "coppice/v1/placements.pb.h"

namespace coppice {

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

#endif  // COPPICE_CLIENT_CLI_PLACEMENT_OUTPUT_H_
