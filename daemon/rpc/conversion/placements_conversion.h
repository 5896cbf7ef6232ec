// coppice.v1.Placement and its requests <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_PLACEMENTS_CONVERSION_H_
#define COPPICE_DAEMON_RPC_CONVERSION_PLACEMENTS_CONVERSION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coppice/v1/placements.pb.h"
#include "daemon/manager/placement/placement_view.h"

namespace coppice {

// Without the pattern (placements_service.h), but with its name if it is a stored one.
// INVALID_ARGUMENT, naming the field: a budget that is no duration.
absl::StatusOr<PlacementTask> FromProto(const v1::PlacementRequest& request);
// Without the owner.
absl::StatusOr<CreatePlacementArgs> FromProto(const v1::CreatePlacementRequest& request);
absl::StatusOr<StartPlacementArgs> FromProto(const v1::StartPlacementRequest& request);

// `in_full`: also measures, reason and permutation.
void ToProto(const PlacementView& view, bool in_full, v1::Placement& message);
void ToProto(const NodeDistancesView& view, v1::NodeDistances& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_PLACEMENTS_CONVERSION_H_
