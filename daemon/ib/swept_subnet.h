// A subnet as a full sweep finds it, from the walk to the fabric, and what is asked of it until the
// next one: light sweeps and readings of counters.
//
//    ReadSubnet --> SubnetRecord --FillFromLast--> AssembleFabric --> SweepResult
//                        |
//                        +--RememberSwitches--> SweptSubnet --> SweepLightly, ReadCounters
#ifndef COPPICE_DAEMON_IB_SWEPT_SUBNET_H_
#define COPPICE_DAEMON_IB_SWEPT_SUBNET_H_

#include <bitset>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/ib/mad_codec.h"
#include "daemon/ib/mad_engine.h"

namespace coppice {

// What a sweep has read, as the nodes told it, unchecked.

struct FoundPort {
  static constexpr uint32_t kNoPeer = 0xFFFFFFFF;

  Guid port_guid;          // adapters only
  Lid lid;                 // adapters, and port 0 of a switch
  Lid subnet_manager_lid;  // the same
  uint8_t lmc = 0;
  bool answered = false;  // the port was asked, and said whether:
  bool link_up = false;
  bool is_end_silent = false;  // who is at the other end did not say who he is
  LinkRate rate;               // unknown unless link_up
  uint32_t peer = kNoPeer;     // node at the other end of the cable
  PortNum peer_port;
};

struct FoundNode {
  NodeInfoRecord info;
  DirectedRoute route;  // the first that led here; among the shortest
  std::string description;
  std::vector<FoundPort> ports;  // [0..info.port_count]
  std::vector<uint8_t> table;    // switches: port by LID; empty if not read
  // What it was silent about; what it refused to say is not meant.
  bool is_description_silent = false;
  bool is_table_silent = false;            // SwitchInfo: not even how long the table is
  std::vector<bool> is_block_silent = {};  // of 64 LIDs of the table; false beyond the end
};

struct SubnetRecord {
  std::vector<FoundNode> nodes;  // in order of discovery; the first is the local node
  std::vector<UnansweredNode> unanswered;

  // Notes `what` a node that is known did not answer, or said wrongly: by a cable that leads to it,
  // from a switch if there is one.
  void Note(const FoundNode& node, std::string what, bool is_silent) {
    UnansweredNode entry{ToString(node.route), Guid(0),  PortNum(0), std::move(what),
                         node.info.node_guid,  is_silent};
    for (const FoundPort& port : node.ports) {
      if (port.peer == FoundPort::kNoPeer) continue;
      const bool is_switch = nodes[port.peer].info.type == NodeType::kSwitch;
      if (!is_switch && entry.neighbour != Guid(0)) continue;
      entry.neighbour = nodes[port.peer].info.node_guid;
      entry.neighbour_port = port.peer_port;
      if (is_switch) break;
    }
    unanswered.push_back(std::move(entry));
  }
};

// Walks the subnet from the local port by directed routes, with the tables if `options` want them:
// between groups of switches, when the engine is idle, calls options.between. Cost: three requests
// a node, one a port, one a cable, one for every 64 LIDs of each table. Nothing that a node says
// can fail the sweep; a contradiction becomes an UnansweredNode that says what was wrong.
// UNAVAILABLE: the local port does not answer, answers nonsense, or has no link.
absl::StatusOr<SubnetRecord> ReadSubnet(MadEngine& engine, const SweepOptions& options);

// What the last full sweep saw of the switches: the ways to them and the state of their ports.

struct SweptPort {
  static constexpr uint32_t kNowhere = 0xFFFFFFFF;

