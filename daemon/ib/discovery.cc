// Walks a subnet, asking many nodes at once.
//
//   NodeInfo --new node--> NodeDescription
//      ^                   switch:  PortInfo 0, 1, 2, ...
//      |                   adapter: PortInfo of the port that it was reached by
//      +--- a port's link is up and its cable not yet known: NodeInfo one hop further
//
// and then SMInfo of the subnet manager and, if tables are wanted, P_KeyTable blocks of each
// adapter port, of a switch's port 0 and, after SwitchInfo, of where switches look at keys, and of
// each switch SwitchInfo -> LinearForwardingTable blocks.
//
// A node is known by its GUID, so the several ports of an adapter and the many routes to a switch
// meet in one record; a cable is known once either end has named the other, and is followed once.
//
// The walk is breadth first up to the order of answers. It ends: at most kMaxNodes nodes, each with
// at most 254 ports, each port asked once.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/ib/swept_subnet.h"

namespace coppice {
namespace {

// Requests under way to one node. OpenSM by default keeps four in the whole subnet.
constexpr uint32_t kPerNode = 4;
// Every node has a port with a LID of its own.
constexpr size_t kMaxNodes = kMaxUnicastLid;
// Switches whose tables are read before somebody else has the port: a quarter of a second of
// requests where there are 8,192 LIDs, many windows' worth.
constexpr uint32_t kTablesAtATime = 64;
// Nodes whose tables of partitions are.
constexpr uint32_t kPartitionsAtATime = 1024;
// A P_KeyTable's modifier: the port of a switch, and the block (IBA vol. 1, 14.2.5.7).
constexpr uint32_t kPortShift = 16, kBlockMask = 0xFFFF;
// Sends to a subnet manager that may be gone, which is waited for 0.7 s then.
constexpr int kManagerAttempts = 3;

// FDR10 is NVIDIA's: SwitchX and later switches, ConnectX-3 and later adapters know the attribute.
bool MayRunFdr10(const NodeInfoRecord& info) {
  constexpr uint32_t kMellanox = 0x0002C9;
  if (info.vendor_id != kMellanox) return false;
  return info.is_switch() ? info.device_id >= 0xC738
                          : info.device_id >= 0x1003 && info.device_id < 0x2000;
}

std::string Refusal(const MadOutcome& outcome) {
  return absl::StrCat("refused with status 0x", absl::Hex(outcome.status));
}

class Discovery {
 public:
  Discovery(MadEngine& engine, const Partitions* known) : engine_(engine), known_(known) {}

  absl::StatusOr<SubnetRecord> Read(const SweepOptions& options) {
    engine_.Submit(MadRequest());
    RETURN_IF_ERROR(RunAll());
    if (subnet_.nodes.empty()) {
      return absl::UnavailableError(
          absl::StrCat("the local node does not say what it is: ", local_fault_));
    }
    if (!IsSwitch(0) && !local_link_up_) {
      return absl::UnavailableError(
          absl::StrCat("the local port's link is down; check the cable of port ",
                       subnet_.nodes[0].info.local_port.value()));
    }
    // Nothing was seen: publishing an empty fabric would throw a good one away.
    if (subnet_.nodes.size() == 1 && !subnet_.unanswered.empty()) {
      return absl::UnavailableError(absl::StrCat(
          "the node at the other end of the local port ", subnet_.nodes[0].info.local_port.value(),
          " does not answer: ", subnet_.unanswered.front().what));
    }
    AskManager();
    RETURN_IF_ERROR(RunAll());
    if (options.read_forwarding_tables) known_ = nullptr;  // anew
    if (options.read_forwarding_tables || options.keep_forwarding_tables) {
      RETURN_IF_ERROR(ReadPartitions(options.between));
    }
    if (options.read_forwarding_tables) RETURN_IF_ERROR(ReadTables(options.between));
    return std::move(subnet_);
  }

