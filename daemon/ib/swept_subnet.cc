#include "daemon/ib/swept_subnet.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

// How many ports claim each LID, with the 2^LMC LIDs of each. Whose a LID is that two claim is up
// to the tables of the switches on the way; whatever answers there may be either.
std::vector<uint8_t> CountClaims(const SubnetRecord& subnet) {
  std::vector<uint8_t> claims(kTopUnicastLid + 1);
  for (const FoundNode& node : subnet.nodes) {
    for (const FoundPort& port : node.ports) {
      if (port.lid == Lid(0) || port.lid.value() > kTopUnicastLid) continue;
      const uint32_t last = port.lid.value() + (1u << port.lmc) - 1;
      for (uint32_t lid = port.lid.value(); lid <= std::min<uint32_t>(last, kTopUnicastLid);
           ++lid) {
        if (claims[lid] < 2) ++claims[lid];
      }
      if (node.info.type == NodeType::kSwitch) break;  // port 0 stands for all
    }
  }
  return claims;
}

SweptSwitch Remember(const SubnetRecord& subnet, const FoundNode& node) {
  SweptSwitch known;
  known.guid = node.info.node_guid;
  known.description = node.description;
  known.route = node.route;
  known.lid = node.ports[0].lid;
  known.lmc = node.ports[0].lmc;
  known.subnet_manager_lid = node.ports[0].subnet_manager_lid;
  known.was_silent = true;
  known.ports.reserve(node.ports.size());
  for (const FoundPort& port : node.ports) {
    const bool is_cabled = port.peer != FoundPort::kNoPeer;
    known.ports.push_back({port.answered, port.link_up, is_cabled, port.rate});
    if (is_cabled) known.ports.back().peer_port = port.peer_port;
    if (port.answered) known.was_silent = false;
    if (!is_cabled || known.neighbour != Guid(0)) continue;
    known.neighbour = subnet.nodes[port.peer].info.node_guid;
    known.neighbour_port = port.peer_port;
  }
  return known;
}

// Of each node, which of the switches it is.
std::vector<uint32_t> NumberSwitches(const SubnetRecord& subnet) {
  std::vector<uint32_t> numbers;
  uint32_t next = 0;
  for (const FoundNode& node : subnet.nodes) {
    const bool is_switch = node.info.type == NodeType::kSwitch;
    numbers.push_back(is_switch ? next++ : SweptPort::kNowhere);
  }
  return numbers;
}

// Notes at the port that the route leaves its last switch by where it leads. False: it passes none.
bool LeadTo(uint32_t index, const DirectedRoute& route,
            const absl::flat_hash_map<std::string, uint32_t>& by_route, SweptSubnet& swept) {
  if (route.hop_count == 0) return false;
  DirectedRoute before = route;
  const uint8_t port = std::exchange(before.port[before.hop_count--], 0);
  const auto found = by_route.find(ToString(before));
  if (found == by_route.end()) return false;
  swept.switches[found->second].ports[port].leads_to = index;
  return true;
}

}  // namespace

std::string SweptSwitch::Name() const {
  return absl::StrCat("switch ", description.empty() ? ToString(guid) : description);
}

UnansweredNode SweptSwitch::Unanswered(std::string what) const {
  return {ToString(route), neighbour, neighbour_port, std::move(what)};
}

SweptSubnet RememberSwitches(const SubnetRecord& subnet) {
  SweptSubnet swept;
  const FoundNode& local = subnet.nodes.front();
  swept.local_is_switch = local.info.type == NodeType::kSwitch;
  swept.local_port = local.info.local_port;
  const FoundPort& local_port = local.ports[local.info.local_port.value()];
  swept.local_lid = local_port.lid;
  swept.local_lmc = local_port.lmc;
  swept.local_subnet_manager_lid = local_port.subnet_manager_lid;
  const std::vector<uint8_t> claims = CountClaims(subnet);
  const std::vector<uint32_t> numbers = NumberSwitches(subnet);
  absl::flat_hash_map<std::string, uint32_t> by_route;
  for (const FoundNode& node : subnet.nodes) {
    const bool is_switch = node.info.type == NodeType::kSwitch;
    const uint32_t index =
        is_switch ? static_cast<uint32_t>(swept.switches.size()) : SweptSwitch::kNone;
    if (is_switch) {
      SweptSwitch known = Remember(subnet, node);
      for (size_t port = 1; port < node.ports.size(); ++port) {
        const uint32_t peer = node.ports[port].peer;
        if (peer != FoundPort::kNoPeer) known.ports[port].peer = numbers[peer];
      }
      if (known.lid.value() <= kTopUnicastLid && claims[known.lid.value()] == 1) {
        known.counters_lid = known.lid;
      }
      known.is_first = !LeadTo(index, node.route, by_route, swept);
      by_route.emplace(ToString(node.route), index);
      swept.switches.push_back(std::move(known));
    }
    for (size_t number = 1; number < node.ports.size(); ++number) {
      const FoundPort& end = node.ports[number];
      if (!end.is_end_silent || end.peer != FoundPort::kNoPeer) continue;
      const PortNum port(static_cast<uint8_t>(number));
      swept.silent_ends.push_back({index, port, node.route.Then(port)});
    }
  }
  return swept;
}

}  // namespace coppice
