// A fabric as rows for the store, whether two sweeps saw the same fabric, which switches can
// aggregate, and what a sweep could not see. Functions of values.
#ifndef COPPICE_DAEMON_MANAGER_INVENTORY_H_
#define COPPICE_DAEMON_MANAGER_INVENTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/forwarding_tables.h"
#include "daemon/fabric/subnet_port.h"
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

// What a sweep could not see: nodes that did not answer, and what may only be hidden behind them.
// A port that is not in the fabric is either gone for certain, because the switch that it hung on
// answered and has nothing there, or it may come back with the node that did not answer.
//
//      leaf A ---x--- n3        A answered, nothing is at that port: n3 is gone
//      leaf B (silent) --- n7   n7 is not in the fabric either, but nobody said that it is gone
//      leaf C ---x--- D --- n9  D is gone for certain, and n9 with it, whoever else is silent
//
// Only silence hides: what a node refuses, or what contradicts the rest, may stay so for ever.
// Functions of values.

// How long what may only be hidden is given to come back.
inline constexpr absl::Duration kUnseenPatience = absl::Seconds(30);

// A node that did not answer, or not all that it was asked, found by the cable that leads to it
// unless it said who it is.
struct SilentNode {
  Guid neighbour;
  PortNum neighbour_port;
  Guid guid;  // 0: no sweep has ever seen what is there
  bool is_switch = false;
  std::string name;  // description of a switch, host of an adapter; may be empty
};

// A node that could be seen only through what is silent.
struct HiddenNode {
  bool is_switch = false;
  std::string name;                              // as SilentNode's
  std::vector<std::pair<Guid, PortNum>> cables;  // their far ends when it was last seen
};

struct HiddenPorts {
  struct Place {
    Guid attached;  // the switch that it hung on
    PortNum port;
    absl::Duration since;
  };
  absl::flat_hash_map<Guid, Place> ports;       // by port GUID
  absl::flat_hash_map<Guid, HiddenNode> nodes;  // by node GUID; the silent are not among them
  // Nothing is known of the fabric before: any port that is absent may be hidden, until patience
  // ends.
  bool is_any = false;
  absl::Duration any_since;
};

struct Unseen {
  std::vector<SilentNode> silent;             // each node or cable once, in order of answers
  std::shared_ptr<const HiddenPorts> hidden;  // null: none; every port that is absent is gone
};

// Of a sweep that saw `now`, after one that saw `before` (null: it is the first) with `unseen`.
// `when` is monotonic. O(ports) if something did not answer, else O(1).
Unseen FindUnseen(const std::vector<UnansweredNode>& unanswered, const Fabric& now,
                  const Fabric* before, const Unseen& unseen, absl::Duration when);

// Since when an absent port may only be hidden; infinite future (InfiniteDuration): it is gone for
// certain.
absl::Duration HiddenSince(const Unseen& unseen, Guid port_guid);

// Which nodes are hidden behind what is silent: a search from the silent over what is absent, along
// the cables that it had when it was last seen.
//
//     leaf A -- spine S (silent) -- leaf B (absent) -- n7 (absent)
//               start                hidden             hidden
//
// By node GUID. Looks at what `before` (may be null) had and what was hidden then, as far as it is
// not in `now`. O(nodes + links).
absl::flat_hash_map<Guid, HiddenNode> FindHiddenNodes(const Fabric& now, const Fabric* before,
                                                      const std::vector<SilentNode>& silent,
                                                      const Unseen& unseen);

// The switch, or a cabled port of the adapter, that has this node GUID.
std::optional<VertexIndex> FindNode(const Fabric& fabric, Guid node);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_INVENTORY_H_