 private:
  absl::Status RunAll() {
    return engine_.Run([this](const MadRequest& request, const MadOutcome& outcome) {
      OnOutcome(request, outcome);
    });
  }

  // The longest part of a sweep, in groups, between which the engine is idle and anybody's.
  absl::Status ReadTables(const std::function<void()>& between) {
    reads_tables_ = true;
    const auto count = static_cast<uint32_t>(subnet_.nodes.size());
    uint32_t in_group = 0;
    for (uint32_t node = 0; node < count; ++node) {
      if (!IsSwitch(node)) continue;
      if (progress_[node].silences >= kSilencesToGiveUp) {
        subnet_.tables[node].is_silent = true;
        continue;
      }
      Ask(node, subnet_.nodes[node].route, MadAttribute::kSwitchInfo, 0);
      if (++in_group < kTablesAtATime) continue;
      in_group = 0;
      RETURN_IF_ERROR(RunAll());
      if (between) between();
    }
    return RunAll();
  }

  // In groups, too.
  absl::Status ReadPartitions(const std::function<void()>& between) {
    const auto count = static_cast<uint32_t>(subnet_.nodes.size());
    for (uint32_t begin = 0; begin < count; begin += kPartitionsAtATime) {
      AskPartitions(begin, std::min(count, begin + kPartitionsAtATime));
      RETURN_IF_ERROR(RunAll());
      if (between) between();
    }
    return absl::OkStatus();
  }

  void AskPartitions(uint32_t begin, uint32_t end) {
    for (uint32_t n = begin; n < end; ++n) {
      const FoundNode& node = subnet_.nodes[n];
      if (progress_[n].silences >= kSilencesToGiveUp) continue;
      if (!IsSwitch(n)) {
        for (size_t number = 1; number < node.ports.size(); ++number) {
          if (node.ports[number].port_guid == Guid(0) || IsTableKnown(node, number)) continue;
          Ask(n, RouteTo(n, number), MadAttribute::kPartitionTable, 0);
        }
        continue;
      }
      bool looks = false;
      for (size_t number = 1; number < node.ports.size(); ++number) {
        looks |= node.ports[number].enforces() && !IsTableKnown(node, number);
      }
      looks ? Ask(n, node.route, MadAttribute::kSwitchInfo, 0) : AskNextKeys(n);
    }
  }

  bool IsTableKnown(const FoundNode& node, size_t number) const {
    if (known_ == nullptr) return false;
    if (!node.info.is_switch() || number == 0) return known_->IsKnown(GuidOfPort(node, number));
    return known_->EnforcedAt(node.info.node_guid, PortNum(static_cast<uint8_t>(number))) !=
           nullptr;
  }

  // Of a switch: port 0, then each port where it looks.
  void AskNextKeys(uint32_t n) {
    uint32_t& next = progress_[n].next_keys;
    const FoundNode& node = subnet_.nodes[n];
    while (next < node.ports.size() &&
           ((next > 0 && !node.ports[next].enforces()) || IsTableKnown(node, next))) {
      ++next;
    }
    if (next >= node.ports.size() || progress_[n].silences >= kSilencesToGiveUp) return;
    Ask(n, node.route, MadAttribute::kPartitionTable, next++ << kPortShift);
  }

  // A switch is asked for a port, an adapter's port for itself.
  FoundPort& PortOfKeys(const MadRequest& request) {
    FoundNode& node = subnet_.nodes[request.subject];
    if (node.info.is_switch()) return node.ports[request.modifier >> kPortShift];
    size_t number = 1;
    while (number + 1 < node.ports.size() && (node.ports[number].port_guid == Guid(0) ||
                                              RouteTo(request.subject, number) != request.route)) {
      ++number;
    }
    return node.ports[number];
  }

