// coppice.v1.DaemonStatus <- the daemon's plain numbers.
#ifndef COPPICE_DAEMON_RPC_STATUS_REPORT_H_
#define COPPICE_DAEMON_RPC_STATUS_REPORT_H_

#include "coppice/v1/admin.pb.h"
#include "daemon/rpc/daemon_numbers.h"

namespace coppice {

void ToProto(const DaemonNumbers& numbers, v1::DaemonStatus& status);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_STATUS_REPORT_H_
