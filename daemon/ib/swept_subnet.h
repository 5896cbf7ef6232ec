// What the last full sweep saw of the switches: the ways to them and the state of their ports.
// Light sweeps compare with it and counters are read by it, so that neither walks the subnet again.
#ifndef COPPICE_DAEMON_IB_SWEPT_SUBNET_H_
#define COPPICE_DAEMON_IB_SWEPT_SUBNET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/base/strong_id.h"
#include "daemon/fabric/link_rate.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/ib/directed_route.h"
#include "daemon/ib/subnet_record.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_SWEPT_SUBNET_H_