  // Block after block up to the port's capacity: what a subnet manager takes away leaves gaps.
  void OnPartitionBlock(const MadRequest& request, const MadOutcome& outcome) {
    const uint32_t n = request.subject, block = request.modifier & kBlockMask;
    const FoundNode& node = subnet_.nodes[n];
    FoundPort& port = PortOfKeys(request);
    if (CountSilence(request, outcome)) {
      const auto keys = DecodePartitionBlock(outcome.data);
      port.partitions.insert(port.partitions.end(), keys.begin(), keys.end());
      const bool is_external = IsSwitch(n) && request.modifier >> kPortShift > 0;
      const uint32_t capacity = is_external ? node.enforced_capacity : node.info.partition_capacity;
      if ((block + 1) * kKeysPerBlock < capacity) {
        Ask(n, request.route, MadAttribute::kPartitionTable, request.modifier + 1);
        return;
      }
      port.has_partition_table = true;
    }
    if (IsSwitch(n)) AskNextKeys(n);
  }

  // LIDs stay when the subnet manager ends: only itself can say that it runs (IBA vol. 1,
  // 14.2.5.13).
  void AskManager() {
    const uint32_t lid = subnet_.nodes.front().local_port().subnet_manager_lid.value();
    if (lid == 0) return;
    subnet_.is_manager_silent = true;
    for (uint32_t n = 0; n < subnet_.nodes.size(); ++n) {
      const FoundNode& node = subnet_.nodes[n];
      for (size_t number = 0; number < node.ports.size(); ++number) {
        const FoundPort& port = node.ports[number];
        const uint32_t port_lid = port.lid.value();
        if (port_lid == 0 || lid >> port.lmc != port_lid >> port.lmc) continue;
        engine_.Submit(
            {RouteTo(n, number), MadAttribute::kSubnetManagerInfo, 0, n, Lid(0), kManagerAttempts});
        return;
      }
    }
  }

  // Into that port, where the node has several: each may have a manager of its own.
  DirectedRoute RouteTo(uint32_t n, size_t number) const {
    const FoundNode& node = subnet_.nodes[n];
    const FoundPort& port = node.ports[number];
    const bool is_here = n == 0 && number == node.info.local_port.value();
    if (is_here || !port.is_cabled() || !IsSwitch(port.peer)) return node.route;
    const DirectedRoute& before = subnet_.nodes[port.peer].route;
    return before.hop_count < DirectedRoute::kMaxHops ? before.Then(port.peer_port) : node.route;
  }

  bool IsSwitch(uint32_t node) const { return subnet_.nodes[node].info.is_switch(); }

  void OnOutcome(const MadRequest& request, const MadOutcome& outcome) {
    switch (request.attribute) {
      case MadAttribute::kNodeInfo:
        return OnNodeInfo(request, outcome);
      case MadAttribute::kNodeDescription:
        return OnNodeDescription(request, outcome);
      case MadAttribute::kSwitchInfo:
        return OnSwitchInfo(request, outcome);
      case MadAttribute::kPortInfo:
        return OnPortInfo(request, outcome);
      case MadAttribute::kExtendedPortInfo:
        return OnExtendedPortInfo(request, outcome);
      case MadAttribute::kPartitionTable:
        return OnPartitionBlock(request, outcome);
      case MadAttribute::kLinearForwardingTable:
        return OnTableBlock(request, outcome);
      case MadAttribute::kSubnetManagerInfo:
        subnet_.is_manager_silent = !outcome.is_answered();
        return;
      default:
        return;  // not asked here
    }
  }

