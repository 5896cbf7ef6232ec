#include "daemon/ib/swept_subnet.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

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
    if (port.answered) known.was_silent = false;
    if (!is_cabled || known.neighbour != Guid(0)) continue;
    known.neighbour = subnet.nodes[port.peer].info.node_guid;
    known.neighbour_port = port.peer_port;
  }
  return known;
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
  absl::flat_hash_map<std::string, uint32_t> by_route;
  for (const FoundNode& node : subnet.nodes) {
    const bool is_switch = node.info.type == NodeType::kSwitch;
    const uint32_t index =
        is_switch ? static_cast<uint32_t>(swept.switches.size()) : SweptSwitch::kNone;
    if (is_switch) {
      SweptSwitch known = Remember(subnet, node);
      if (node.route.hop_count > 0) {
        DirectedRoute before = node.route;
        before.port[before.hop_count--] = 0;
        const auto found = by_route.find(ToString(before));
        if (found != by_route.end()) known.before = found->second;
      }
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

void RememberLids(const Fabric& fabric, SweptSubnet& swept) {
  for (SweptSwitch& known : swept.switches) {
    const std::optional<SwitchIndex> index = fabric.FindSwitch(known.guid);
    if (index) known.counters_lid = fabric.switch_info(*index).lid;
  }
}

}  // namespace coppice
