// A fabric as rows for the store, and whether two sweeps saw the same fabric. Functions of values.
#ifndef COPPICE_DAEMON_MANAGER_INVENTORY_H_
#define COPPICE_DAEMON_MANAGER_INVENTORY_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/forwarding_tables.h"
#include "db/store.h"

namespace coppice {

// Nodes, ports and links of the fabric, as of its version. A switch appears with its port 0, whose
// port GUID is the node's by custom (fabric.h keeps no other).
PutInventory InventoryOf(const Fabric& fabric, absl::Time time);

// Of a switch, or of an endpoint's adapter.
Guid NodeGuid(const Fabric& fabric, VertexIndex v);
// A switch's description, an endpoint's host; the GUID where the fabric has no name.
std::string NodeName(const Fabric& fabric, VertexIndex v);

// In order of link index.
std::vector<LinkRecord> LinksOf(const Fabric& fabric);

// True if the two differ in nothing that a planner or a user could see, versions aside. Linear.
bool SameFabric(const Fabric& a, const Fabric& b);

// Either may be null.
bool SameTables(const ForwardingTables* a, const ForwardingTables* b);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_INVENTORY_H_