  // `request.subject` is the node before the last hop of the route.
  void OnNodeInfo(const MadRequest& request, const MadOutcome& outcome) {
    if (!outcome.is_answered()) {
      const bool silent = outcome.is_unanswered();
      if (silent && request.route.hop_count > 0) {
        const uint8_t out = request.route.port[request.route.hop_count];
        subnet_.nodes[request.subject].ports[out].is_end_silent = true;
      }
      Note(request, silent ? "NodeInfo" : absl::StrCat("NodeInfo: ", Refusal(outcome)), silent);
      return;
    }
    const absl::StatusOr<NodeInfoRecord> info = DecodeNodeInfo(outcome.data);
    if (!info.ok()) {
      Note(request, absl::StrCat("NodeInfo: ", info.status().message()));
      return;
    }
    const bool cabled = request.route.hop_count > 0;
    if (cabled && info->local_port == PortNum(0)) {
      Note(request, "NodeInfo: local port 0 behind a cable");
      return;
    }
    const auto found = by_guid_.find(info->node_guid);
    if (found == by_guid_.end() && subnet_.nodes.size() >= kMaxNodes) {
      Note(request, absl::StrCat("NodeInfo: more than the ", kMaxNodes, " nodes of a subnet"));
      return;
    }
    const uint32_t node = found != by_guid_.end() ? found->second : AddNode(*info, request.route);
    const NodeInfoRecord& known = subnet_.nodes[node].info;
    if (known.type != info->type || known.port_count != info->port_count) {
      Note(request, absl::StrCat("NodeInfo: not what node ", ToString(info->node_guid),
                                 " says elsewhere; two nodes with one GUID?"));
      return;
    }
    if (cabled && !Connect(request, node, info->local_port)) return;
    if (IsSwitch(node)) return;
    FoundPort& port = subnet_.nodes[node].ports[info->local_port.value()];
    if (port.port_guid != Guid(0)) return;  // the local port, met again from outside
    port.port_guid = info->port_guid;
    Ask(node, request.route, MadAttribute::kPortInfo, info->local_port.value());
  }

  uint32_t AddNode(const NodeInfoRecord& info, const DirectedRoute& route) {
    const auto node = static_cast<uint32_t>(subnet_.nodes.size());
    by_guid_.emplace(info.node_guid, node);
    FoundNode& record = subnet_.nodes.emplace_back();
    record.info = info;
    record.route = route;
    record.ports.resize(info.port_count + 1);
    subnet_.tables.emplace_back();
    progress_.emplace_back();
    Ask(node, route, MadAttribute::kNodeDescription, 0);
    if (info.is_switch()) {
      for (uint32_t i = 0; i < kPerNode; ++i) AskNextPort(node);
    }
    return node;
  }

  // Records the cable that the request went over. False, and noted, if either end is known to be
  // cabled elsewhere: the subnet changed under the sweep, or somebody lies.
  bool Connect(const MadRequest& request, uint32_t node, PortNum port) {
    const PortNum from_port(request.route.port[request.route.hop_count]);
    FoundPort& from = subnet_.nodes[request.subject].ports[from_port.value()];
    FoundPort& to = subnet_.nodes[node].ports[port.value()];
    const bool same_cable = from.peer == node && from.peer_port == port &&
                            to.peer == request.subject && to.peer_port == from_port;
    if (same_cable) return true;
    const bool itself = node == request.subject && port == from_port;
    if (itself || from.is_cabled() || to.is_cabled()) {
      Note(request, absl::StrCat("NodeInfo: answered by port ", port.value(), " of node ",
                                 ToString(subnet_.nodes[node].info.node_guid),
                                 ", which is cabled elsewhere; sweep again"));
      return false;
    }
    from.peer = node;
    from.peer_port = port;
    to.peer = request.subject;
    to.peer_port = from_port;
    return true;
  }

  void OnNodeDescription(const MadRequest& request, const MadOutcome& outcome) {
    FoundNode& node = subnet_.nodes[request.subject];
    node.is_description_silent = outcome.is_unanswered();
    if (!CountSilence(request, outcome)) return;
    node.description = DecodeNodeDescription(outcome.data);
  }

