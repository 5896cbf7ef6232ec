// coppice.v1.Calibrate* <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_CALIBRATION_CONVERSION_H_
#define COPPICE_DAEMON_RPC_CALIBRATION_CONVERSION_H_

#include "coppice/v1/fabric.pb.h"
#include "daemon/manager/manager.h"

namespace coppice {

CalibrateArgs FromProto(const v1::CalibrateRequest& request);
void ToProto(const CalibrationView& view, v1::CalibrateResponse& response);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALIBRATION_CONVERSION_H_
