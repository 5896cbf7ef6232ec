#include "daemon/ib/fabric_assembly.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_builder.h"

namespace coppice {
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
    if (lid.value() > kTopUnicastLid) {
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
