#include "tests/unit/ib/scripted_subnet.h"

#include <algorithm>

namespace coppice {
namespace {

void Put(Mad& mad, size_t at, int bytes, uint64_t value) {
  for (int i = 0; i < bytes; ++i) mad[at + i] = static_cast<uint8_t>(value >> 8 * (bytes - 1 - i));
}
uint64_t Get(const Mad& mad, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | mad[at + i];
  return value;
}

}  // namespace

int ScriptedSubnet::Add(uint8_t type, int ports, std::string description, uint16_t lid) {
  Node node;
  node.type = type;
  node.told_ports = static_cast<uint8_t>(ports);
  node.guid = 0x1000 * (nodes_.size() + 1);
  node.description = std::move(description);
  node.ports.resize(ports + 1);
  for (Port& port : node.ports) port.lid = lid;
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

void ScriptedSubnet::Cable(int a, int a_port, int b, int b_port) {
  nodes_[a].ports[a_port].peer = b;
  nodes_[a].ports[a_port].peer_port = b_port;
  nodes_[b].ports[b_port].peer = a;
  nodes_[b].ports[b_port].peer_port = a_port;
}

std::optional<std::pair<int, int>> ScriptedSubnet::Walk(const Mad& mad) const {
  const int hops = mad[7];
  int node = 0, in = nodes_[0].type == 2 ? 0 : 1;
  for (int hop = 1; hop <= hops; ++hop) {
    const size_t out = mad[128 + hop];
    const bool forwards = nodes_[node].type == 2 || (hop == 1 && out == 1);
    if (!forwards || out == 0 || out >= nodes_[node].ports.size()) return std::nullopt;
    const Port& port = nodes_[node].ports[out];
    if (port.peer < 0) return std::nullopt;
    node = port.peer;
    in = port.peer_port;
  }
  return std::pair(node, in);
}

std::optional<std::pair<int, int>> ScriptedSubnet::Find(Lid lid) const {
  for (size_t node = 0; node < nodes_.size(); ++node) {
    for (size_t port = 0; port < nodes_[node].ports.size(); ++port) {
      if (lid != Lid(0) && nodes_[node].ports[port].lid == lid.value()) {
        return std::pair(static_cast<int>(node), static_cast<int>(port));
      }
    }
  }
  return std::nullopt;
}

// Whether who came in by that port has reached the manager's.
bool ScriptedSubnet::FindsManager(int index, int in) const {
  const Node& node = nodes_[index];
  return node.ports[node.type == 2 ? 0 : in].lid == manager_lid;
}

bool ScriptedSubnet::FillPerformance(int index, Mad& reply) const {
  const Node& node = nodes_[index];
  const uint64_t attribute = Get(reply, 16, 2), port = reply[64 + 1];
  if (attribute != 1 && port >= node.ports.size()) return false;
  switch (attribute) {
    case 0x01:
      std::copy(node.class_port_info.begin(), node.class_port_info.end(), reply.begin() + 64);
      return true;
    case 0x12:
      std::copy(node.ports[port].counters.begin(), node.ports[port].counters.end(),
                reply.begin() + 64);
      break;
    case 0x1D:
      std::copy(node.ports[port].extended_counters.begin(),
                node.ports[port].extended_counters.end(), reply.begin() + 64);
      break;
    default:
      return false;
  }
  reply[64 + 1] = static_cast<uint8_t>(port);
  return true;
}

bool ScriptedSubnet::Fill(int index, int in, Mad& reply) const {
  const Node& node = nodes_[index];
  const uint64_t attribute = Get(reply, 16, 2), modifier = Get(reply, 20, 4);
  std::fill_n(reply.begin() + 64, 64, 0);
  switch (static_cast<MadAttribute>(0x81'0000 | attribute)) {
    case MadAttribute::kNodeInfo:
      Put(reply, 64 + 2, 1, node.type);
      Put(reply, 64 + 3, 1, node.told_ports);
      Put(reply, 64 + 12, 8, node.guid);
      Put(reply, 64 + 20, 8, node.type == 2 ? node.guid : node.guid + in);
      Put(reply, 64 + 28, 2, node.partition_capacity);
      Put(reply, 64 + 36, 1, in);
      return true;
    case MadAttribute::kNodeDescription:
      std::copy_n(node.description.begin(), std::min<size_t>(64, node.description.size()),
                  reply.begin() + 64);
      return true;
    case MadAttribute::kSwitchInfo:
      Put(reply, 64, 2, 0xC000);
      Put(reply, 64 + 6, 2, node.table.empty() ? 0 : node.table.size() - 1);
      Put(reply, 64 + 14, 2, node.enforced_capacity);
      return node.type == 2;
    case MadAttribute::kPortInfo: {
      if (modifier >= node.ports.size()) return false;
      const bool up = modifier == 0 || node.ports[modifier].peer >= 0;
      Put(reply, 64 + 16, 2, node.ports[modifier].lid);
      Put(reply, 64 + 18, 2, manager_lid);
      reply[64 + 31] = node.ports[modifier].width;
      reply[64 + 32] = up ? 4 : 1;  // Active, Down
      reply[64 + 33] = up ? 5 << 4 : 2 << 4;
      reply[64 + 34] = node.ports[modifier].lmc;
      reply[64 + 35] = static_cast<uint8_t>(node.ports[modifier].speed << 4);
      reply[64 + 43] = static_cast<uint8_t>(8 * node.ports[modifier].enforces_inbound +
                                            4 * node.ports[modifier].enforces_outbound);
      return true;
    }
    case MadAttribute::kSubnetManagerInfo:
      return manages && FindsManager(index, in);
    case MadAttribute::kPartitionTable: {
      const size_t port = node.type == 2 ? modifier >> 16 : in, block = modifier & 0xFFFF;
      const bool is_external = node.type == 2 && port > 0;
      const size_t capacity = is_external ? node.enforced_capacity : node.partition_capacity;
      if (port >= node.ports.size() || block * 32 >= std::max<size_t>(1, capacity)) return false;
      const std::vector<uint16_t>& keys = node.ports[port].keys;
      for (size_t i = block * 32; i < std::min(keys.size(), block * 32 + 32); ++i) {
        Put(reply, 64 + 2 * (i % 32), 2, keys[i]);
      }
      return true;
    }
    case MadAttribute::kLinearForwardingTable:
      for (size_t i = 0; i < 64; ++i) {
        const size_t lid = modifier * 64 + i;
        reply[64 + i] = lid < node.table.size() ? node.table[lid] : 255;
      }
      return node.type == 2;
    default:
      return false;
  }
}

absl::Status ScriptedSubnet::Send(const Mad& mad, Lid lid, absl::Duration timeout) {
  if (on_send) {
    if (absl::Status status = on_send(); !status.ok()) return status;
  }
  ++sends;
  const bool is_performance = IsPerformance(mad);
  const std::optional<std::pair<int, int>> target = is_performance ? Find(lid) : Walk(mad);
  Mad reply = mad;
  int copies = 0;
  if (target) {
    const bool known = is_performance ? FillPerformance(target->first, reply)
                                      : Fill(target->first, target->second, reply);
    reply[3] = 0x81;
    reply[4] = is_performance ? 0 : 0x80;
    reply[5] = known ? 0 : 0x0C;  // attribute not supported
    copies = on_reply ? on_reply(target->first, target->second, reply) : 1;
  }
  for (int i = 0; i < copies; ++i) {
    const absl::Duration jitter = reorder ? absl::Milliseconds(sends * 7919 % 13) : latency * i;
    queue_.push_back({now_ + latency + jitter, reply});
  }
  if (copies == 0 && gives_back) queue_.push_back({now_ + timeout, mad, MadEvent::kTimedOut});
  most_under_way = std::max(most_under_way, queue_.size());
  return absl::OkStatus();
}

absl::StatusOr<MadEvent> ScriptedSubnet::Receive(absl::Duration wait, Mad& mad) {
  const auto first = std::min_element(queue_.begin(), queue_.end(),
                                      [](const auto& x, const auto& y) { return x.at < y.at; });
  if (first == queue_.end() || first->at > now_ + wait) {
    now_ += wait;
    return MadEvent::kNone;
  }
  now_ = std::max(now_, first->at);
  mad = first->mad;
  const MadEvent event = first->event;
  queue_.erase(first);
  return event;
}

}  // namespace coppice
