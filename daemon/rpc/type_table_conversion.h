// coppice.v1.TypeTable <- the static table of the cost model.
#ifndef COPPICE_DAEMON_RPC_TYPE_TABLE_CONVERSION_H_
#define COPPICE_DAEMON_RPC_TYPE_TABLE_CONVERSION_H_

#include "absl/status/status.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

// For communicators of `members` ranks. Errors: as the table's.
absl::Status TypeTableToProto(const CostProfile& profile, uint32_t members, v1::TypeTable& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_TYPE_TABLE_CONVERSION_H_
