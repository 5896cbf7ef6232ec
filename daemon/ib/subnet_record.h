// What a sweep has read, as the nodes told it: the unchecked intermediate between discovery, which
// fills it, and fabric_assembly, which makes a Fabric of what holds together.
#ifndef COPPICE_DAEMON_IB_SUBNET_RECORD_H_
#define COPPICE_DAEMON_IB_SUBNET_RECORD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fabric/link_rate.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/ib/directed_route.h"
#include "daemon/ib/mad_codec.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_SUBNET_RECORD_H_
