// StaticTypeTable (daemon/tree/closed_form.h) as coppice.v1.TypeTable. Conversion only: it knows no
// formula and no size class. Trees are not chosen by this table: a concrete communicator is
// evaluated exactly (daemon/tree/planner.h).
#ifndef COPPICE_DAEMON_RPC_TYPE_TABLE_CONVERSION_H_
#define COPPICE_DAEMON_RPC_TYPE_TABLE_CONVERSION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "coppice/v1/fabric.pb.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

// One row for each operation and size class, for communicators of `members` ranks. O(rows * NIC
// degree). INVALID_ARGUMENT: fewer than two members.
absl::Status TypeTableToProto(const CostProfile& profile, uint32_t members, v1::TypeTable& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_TYPE_TABLE_CONVERSION_H_
