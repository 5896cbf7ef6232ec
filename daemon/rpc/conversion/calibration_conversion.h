// coppice.v1.Calibrate* <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_CALIBRATION_CONVERSION_H_
#define COPPICE_DAEMON_RPC_CONVERSION_CALIBRATION_CONVERSION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

CalibrateArgs FromProto(const v1::CalibrateRequest& request);
void ToProto(const CalibrationView& view, v1::CalibrateResponse& response);

// StaticTypeTable (daemon/tree/closed_form.h) as coppice.v1.TypeTable. Conversion only: it knows no
// formula and no size class. Trees are not chosen by this table: a concrete communicator is
// evaluated exactly (daemon/tree/planner.h).

// One row for each operation and size class, for communicators of `members` ranks. O(rows * NIC
// degree). INVALID_ARGUMENT: fewer than two members.
absl::Status TypeTableToProto(const CostProfile& profile, uint32_t members, v1::TypeTable& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_CALIBRATION_CONVERSION_H_
