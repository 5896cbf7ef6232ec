#include "daemon/ib/swept_subnet.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "absl/algorithm/container.h"
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
      if (node.info.is_switch()) break;  // port 0 stands for all
    }
  }
  return claims;
}

SweptSwitch Remember(const SubnetRecord& subnet, const FoundNode& node,
                     const std::vector<uint8_t>& claims) {
  SweptSwitch known{node};
  known.was_silent = std::ranges::none_of(node.ports, &FoundPort::answered);
  const Lid lid = node.ports[0].lid;
  if (lid.value() <= kMaxUnicastLid && claims[lid.value()] == 1) known.counters_lid = lid;
  const auto cabled = std::ranges::find_if(node.ports, &FoundPort::is_cabled);
  if (cabled != node.ports.end()) {
    known.neighbour = subnet.nodes[cabled->peer].info.node_guid;
    known.neighbour_port = cabled->peer_port;
  }
  return known;
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

std::string LastDescription(const Fabric& fabric, const FoundNode& node) {
  const Guid guid = node.info.node_guid;
  if (node.info.is_switch()) {
    const std::optional<SwitchIndex> s = fabric.FindSwitch(guid);
    return s ? fabric.switch_info(*s).description : std::string();
  }
  for (size_t port = 1; port < node.ports.size(); ++port) {
    const auto endpoint = fabric.FindEndpoint(guid, PortNum(static_cast<uint8_t>(port)));
    if (endpoint) return fabric.adapter(*endpoint).description;
  }
  return "";
}

void FillTable(absl::Span<const uint8_t> last, bool was_asked, FoundTable& table) {
  if (table.is_silent || !was_asked) {
    table.ports.assign(last.begin(), last.end());
    return;
  }
  if (table.ports.size() != last.size()) return;
  for (size_t lid = 0; lid < last.size(); ++lid) {
    if (table.is_block_silent[lid / kLidsPerBlock]) table.ports[lid] = last[lid];
  }
}

void FillPartitions(const Partitions& last, FoundNode& node) {
  for (size_t number = 0; number < node.ports.size(); ++number) {
    FoundPort& port = node.ports[number];
    if (port.has_partition_table) continue;
    if (!node.info.is_switch() || number == 0) {
      const Guid guid = GuidOfPort(node, number);
      const auto table = last.TableOf(guid);
      port.partitions.assign(table.begin(), table.end());
      port.has_partition_table = last.IsKnown(guid);
    } else if (const Partitions::Enforcement* at =
                   last.EnforcedAt(node.info.node_guid, PortNum(static_cast<uint8_t>(number)))) {
      port.partitions = at->table;
      port.has_partition_table = true;
    }
  }
}

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
    if (result.has_subnet_manager) {
      result.subnet_manager_lid = subnet_.nodes.front().local_port().subnet_manager_lid;
      result.is_subnet_manager_silent = subnet_.is_manager_silent;
    }
    const bool has_tables = options.read_forwarding_tables || options.keep_forwarding_tables;
    if (has_tables) result.partitions = TakePartitions();
    if (has_tables && result.has_subnet_manager) {
      result.tables = TakeTables(*result.fabric);
    }
    result.unanswered = std::move(subnet_.unanswered);
    absl::c_sort(result.unanswered, [](const auto& x, const auto& y) {
      return std::tie(x.path, x.what) < std::tie(y.path, y.what);
    });
    return result;
  }

 private:
  // Sweeping again would not help.
  void Note(const FoundNode& node, std::string what) {
    subnet_.Note(node, std::move(what), /*is_silent=*/false);
  }

  // Clears LIDs that cannot be and uncables adapter ports whose GUID is another's.
  void CheckAddresses(FoundNode& node) {
    if (node.info.is_switch()) {
      CheckLid(node, node.ports[0].lid);
      return;
    }
    for (size_t number = 1; number < node.ports.size(); ++number) {
      FoundPort& port = node.ports[number];
      if (!port.is_cabled()) {
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
    const NodeInfoRecord& info = node.info;
    std::optional<AdapterKind> adapter;
    if (info.type == NodeType::kRouter) adapter = AdapterKind::kRouter;
    if (info.type == NodeType::kChannelAdapter) adapter = AdapterKind::kChannelAdapter;
    return builder_.AddNode({info.node_guid, adapter, info.port_count, node.ports[0].lid,
                             info.device_id, info.vendor_id, node.description});
  }

  absl::Status AddPorts(const FoundNode& node) {
    for (size_t number = 1; number < node.ports.size(); ++number) {
      const FoundPort& port = node.ports[number];
      if (!port.is_cabled()) continue;
      const PortNum here(static_cast<uint8_t>(number));
      if (!node.info.is_switch()) {
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

  std::shared_ptr<const Partitions> TakePartitions() const {
    auto partitions = std::make_shared<Partitions>();
    for (const FoundNode& node : subnet_.nodes) {
      for (size_t number = 0; number < node.ports.size(); ++number) {
        const FoundPort& port = node.ports[number];
        const PortNum here(static_cast<uint8_t>(number));
        if (!port.has_partition_table) continue;
        if (node.info.is_switch() && number > 0) {
          if (!port.enforces_inbound && !port.enforces_outbound) continue;
          partitions->SetEnforced(node.info.node_guid, here,
                                  {port.enforces_inbound, port.enforces_outbound, port.partitions});
        } else if (node.info.is_switch() || port.is_cabled()) {
          partitions->Set(GuidOfPort(node, number), port.partitions);
        }
      }
    }
    return partitions;
  }

  std::shared_ptr<const ForwardingTables> TakeTables(const Fabric& fabric) {
    auto tables = std::make_shared<ForwardingTables>(fabric.switch_count());
    bool any = false;
    for (size_t n = 0; n < subnet_.nodes.size(); ++n) {
      std::vector<uint8_t>& row = subnet_.tables[n].ports;
      if (row.empty()) continue;
      any = true;
      tables->SetRow(*fabric.FindSwitch(subnet_.nodes[n].info.node_guid), std::move(row));
    }
    return any ? tables : nullptr;
  }

  SubnetRecord subnet_;
  FabricBuilder builder_;
  absl::flat_hash_map<Lid, Guid> lid_owner_;
  absl::flat_hash_set<Guid> port_guids_;
};

}  // namespace

Guid GuidOfPort(const FoundNode& node, size_t number) {
  if (node.info.is_switch()) return node.info.node_guid;
  const Guid told = node.ports[number].port_guid;
  return told != Guid(0) ? told : Guid(node.info.node_guid.value() + number);
}

void SubnetRecord::Note(const FoundNode& node, std::string what, bool is_silent) {
  UnansweredNode entry{ToString(node.route), Guid(0),  PortNum(0), std::move(what),
                       node.info.node_guid,  is_silent};
  for (const FoundPort& port : node.ports) {
    if (!port.is_cabled()) continue;
    const NodeInfoRecord& peer = nodes[port.peer].info;
    if (!peer.is_switch() && entry.neighbour != Guid(0)) continue;
    entry.neighbour = peer.node_guid;
    entry.neighbour_port = port.peer_port;
    if (peer.is_switch()) break;
  }
  unanswered.push_back(std::move(entry));
}

std::string SweptSwitch::Name() const {
  return absl::StrCat("switch ", description.empty() ? ToString(guid()) : description);
}

UnansweredNode SweptSwitch::Unanswered(absl::string_view what) const {
  return {ToString(route), neighbour, neighbour_port, absl::StrCat(Name(), ": ", what)};
}

SweptSubnet RememberSwitches(const SubnetRecord& subnet) {
  SweptSubnet swept;
  swept.local = subnet.nodes.front();
  const std::vector<uint8_t> claims = CountClaims(subnet);
  absl::flat_hash_map<std::string, uint32_t> by_route;
  for (const FoundNode& node : subnet.nodes) {
    uint32_t index = SweptSwitch::kNone;
    if (node.info.is_switch()) {
      index = static_cast<uint32_t>(swept.switches.size());
      swept.switches.push_back(Remember(subnet, node, claims));
      swept.switches.back().is_first = !LeadTo(index, node.route, by_route, swept);
      by_route.emplace(ToString(node.route), index);
    }
    swept.switch_of.push_back(index);
    for (size_t number = 1; number < node.ports.size(); ++number) {
      const FoundPort& end = node.ports[number];
      if (!end.is_end_silent || end.is_cabled()) continue;
      const PortNum port(static_cast<uint8_t>(number));
      swept.silent_ends.push_back({index, port, node.route.Then(port)});
    }
  }
  return swept;
}

void FillFromLast(const Fabric& fabric, const ForwardingTables* tables,
                  const Partitions* partitions, bool were_tables_asked, SubnetRecord& subnet) {
  for (size_t n = 0; n < subnet.nodes.size(); ++n) {
    FoundNode& node = subnet.nodes[n];
    if (node.is_description_silent) node.description = LastDescription(fabric, node);
    if (partitions != nullptr) FillPartitions(*partitions, node);
    if (tables == nullptr || !node.info.is_switch()) continue;
    const std::optional<SwitchIndex> s = fabric.FindSwitch(node.info.node_guid);
    if (s) FillTable(tables->row(*s), were_tables_asked, subnet.tables[n]);
  }
}

absl::StatusOr<SweepResult> AssembleFabric(SubnetRecord subnet, const SweepOptions& options) {
  absl::StatusOr<SweepResult> result = Assembler(std::move(subnet)).Assemble(options);
  if (!result.ok()) {
    return absl::InternalError(
        absl::StrCat("what the nodes say makes no fabric: ", result.status().message()));
  }
  return result;
}

}  // namespace coppice