  void OnSwitchInfo(const MadRequest& request, const MadOutcome& outcome) {
    if (!reads_tables_) return OnEnforcedCapacity(request, outcome);
    FoundTable& table = subnet_.tables[request.subject];
    table.is_silent = outcome.is_unanswered();
    if (!CountSilence(request, outcome)) return;
    const uint16_t top = DecodeLinearTableTop(outcome.data);
    if (top == 0) return;
    const uint32_t block_count = top / kLidsPerBlock + 1;
    table.ports.assign(top + 1, ForwardingTables::kNoRoute);
    table.is_block_silent.assign(block_count, true);
    progress_[request.subject].block_count = block_count;
    for (uint32_t i = 0; i < kPerNode; ++i) AskNextBlock(request.subject);
  }

  // Without it only port 0 is read.
  void OnEnforcedCapacity(const MadRequest& request, const MadOutcome& outcome) {
    FoundNode& node = subnet_.nodes[request.subject];
    const bool answered = CountSilence(request, outcome);
    if (answered) node.enforced_capacity = DecodeEnforcedCapacity(outcome.data);
    for (uint32_t i = 0; i < (answered ? kPerNode : 1); ++i) AskNextKeys(request.subject);
    if (!answered) progress_[request.subject].next_keys = node.info.port_count + 1u;
  }

  void OnTableBlock(const MadRequest& request, const MadOutcome& outcome) {
    const bool answered = CountSilence(request, outcome);
    AskNextBlock(request.subject);
    FoundTable& table = subnet_.tables[request.subject];
    table.is_block_silent[request.modifier] = outcome.is_unanswered();
    if (!answered) return;
    const size_t first = size_t{request.modifier} * kLidsPerBlock;
    const size_t count = std::min<size_t>(kLidsPerBlock, table.ports.size() - first);
    std::copy_n(outcome.data.begin(), count, table.ports.begin() + first);
  }

  void OnPortInfo(const MadRequest& request, const MadOutcome& outcome) {
    const uint32_t node = request.subject;
    const bool answered = CountSilence(request, outcome);
    if (IsSwitch(node)) AskNextPort(node);
    if (!answered) return;
    const PortInfoRecord info = DecodePortInfo(outcome.data);
    const PortNum number(static_cast<uint8_t>(request.modifier));
    FoundPort& port = subnet_.nodes[node].ports[number.value()];
    port.answered = true;
    port.link_up = info.link_up;
    port.lid = info.lid;
    port.subnet_manager_lid = info.subnet_manager_lid;
    port.lmc = info.lmc;
    port.enforces_inbound = info.enforces_inbound;
    port.enforces_outbound = info.enforces_outbound;
    port.rate = info.rate;
    if (info.rate.speed == LaneSpeed::kQdr && MayRunFdr10(subnet_.nodes[node].info)) {
      Ask(node, request.route, MadAttribute::kExtendedPortInfo, request.modifier);
    }
    const bool local_adapter_port = !IsSwitch(node) && request.route.hop_count == 0;
    if (local_adapter_port) local_link_up_ = info.link_up;
    const bool leads_on = local_adapter_port || (IsSwitch(node) && number != PortNum(0));
    if (leads_on && info.link_up) FollowCable(node, number, request.route);
  }

  void FollowCable(uint32_t node, PortNum port, const DirectedRoute& route) {
    if (subnet_.nodes[node].ports[port.value()].is_cabled()) return;
    if (route.hop_count == DirectedRoute::kMaxHops) {
      subnet_.unanswered.push_back({ToString(route), subnet_.nodes[node].info.node_guid, port,
                                    "NodeInfo: further away than a directed route reaches", Guid(0),
                                    /*is_silent=*/false});
      return;
    }
    Ask(node, route.Then(port), MadAttribute::kNodeInfo, 0);
  }

  // The attribute is an extension: a node without it has plain QDR.
  void OnExtendedPortInfo(const MadRequest& request, const MadOutcome& outcome) {
    if (!outcome.is_answered() || !DecodeFdr10Active(outcome.data)) return;
    subnet_.nodes[request.subject].ports[request.modifier].rate.speed = LaneSpeed::kFdr10;
  }

