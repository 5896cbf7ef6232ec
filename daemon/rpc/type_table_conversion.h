// coppice.v1.TypeTable: the static table of the cost model's closed forms (Chen 2024, section 5 and
// table 3), which answers "which type and width" without a communicator, a fabric or its load. Trees
// are not chosen by it: a concrete communicator is evaluated exactly (daemon/tree/planner.h).
#ifndef COPPICE_DAEMON_RPC_TYPE_TABLE_CONVERSION_H_
#define COPPICE_DAEMON_RPC_TYPE_TABLE_CONVERSION_H_

#include "absl/status/status.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

// One row for each operation and size class, for communicators of `members` ranks. O(rows * NIC
// degree). INVALID_ARGUMENT: fewer than two members.
absl::Status TypeTableToProto(const CostProfile& profile, uint32_t members, v1::TypeTable& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_TYPE_TABLE_CONVERSION_H_
