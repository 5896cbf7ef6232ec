// A fabric as rows for the store, and whether two sweeps saw the same fabric. Functions of values.
#ifndef COPPICE_DAEMON_MANAGER_INVENTORY_H_
#define COPPICE_DAEMON_MANAGER_INVENTORY_H_

#include <cstdint>
#include <optional>
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

// Which switches can aggregate, and how much: rules from the configuration, matched to the switches
// of a fabric (spec: default "cannot aggregate").
// A switch matches if every condition that is set holds.
struct CapabilityRule {
  std::optional<Guid> guid;
  std::optional<std::string> description;  // shell pattern with * and ?, on the NodeDescription
  std::optional<uint32_t> vendor_id;
  std::optional<uint16_t> device_id;
  uint32_t entries = 0;       // in the switch; 0: cannot aggregate
  uint32_t reserved = 0;      // of these, held by others
  uint32_t degree_limit = 0;  // most children in one tree
  friend bool operator==(const CapabilityRule&, const CapabilityRule&) = default;
};

// One record per switch, in index order: the first rule that matches, else entries 0.
std::vector<CapabilityRecord> ApplyRules(const Fabric& fabric,
                                         const std::vector<CapabilityRule>& rules);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_INVENTORY_H_
