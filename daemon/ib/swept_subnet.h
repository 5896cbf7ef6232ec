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
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/partitions.h"
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
  PortNum peer_port{};
  uint32_t leads_to =
      kNoPeer;  // in SweptSubnet: the switch whose route leaves its last switch here
  // Of adapters, of a switch's port 0, and of its external ports that enforce partitions.
  bool enforces_inbound = false, enforces_outbound = false;
  bool enforces() const { return enforces_inbound || enforces_outbound; }
  PartitionTable partitions;
  bool has_partition_table = false;  // else not asked for, or not all of it was told
  bool is_cabled() const { return peer != kNoPeer; }
};

struct FoundNode {
  NodeInfoRecord info;
  DirectedRoute route;  // the first that led here; among the shortest
  std::string description;
  std::vector<FoundPort> ports;        // [0..info.port_count]
  bool is_description_silent = false;  // it did not answer; what it refused to say is not meant
  uint16_t enforced_capacity = 0;      // keys in the table of a switch's external port
  // Of the local node, the port that everything goes through; of a switch, port 0.
  const FoundPort& local_port() const { return ports[info.local_port.value()]; }
};

struct FoundTable {
  std::vector<uint8_t> ports;         // by LID; empty if not read
  bool is_silent = false;             // SwitchInfo: not even how long the table is
  std::vector<bool> is_block_silent;  // of 64 LIDs; false beyond the end
};

struct SubnetRecord {
  std::vector<FoundNode> nodes;    // in order of discovery; the first is the local node
  std::vector<FoundTable> tables;  // [node] of switches
  std::vector<UnansweredNode> unanswered;
  bool is_manager_silent = false;  // nobody answers at the local port's subnet manager's LID

  // Notes `what` a node that is known did not answer, or said wrongly: by a cable that leads to it,
  // from a switch if there is one.
  void Note(const FoundNode& node, std::string what, bool is_silent);
};

// Walks the subnet from the local port by directed routes, with the tables if `options` want them:
// between groups of switches, when the engine is idle, calls options.between. Tables of partitions
// are read where the options keep forwarding tables, too, of ports that `known` (null: none) lacks.
// Cost: three requests a node, one a port, one a cable, one for every 32 keys of each port and
// every 64 LIDs of each switch. Nothing that a node says can fail the sweep; a contradiction
// becomes an UnansweredNode that says what was wrong. UNAVAILABLE: the local port does not answer,
// answers nonsense, or has no link.
absl::StatusOr<SubnetRecord> ReadSubnet(MadEngine& engine, const SweepOptions& options,
                                        const Partitions* known = nullptr);
// Of a port of its own, or of the switch for port 0.
Guid GuidOfPort(const FoundNode& node, size_t number);

// What the last full sweep saw of the switches: the ways to them and the state of their ports.
struct SweptSwitch : FoundNode {
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  bool is_first = false;    // the route passes no switch
  bool was_silent = false;  // told nothing of any port
  Lid counters_lid{};       // of port 0; 0: none, or not this switch's alone
  Guid neighbour{};         // at the other end of the first port that is cabled
  PortNum neighbour_port{};

  Guid guid() const { return info.node_guid; }
  // "switch leaf3", by its GUID if it has no description.
  std::string Name() const;
  UnansweredNode Unanswered(absl::string_view what) const;  // of Name()
};

// A link that is up and behind which nobody said who he was.
struct SilentEnd {
  uint32_t at = SweptSwitch::kNone;  // switch; kNone: the local adapter
  PortNum port;
  DirectedRoute route;  // to whom does not answer
};

struct SweptSubnet {
  FoundNode local;
  std::vector<SweptSwitch> switches;  // a route's last switch comes before its own
  std::vector<uint32_t> switch_of;    // [node] which of them; kNone: an adapter
  std::vector<SilentEnd> silent_ends;
};

// Requires a node in `subnet`, as every sweep that succeeds has. O(ports + LIDs).
SweptSubnet RememberSwitches(const SubnetRecord& subnet);

// Fills in the descriptions and tables that nodes were silent about from the sweep before, by GUID.
// Of a table that is longer or shorter than the last one nothing is known. `tables`
// (null: there are none) are of that fabric; `were_tables_asked` is false where no switch was asked
// for its table. What did not answer stays noted. The same of `partitions`, of ports whose tables
// were not read.
// O(ports + LIDs that are missing).
void FillFromLast(const Fabric& fabric, const ForwardingTables* tables,
                  const Partitions* partitions, bool were_tables_asked, SubnetRecord& subnet);

// Makes a Fabric and its forwarding tables of what holds together of what a sweep has read.
// Fills in fabric, tables (null if no switch gave one or the subnet has no manager), partitions (of
// the ports whose tables are known; a port that looks at keys that are not is one that does not),
// has_subnet_manager, is_subnet_manager_silent and unanswered (sorted by path). What contradicts
// the rest is left out and listed in unanswered: a LID given twice or out of range becomes "none";
// an adapter port with another's GUID is dropped. INTERNAL: the rest does not make a fabric either.
// O(n log n).
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
