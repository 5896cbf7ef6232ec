// Makes a Fabric and its forwarding tables of what a sweep has read.
#ifndef COPPICE_DAEMON_IB_FABRIC_ASSEMBLY_H_
#define COPPICE_DAEMON_IB_FABRIC_ASSEMBLY_H_

#include "absl/status/statusor.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/ib/swept_subnet.h"

namespace coppice {

// Fills in fabric, tables (null if no switch gave one or the subnet has no manager),
// has_subnet_manager and unanswered (sorted by path). What contradicts the rest is left out and
// listed in unanswered: a LID given twice or out of range becomes "none"; an adapter port with
// another's GUID is dropped. INTERNAL: the rest does not make a fabric either. O(n log n).
absl::StatusOr<SweepResult> AssembleFabric(SubnetRecord subnet, const SweepOptions& options);

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_FABRIC_ASSEMBLY_H_