  bool answered = false;  // PortInfo was told
  bool link_up = false;
  bool is_cabled = false;        // the node at the other end is known
  LinkRate rate;                 // unknown unless link_up
  uint32_t leads_to = kNowhere;  // the switch whose route leaves its last switch here
  uint32_t peer = kNowhere;      // the switch at the other end, if it is one
  PortNum peer_port{};
};

struct SweptSwitch {
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  Guid guid;
  std::string description;
  DirectedRoute route;
  bool is_first = false;  // the route passes no switch
  Lid lid;                // as the switch said
  uint8_t lmc = 0;
  Lid subnet_manager_lid;
  Lid counters_lid;              // the same LID; 0: none, or not this switch's alone
  std::vector<SweptPort> ports;  // [0..port count]
  bool was_silent = false;       // told nothing of any port
  Guid neighbour;                // at the other end of the first port that is cabled
  PortNum neighbour_port;

  // "switch leaf3", by its GUID if it has no description.
  std::string Name() const;
  UnansweredNode Unanswered(std::string what) const;
};

// A link that is up and behind which nobody said who he was.
struct SilentEnd {
  uint32_t at = SweptSwitch::kNone;  // switch; kNone: the local adapter
  PortNum port;
  DirectedRoute route;  // to whom does not answer
};

struct SweptSubnet {
  bool local_is_switch = false;
  PortNum local_port;  // of an adapter: the one that everything goes through
  Lid local_lid, local_subnet_manager_lid;
  uint8_t local_lmc = 0;
  std::vector<SweptSwitch> switches;  // a route's last switch comes before its own
  std::vector<SilentEnd> silent_ends;
};

// Requires a node in `subnet`, as every sweep that succeeds has. O(ports + LIDs).
SweptSubnet RememberSwitches(const SubnetRecord& subnet);

// Fills in the descriptions and tables that nodes were silent about from the sweep before, by GUID.
// Of a table that is longer or shorter than the last one nothing is known. `tables`
// (null: there are none) are of that fabric; `were_tables_asked` is false where no switch was asked
// for its table. What did not answer stays noted. O(nodes + LIDs that are missing).
void FillFromLast(const Fabric& fabric, const ForwardingTables* tables, bool were_tables_asked,
                  SubnetRecord& subnet);

// Makes a Fabric and its forwarding tables of what holds together of what a sweep has read.
// Fills in fabric, tables (null if no switch gave one or the subnet has no manager),
// has_subnet_manager and unanswered (sorted by path). What contradicts the rest is left out and
// listed in unanswered: a LID given twice or out of range becomes "none"; an adapter port with
// another's GUID is dropped. INTERNAL: the rest does not make a fabric either. O(n log n).
absl::StatusOr<SweepResult> AssembleFabric(SubnetRecord subnet, const SweepOptions& options);

// Looks whether `swept` still holds. `turn` counts the sweeps: of many silent nodes, some are asked
// in each turn. `lids_are_doubtful` becomes true, also with an error, if what has changed is or may
// be somebody's LID. UNAVAILABLE: the local port does not answer or its link is down, or no switch
// answers of those that did.
absl::StatusOr<LightSweepResult> SweepLightly(MadEngine& engine, const SweptSubnet& swept,
                                              uint32_t turn, bool& lids_are_doubtful);

// What is known of a switch's performance management from one reading to the next.
struct PerformanceAgent {
  Lid lid;
  bool is_known = false;  // abilities were told, since the last full sweep
  CounterAbilities abilities;
  std::bitset<256> without_extended;  // ports that refused what was offered
  bool was_given_up = false;          // at the last reading: asked with less patience
  Lid served_at;                      // where it redirects to; 0: it answers for itself
};
using PerformanceAgents = absl::flat_hash_map<Guid, PerformanceAgent>;

// After each full sweep: forgets who is gone, and all that is known of the others but their
// silence, as it may have been an accident.
void RenewAgents(const SweptSubnet& swept, PerformanceAgents& agents);

// The counters of all cabled ports of switches. UNAVAILABLE: the local port does not answer.
absl::StatusOr<CounterSweep> ReadCounters(MadEngine& engine, const Clock& clock,
                                          const SweptSubnet& swept, PerformanceAgents& agents);

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_SWEPT_SUBNET_H_