  void Ask(uint32_t node, const DirectedRoute& route, MadAttribute attribute, uint32_t modifier) {
    engine_.Submit({route, attribute, modifier, node});
  }

  void AskNextPort(uint32_t node) {
    Progress& progress = progress_[node];
    const FoundNode& record = subnet_.nodes[node];
    if (progress.next_port > record.info.port_count || progress.silences >= kSilencesToGiveUp) {
      return;
    }
    Ask(node, record.route, MadAttribute::kPortInfo, progress.next_port++);
  }

  void AskNextBlock(uint32_t node) {
    Progress& progress = progress_[node];
    if (progress.next_block >= progress.block_count || progress.silences >= kSilencesToGiveUp) {
      return;
    }
    Ask(node, subnet_.nodes[node].route, MadAttribute::kLinearForwardingTable,
        progress.next_block++);
  }

  // True if the subject answered. Else notes what is missing.
  bool CountSilence(const MadRequest& request, const MadOutcome& outcome) {
    Progress& progress = progress_[request.subject];
    if (!outcome.is_unanswered()) progress.silences = 0;
    if (outcome.is_answered()) return true;
    std::string what(ToString(request.attribute));
    if (request.attribute == MadAttribute::kPortInfo) {
      absl::StrAppend(&what, " of port ", request.modifier);
    } else if (request.attribute == MadAttribute::kLinearForwardingTable) {
      absl::StrAppend(&what, " block ", request.modifier);
    } else if (request.attribute == MadAttribute::kPartitionTable) {
      absl::StrAppend(&what, " block ", request.modifier & kBlockMask);
      if (IsSwitch(request.subject)) {
        absl::StrAppend(&what, " of port ", request.modifier >> kPortShift);
      }
    }
    if (outcome.kind == MadOutcome::Kind::kRefused) {
      absl::StrAppend(&what, ": ", Refusal(outcome));
    } else if (++progress.silences == kSilencesToGiveUp) {
      absl::StrAppend(&what, "; the node was asked no more");
    }
    Note(request, what, outcome.is_unanswered());
    return false;
  }

  // Names the far end of the request's route: itself if it said who it is, else by what is at the
  // near end of its last cable.
  void Note(const MadRequest& request, absl::string_view what, bool is_silent = false) {
    if (request.route.hop_count == 0 && subnet_.nodes.empty()) {
      local_fault_ = std::string(what);
      return;
    }
    const FoundNode& subject = subnet_.nodes[request.subject];
    const bool about_next = request.attribute == MadAttribute::kNodeInfo;
    if (!about_next || request.route.hop_count == 0) {
      return subnet_.Note(subject, std::string(what), is_silent);
    }
    subnet_.unanswered.push_back({ToString(request.route), subject.info.node_guid,
                                  PortNum(request.route.port[request.route.hop_count]),
                                  std::string(what), Guid(0), is_silent});
  }

  // How far the questions to a node have come.
  struct Progress {
    uint32_t next_port = 0;
    uint32_t next_block = 0, block_count = 0;
    uint32_t next_keys = 0;  // port
    int silences = 0;        // in a row
  };

  MadEngine& engine_;
  const Partitions* known_;    // whose tables are not read again; null: none
  bool reads_tables_ = false;  // of forwarding; what SwitchInfo is asked for
  SubnetRecord subnet_;
  absl::flat_hash_map<Guid, uint32_t> by_guid_;
  std::vector<Progress> progress_;  // [node]
  bool local_link_up_ = false;
  std::string local_fault_;  // what the local node answered instead of itself
};

}  // namespace

absl::StatusOr<SubnetRecord> ReadSubnet(MadEngine& engine, const SweepOptions& options,
                                        const Partitions* known) {
  return Discovery(engine, known).Read(options);
}

}  // namespace coppice
