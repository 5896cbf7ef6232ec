#include "daemon/ib/swept_subnet.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_builder.h"

namespace coppice {
namespace {

// How many ports claim each LID, with the 2^LMC LIDs of each. Whose a LID is that two claim is up
// to the tables of the switches on the way; whatever answers there may be either.
std::vector<uint8_t> CountClaims(const SubnetRecord& subnet) {
  std::vector<uint8_t> claims(kMaxUnicastLid + 1);
  for (const FoundNode& node : subnet.nodes) {
    for (const FoundPort& port : node.ports) {
      if (port.lid == Lid(0) || port.lid.value() > kMaxUnicastLid) continue;
      const uint32_t last = port.lid.value() + (1u << port.lmc) - 1;
      for (uint32_t lid = port.lid.value(); lid <= std::min<uint32_t>(last, kMaxUnicastLid);
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
      if (known.lid.value() <= kMaxUnicastLid && claims[known.lid.value()] == 1) {
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

namespace {

std::string LastDescription(const Fabric& fabric, const FoundNode& node) {
  const Guid guid = node.info.node_guid;
  if (node.info.type == NodeType::kSwitch) {
    const std::optional<SwitchIndex> s = fabric.FindSwitch(guid);
    return s ? fabric.switch_info(*s).description : std::string();
  }
  for (size_t port = 1; port < node.ports.size(); ++port) {
    const auto endpoint = fabric.FindEndpoint(guid, PortNum(static_cast<uint8_t>(port)));
    if (endpoint) return fabric.adapter(*endpoint).description;
  }
  return "";
}

void FillTable(absl::Span<const uint8_t> last, bool was_asked, FoundNode& node) {
  if (node.is_table_silent || !was_asked) {
    node.table.assign(last.begin(), last.end());
    return;
  }
  if (node.table.size() != last.size()) return;
  for (size_t block = 0; block < node.is_block_silent.size(); ++block) {
    if (!node.is_block_silent[block]) continue;
    const size_t first = block * kLidsPerBlock;
    const size_t count = std::min<size_t>(kLidsPerBlock, last.size() - first);
    std::copy_n(last.begin() + first, count, node.table.begin() + first);
  }
}

}  // namespace

void FillFromLast(const Fabric& fabric, const ForwardingTables* tables, bool were_tables_asked,
                  SubnetRecord& subnet) {
  for (FoundNode& node : subnet.nodes) {
    if (node.is_description_silent) node.description = LastDescription(fabric, node);
    if (tables == nullptr || node.info.type != NodeType::kSwitch) continue;
    const std::optional<SwitchIndex> s = fabric.FindSwitch(node.info.node_guid);
    if (s) FillTable(tables->row(*s), were_tables_asked, node);
  }
}

namespace {

class Assembler {
 public:
  explicit Assembler(SubnetRecord subnet) : subnet_(std::move(subnet)) {}

  absl::StatusOr<SweepResult> Assemble(const SweepOptions& options) {
    for (FoundNode& node : subnet_.nodes) CheckAddresses(node);
    for (const FoundNode& node : subnet_.nodes) RETURN_IF_ERROR(AddNode(node));
    for (const FoundNode& node : subnet_.nodes) RETURN_IF_ERROR(AddPorts(node));
    SweepResult result;
    ASSIGN_OR_RETURN(result.fabric, builder_.Build());
    result.has_subnet_manager = !lid_owner_.empty();
    if (result.has_subnet_manager) result.subnet_manager_lid = LocalPort().subnet_manager_lid;
    const bool has_tables = options.read_forwarding_tables || options.keep_forwarding_tables;
    if (has_tables && result.has_subnet_manager) {
      result.tables = TakeTables(*result.fabric);
    }
    result.unanswered = std::move(subnet_.unanswered);
    std::sort(result.unanswered.begin(), result.unanswered.end(), [](const auto& x, const auto& y) {
      return std::tie(x.path, x.what) < std::tie(y.path, y.what);
    });
    return result;
  }

 private:
  static bool IsSwitch(const FoundNode& node) { return node.info.type == NodeType::kSwitch; }

  // Sweeping again would not help.
  void Note(const FoundNode& node, std::string what) {
    subnet_.Note(node, std::move(what), /*is_silent=*/false);
  }

  // The port that the sweep was read through; of a switch, port 0.
  const FoundPort& LocalPort() const {
    const FoundNode& local = subnet_.nodes.front();
    return local.ports[local.info.local_port.value()];
  }

  // Clears LIDs that cannot be and uncables adapter ports whose GUID is another's.
  void CheckAddresses(FoundNode& node) {
    if (IsSwitch(node)) {
      CheckLid(node, node.ports[0].lid);
      return;
    }
    for (size_t number = 1; number < node.ports.size(); ++number) {
      FoundPort& port = node.ports[number];
      if (port.peer == FoundPort::kNoPeer) {
        port.lid = Lid(0);
        continue;
      }
      CheckLid(node, port.lid);
      if (port.port_guid == Guid(0)) port.port_guid = Guid(node.info.node_guid.value() + number);
      if (port_guids_.insert(port.port_guid).second) continue;
      Note(node, absl::StrCat("NodeInfo: port GUID ", ToString(port.port_guid), " of port ", number,
                              " of node ", ToString(node.info.node_guid),
                              " is also another port's; give each its own"));
      FoundPort& peer = subnet_.nodes[port.peer].ports[port.peer_port.value()];
      peer.peer = port.peer = FoundPort::kNoPeer;
    }
  }

  void CheckLid(const FoundNode& node, Lid& lid) {
    if (lid == Lid(0)) return;
    if (lid.value() > kMaxUnicastLid) {
      Note(node, absl::StrCat("PortInfo: LID ", lid.value(), " is not a unicast LID"));
      lid = Lid(0);
      return;
    }
    const auto [owner, is_new] = lid_owner_.emplace(lid, node.info.node_guid);
    if (is_new) return;
    Note(node, absl::StrCat("PortInfo: LID ", lid.value(), " is also that of node ",
                            ToString(owner->second), "; the subnet manager assigns LIDs once"));
    lid = Lid(0);
  }

  absl::Status AddNode(const FoundNode& node) {
    if (IsSwitch(node)) {
      SwitchInfo info;
      info.guid = node.info.node_guid;
      info.lid = node.ports[0].lid;
      info.port_count = node.info.port_count;
      info.device_id = node.info.device_id;
      info.vendor_id = node.info.vendor_id;
      info.description = node.description;
      return builder_.AddSwitch(std::move(info));
    }
    AdapterInfo info;
    info.guid = node.info.node_guid;
    info.kind =
        node.info.type == NodeType::kRouter ? AdapterKind::kRouter : AdapterKind::kChannelAdapter;
    info.port_count = node.info.port_count;
    info.device_id = node.info.device_id;
    info.vendor_id = node.info.vendor_id;
    info.description = node.description;
    return builder_.AddAdapter(std::move(info));
  }

  absl::Status AddPorts(const FoundNode& node) {
    for (size_t number = 1; number < node.ports.size(); ++number) {
      const FoundPort& port = node.ports[number];
      if (port.peer == FoundPort::kNoPeer) continue;
      const PortNum here(static_cast<uint8_t>(number));
      if (!IsSwitch(node)) {
        RETURN_IF_ERROR(
            builder_.SetAdapterPort(node.info.node_guid, here, port.port_guid, port.lid, port.lmc));
      }
      // Each cable is stated from both ends; the builder keeps the first rate that is known.
      RETURN_IF_ERROR(builder_.AddLink(node.info.node_guid, here,
                                       subnet_.nodes[port.peer].info.node_guid, port.peer_port,
                                       port.rate));
    }
    return absl::OkStatus();
  }

  std::shared_ptr<const ForwardingTables> TakeTables(const Fabric& fabric) {
    auto tables = std::make_shared<ForwardingTables>(fabric.switch_count());
    bool any = false;
    for (FoundNode& node : subnet_.nodes) {
      if (node.table.empty()) continue;
      any = true;
      tables->SetRow(*fabric.FindSwitch(node.info.node_guid), std::move(node.table));
    }
    return any ? tables : nullptr;
  }

  SubnetRecord subnet_;
  FabricBuilder builder_;
  absl::flat_hash_map<Lid, Guid> lid_owner_;
  absl::flat_hash_set<Guid> port_guids_;
};

}  // namespace

absl::StatusOr<SweepResult> AssembleFabric(SubnetRecord subnet, const SweepOptions& options) {
  absl::StatusOr<SweepResult> result = Assembler(std::move(subnet)).Assemble(options);
  if (!result.ok()) {
    return absl::InternalError(
        absl::StrCat("what the nodes say makes no fabric: ", result.status().message()));
  }
  return result;
}

}  // namespace coppice
