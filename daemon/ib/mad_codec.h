// Management packets between bytes and values: the headers of subnet and performance management,
// and the attributes of both. Nobody else knows where a field lies. Everything decoded here came
// from another machine and may be anything: decoders read only inside the packet, never crash, and
// say what is wrong with values that no correct node could send. Knows neither transport nor
// transactions.
#ifndef COPPICE_DAEMON_IB_MAD_CODEC_H_
#define COPPICE_DAEMON_IB_MAD_CODEC_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/subnet_port.h"

namespace coppice {

// A directed route: the ports to leave by, hop after hop, from the local port to a node (IBA vol.
// 1, 14.2.2). It needs no LIDs, so a subnet can be read before any subnet manager has touched it.
//
//      local port --1--> switch --17--> switch --3--> node         "0,1,17,3"; hop_count = 3
struct DirectedRoute {
  // InitialPath has 64 entries of which entry 0 is unused: 63 hops (IBA vol. 1, 14.2.1.2).
  static constexpr int kMaxHops = 63;

  uint8_t hop_count = 0;                   // 0..kMaxHops
  std::array<uint8_t, kMaxHops + 1> port;  // [1..hop_count], port to leave the n-th node by

  DirectedRoute() { port.fill(0); }

  // Requires hop_count < kMaxHops.
  DirectedRoute Then(PortNum next) const {
    DirectedRoute longer = *this;
    longer.port[++longer.hop_count] = next.value();
    return longer;
  }
  friend bool operator==(const DirectedRoute&, const DirectedRoute&) = default;
};

// The way the diagnostics print it: "0,1,17,3"; the local node itself is "0".
inline std::string ToString(const DirectedRoute& route) {
  std::string text = "0";
  for (int hop = 1; hop <= route.hop_count; ++hop) absl::StrAppend(&text, ",", route.port[hop]);
  return text;
}

inline constexpr size_t kMadBytes = 256;  // IBA vol. 1, 13.4.2
inline constexpr int kLidsPerBlock = 64;  // of a linear forwarding table, IBA vol. 1, 14.2.5.10
inline constexpr int kKeysPerBlock = 32;  // of a table of partitions, IBA vol. 1, 14.2.5.7

using Mad = std::array<uint8_t, kMadBytes>;
// What an attribute may fill: all of it in performance management (IBA vol. 1, 16.1.2), the first
// 64 octets in subnet management (14.2.1), whose packets hold the route behind them.
using MadData = std::array<uint8_t, 192>;

// What is asked for: management class << 16 | attribute, as numbers of attributes are a class's
// own.
enum class MadAttribute : uint32_t {
  // Subnet management by directed route, IBA vol. 1, 14.2.5; the last is NVIDIA's extension that
  // tells FDR10 from QDR.
  kNodeDescription = 0x81'0010,
  kNodeInfo = 0x81'0011,
  kSwitchInfo = 0x81'0012,
  kPortInfo = 0x81'0015,
  kPartitionTable = 0x81'0016,
  kLinearForwardingTable = 0x81'0019,
  kSubnetManagerInfo = 0x81'0020,
  kExtendedPortInfo = 0x81'FF90,
  // Performance management, IBA vol. 1, 16.1.3 and 16.1.4.
  kPerformanceClassPortInfo = 0x04'0001,
  kPortCounters = 0x04'0012,
  kPortCountersExtended = 0x04'001D,
};

inline bool IsPerformance(MadAttribute attribute) {
  return static_cast<uint32_t>(attribute) >> 16 == 0x04;
}

// "NodeInfo", "PortInfo", ...
absl::string_view ToString(MadAttribute attribute);

// A SubnGet by directed route with permissive LIDs, M_Key 0 (IBA vol. 1, 14.2.1.2). `transaction`
// becomes the lower half of the transaction id; the upper half belongs to the kernel.
void EncodeSubnGet(const DirectedRoute& route, MadAttribute attribute, uint32_t modifier,
                   uint32_t transaction, Mad& mad);

// A PerformanceGet (IBA vol. 1, 16.1.2) of the counters of `port`; ClassPortInfo has none: 0. Where
// it goes is not written in the packet. `transaction` as above.
void EncodePerformanceGet(MadAttribute attribute, PortNum port, uint32_t transaction, Mad& mad);

// The lower half of the transaction id, whatever else the packet is.
uint32_t TransactionOf(const Mad& mad);

// Whether a packet to be sent is of performance management, else of subnet management.
bool IsPerformance(const Mad& mad);

struct MadReply {
  uint32_t transaction = 0;
  uint16_t status = 0;  // IBA vol. 1, 13.4.7; 0 = success, bit 0 = busy
  MadAttribute attribute = MadAttribute::kNodeInfo;  // may be none of those that have a name
  uint32_t modifier = 0;
  MadData data{};
};

// nullopt: neither a SubnGetResp by directed route nor a PerformanceGetResp (too short, another
// class, version or method, or travelling in the request's direction).
std::optional<MadReply> DecodeReply(absl::Span<const uint8_t> bytes);

enum class NodeType : uint8_t { kChannelAdapter = 1, kSwitch = 2, kRouter = 3 };

// IBA vol. 1, 14.2.5.3.
struct NodeInfoRecord {
  NodeType type = NodeType::kChannelAdapter;
  uint8_t port_count = 0;
  Guid node_guid;
  Guid port_guid;
  PortNum local_port;               // the port that the request came in by
  uint16_t partition_capacity = 0;  // keys in the table of each port, of a switch's port 0
  uint16_t device_id = 0;
  uint32_t vendor_id = 0;
  bool is_switch() const { return type == NodeType::kSwitch; }
};

// INVALID_ARGUMENT: unknown node type, GUID 0, no ports (or 255, which InfiniBand reserves), or a
// local port that the node does not have; the message says which.
absl::StatusOr<NodeInfoRecord> DecodeNodeInfo(const MadData& data);

// Up to the first zero byte, as CleanDescription has it, so that no node can write to an
// administrator's terminal; blanks at both ends go.
std::string DecodeNodeDescription(const MadData& data);

// IBA vol. 1, 14.2.5.6.
struct PortInfoRecord {
  Lid lid;
  Lid subnet_manager_lid;
  uint8_t lmc = 0;
  bool link_up = false;  // physically up and not in state Down
  LinkRate rate;         // unknown unless link_up
  // Of a switch's external port: packets of partitions that its table lacks do not pass.
  bool enforces_inbound = false, enforces_outbound = false;
};
PortInfoRecord DecodePortInfo(const MadData& data);

// True if ExtendedPortInfo says that the link runs at FDR10.
bool DecodeFdr10Active(const MadData& data);

// IBA vol. 1, 14.2.5.4. The highest LID in the linear forwarding table, never above kMaxUnicastLid
// nor beyond the table's capacity. 0: the table is empty.
uint16_t DecodeLinearTableTop(const MadData& data);
// The same attribute's PartitionEnforcementCap: keys in the table of each external port.
uint16_t DecodeEnforcedCapacity(const MadData& data);

// IBA vol. 1, 14.2.5.7: a block of a table; 0 where no key is.
std::array<uint16_t, kKeysPerBlock> DecodePartitionBlock(const MadData& data);

// Attributes of performance management; every value of every field is taken. What a port counts
// lies in two attributes, and newer nodes tell everything in the second:
//
//                             data      errors      wait
//    PortCounters            32 bits    4-16 bits   32 bits    all stop at their greatest value
//    PortCountersExtended    64 bits                           nodes that have extended_data
//    PortCountersExtended    64 bits    64 bits     64 bits    nodes that have extended_errors

// From ClassPortInfo's CapabilityMask and CapabilityMask2 (IBA vol. 1, 16.1.3.1).
struct CounterAbilities {
  bool extended_data = false;
  bool extended_errors = false;  // only with extended_data
  bool wait = false;             // PortCounters has PortXmitWait; else that field means nothing
  friend bool operator==(const CounterAbilities&, const CounterAbilities&) = default;
};
CounterAbilities DecodeCounterAbilities(const MadData& data);

// Where a node's performance management is served instead, from the same attribute (IBA vol. 1,
// 13.4.8.1).
struct Redirection {
  Lid lid;  // 0: by a GID only
  uint32_t queue_pair = 0, queue_key = 0;
  // Whether it is at a LID and otherwise as anybody's: queue pair 1 with the well-known key.
  bool IsToLid() const;
};
Redirection DecodeRedirection(const MadData& data);

// The port that an answer is about, of both attributes.
PortNum DecodePortSelect(const MadData& data);

// IBA vol. 1, 16.1.3.5. Sets the errors and the wait of `counters`; 0 for a wait that the node does
// not count.
void DecodePortErrors(const MadData& data, const CounterAbilities& abilities,
                      PortCounters& counters);

// The same attribute's bytes and packets, for a node without extended ones. The packets count data
// in units of 4 octets; `counters` holds bytes.
void DecodePortData(const MadData& data, PortCounters& counters);

// IBA vol. 1, 16.1.4.11. Sets bytes and packets, and with extended_errors all the rest.
void DecodePortCountersExtended(const MadData& data, const CounterAbilities& abilities,
                                PortCounters& counters);

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_MAD_CODEC_H_
