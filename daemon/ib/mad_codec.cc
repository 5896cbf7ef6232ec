#include "daemon/ib/mad_codec.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {
namespace {

// Common MAD header and the directed-route SMP behind it, in octets (IBA vol. 1, figures 144, 176):
//
//    0 base version   1 class   2 class version   3 method   4 status (bit 15: direction)
//    6 hop pointer    7 hop count    8 transaction id    16 attribute    20 modifier
//   24 M_Key   32 DrSLID   34 DrDLID   64 data   128 initial path   192 return path
//
// Performance management has the same common header, nothing in 24-63, and data up to the end; the
// second octet of the data selects the port (16.1.2, 16.1.3.5).
constexpr size_t kClass = 1, kClassVersion = 2, kMethod = 3, kStatus = 4, kHopCount = 7;
constexpr size_t kTransactionLow = 12, kAttribute = 16, kModifier = 20;
constexpr size_t kSourceLid = 32, kDestinationLid = 34, kData = 64, kInitialPath = 128;

constexpr size_t kPortSelect = kData + 1, kSubnetDataBytes = 64;

constexpr uint8_t kBaseVersion = 1, kClassVersionOfBoth = 1;
constexpr uint8_t kDirectedRouteClass = 0x81, kPerformanceClass = 0x04;
constexpr uint8_t kGet = 0x01, kGetResp = 0x81;
constexpr uint16_t kPermissiveLid = 0xFFFF;
constexpr uint16_t kDirectionBit = 0x8000;

// Numbers of so many octets, the most significant first.
uint64_t Get(absl::Span<const uint8_t> from, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | from[at + i];
  return value;
}
void Put(Mad& mad, size_t at, int bytes, uint64_t value) {
  for (; bytes-- > 0; value >>= 8) mad[at + bytes] = static_cast<uint8_t>(value);
}

void EncodeGet(MadAttribute attribute, uint32_t modifier, uint32_t transaction, Mad& mad) {
  mad.fill(0);
  mad[0] = kBaseVersion;
  mad[kClass] = static_cast<uint8_t>(static_cast<uint32_t>(attribute) >> 16);
  mad[kClassVersion] = kClassVersionOfBoth;
  mad[kMethod] = kGet;
  Put(mad, kTransactionLow, 4, transaction);
  Put(mad, kAttribute, 2, static_cast<uint16_t>(attribute));
  Put(mad, kModifier, 4, modifier);
}

// What a code of one bit stands for; `otherwise` for one that is in no table.
template <class Value, size_t N>
Value Decoded(const std::pair<uint8_t, Value> (&table)[N], uint8_t code, Value otherwise) {
  const auto found = std::ranges::find(table, code, &std::pair<uint8_t, Value>::first);
  return found == std::end(table) ? otherwise : found->second;
}

// PortInfo:LinkWidthActive.
constexpr std::pair<uint8_t, uint8_t> kLanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
// PortInfo:LinkSpeedActive and, where the capability mask offers it, LinkSpeedExtActive.
constexpr std::pair<uint8_t, LaneSpeed> kSpeeds[] = {
    {1, LaneSpeed::kSdr}, {2, LaneSpeed::kDdr}, {4, LaneSpeed::kQdr}};
constexpr std::pair<uint8_t, LaneSpeed> kExtendedSpeeds[] = {
    {1, LaneSpeed::kFdr}, {2, LaneSpeed::kEdr}, {4, LaneSpeed::kHdr}, {8, LaneSpeed::kNdr}};

// Two readings' difference stays right modulo 2^64 where the product overflows.
void DecodeData(const MadData& data, size_t at, int bytes, PortCounters& counters) {
  constexpr uint64_t kOctetsPerUnit = 4;
  counters.sent_bytes = Get(data, at, bytes) * kOctetsPerUnit;
  counters.received_bytes = Get(data, at + bytes, bytes) * kOctetsPerUnit;
  counters.sent_packets = Get(data, at + 2 * bytes, bytes);
  counters.received_packets = Get(data, at + 3 * bytes, bytes);
}

}  // namespace

absl::string_view ToString(MadAttribute attribute) {
  constexpr std::pair<MadAttribute, absl::string_view> kNames[] = {
      {MadAttribute::kNodeDescription, "NodeDescription"},
      {MadAttribute::kNodeInfo, "NodeInfo"},
      {MadAttribute::kSwitchInfo, "SwitchInfo"},
      {MadAttribute::kPortInfo, "PortInfo"},
      {MadAttribute::kPartitionTable, "P_KeyTable"},
      {MadAttribute::kLinearForwardingTable, "LinearForwardingTable"},
      {MadAttribute::kSubnetManagerInfo, "SMInfo"},
      {MadAttribute::kExtendedPortInfo, "ExtendedPortInfo"},
      {MadAttribute::kPerformanceClassPortInfo, "ClassPortInfo of performance management"},
      {MadAttribute::kPortCounters, "PortCounters"},
      {MadAttribute::kPortCountersExtended, "PortCountersExtended"}};
  for (const auto& [named, name] : kNames) {
    if (named == attribute) return name;
  }
  return "unknown attribute";
}

void EncodeSubnGet(const DirectedRoute& route, MadAttribute attribute, uint32_t modifier,
                   uint32_t transaction, Mad& mad) {
  EncodeGet(attribute, modifier, transaction, mad);
  mad[kHopCount] = route.hop_count;
  Put(mad, kSourceLid, 2, kPermissiveLid);
  Put(mad, kDestinationLid, 2, kPermissiveLid);
  absl::c_copy(route.port, mad.begin() + kInitialPath);
}

void EncodePerformanceGet(MadAttribute attribute, PortNum port, uint32_t transaction, Mad& mad) {
  EncodeGet(attribute, /*modifier=*/0, transaction, mad);
  mad[kPortSelect] = port.value();
}

uint32_t TransactionOf(const Mad& mad) { return Get(mad, kTransactionLow, 4); }

bool IsPerformance(const Mad& mad) { return mad[kClass] == kPerformanceClass; }

std::optional<MadReply> DecodeReply(absl::Span<const uint8_t> bytes) {
  if (bytes.size() < kMadBytes || bytes[0] != kBaseVersion ||
      bytes[kClassVersion] != kClassVersionOfBoth || bytes[kMethod] != kGetResp) {
    return std::nullopt;
  }
  const bool is_performance = bytes[kClass] == kPerformanceClass;
  if (!is_performance && bytes[kClass] != kDirectedRouteClass) return std::nullopt;
  MadReply reply;
  reply.status = Get(bytes, kStatus, 2);
  if (!is_performance) {
    if ((reply.status & kDirectionBit) == 0) return std::nullopt;
    reply.status &= ~kDirectionBit;
  }
  reply.transaction = Get(bytes, kTransactionLow, 4);
  reply.attribute =
      static_cast<MadAttribute>(uint32_t{bytes[kClass]} << 16 | Get(bytes, kAttribute, 2));
  reply.modifier = Get(bytes, kModifier, 4);
  std::memcpy(reply.data.data(), &bytes[kData],
              is_performance ? reply.data.size() : kSubnetDataBytes);
  return reply;
}

absl::StatusOr<NodeInfoRecord> DecodeNodeInfo(const MadData& data) {
  NodeInfoRecord info;
  if (data[2] < 1 || data[2] > 3) {
    return absl::InvalidArgumentError(absl::StrCat("unknown node type ", data[2]));
  }
  info.type = static_cast<NodeType>(data[2]);
  info.port_count = data[3];
  info.node_guid = Guid(Get(data, 12, 8));
  info.port_guid = Guid(Get(data, 20, 8));
  info.partition_capacity = Get(data, 28, 2);
  info.device_id = Get(data, 30, 2);
  info.local_port = PortNum(data[36]);
  info.vendor_id = Get(data, 36, 4) & 0xFFFFFF;
  if (info.node_guid == Guid(0)) return absl::InvalidArgumentError("node GUID 0");
  if (info.port_count == 0 || info.port_count == 255) {
    return absl::InvalidArgumentError(absl::StrCat("port count ", info.port_count));
  }
  const bool switch_itself = info.type == NodeType::kSwitch && info.local_port == PortNum(0);
  if (info.local_port.value() > info.port_count ||
      (info.local_port == PortNum(0) && !switch_itself)) {
    return absl::InvalidArgumentError(
        absl::StrCat("local port ", info.local_port.value(), " of ", info.port_count));
  }
  return info;
}

std::string DecodeNodeDescription(const MadData& data) {
  const auto end = std::find(data.begin(), data.begin() + kSubnetDataBytes, 0);
  const std::string text = CleanDescription(std::string(data.begin(), end));
  return std::string(absl::StripAsciiWhitespace(text));
}

PortInfoRecord DecodePortInfo(const MadData& data) {
  constexpr uint8_t kDown = 1, kLinkUp = 5;
  constexpr uint32_t kHasExtendedSpeeds = 1u << 14;  // CapabilityMask.IsExtendedSpeedsSupported
  PortInfoRecord port;
  port.lid = Lid(Get(data, 16, 2));
  port.subnet_manager_lid = Lid(Get(data, 18, 2));
  port.lmc = data[34] & 7;
  port.enforces_inbound = (data[43] & 8) != 0;
  port.enforces_outbound = (data[43] & 4) != 0;
  const uint8_t state = data[32] & 15, physical_state = data[33] >> 4;
  port.link_up = state > kDown && physical_state == kLinkUp;
  if (port.link_up) {
    const bool extended = (Get(data, 20, 4) & kHasExtendedSpeeds) != 0;
    port.rate.lanes = Decoded(kLanes, data[31], uint8_t{0});
    const uint8_t speed = data[35] >> 4, faster = extended ? data[62] >> 4 : 0;
    port.rate.speed =
        Decoded(kExtendedSpeeds, faster, Decoded(kSpeeds, speed, LaneSpeed::kUnknown));
  }
  return port;
}

bool DecodeFdr10Active(const MadData& data) { return (data[15] & 1) != 0; }

uint16_t DecodeLinearTableTop(const MadData& data) {
  const uint16_t capacity = Get(data, 0, 2), top = Get(data, 6, 2);
  if (capacity == 0) return 0;
  return std::min({top, static_cast<uint16_t>(capacity - 1), kMaxUnicastLid});
}

uint16_t DecodeEnforcedCapacity(const MadData& data) { return Get(data, 14, 2); }

std::array<uint16_t, kKeysPerBlock> DecodePartitionBlock(const MadData& data) {
  std::array<uint16_t, kKeysPerBlock> keys;
  for (int i = 0; i < kKeysPerBlock; ++i) keys[i] = Get(data, 2 * i, 2);
  return keys;
}

CounterAbilities DecodeCounterAbilities(const MadData& data) {
  constexpr uint64_t kExtendedWidth = 1 << 9, kExtendedWidthWithoutCasts = 1 << 10;
  constexpr uint64_t kXmitWait = 1 << 12;
  constexpr uint64_t kAdditionalExtended = 1 << 1;  // of CapabilityMask2, the upper 27 of 32 bits
  const uint64_t mask = Get(data, 2, 2), mask2 = Get(data, 4, 4) >> 5;
  CounterAbilities abilities;
  abilities.extended_data = (mask & (kExtendedWidth | kExtendedWidthWithoutCasts)) != 0;
  abilities.extended_errors = abilities.extended_data && (mask2 & kAdditionalExtended) != 0;
  abilities.wait = (mask & kXmitWait) != 0;
  return abilities;
}

bool Redirection::IsToLid() const {
  constexpr uint32_t kWellKnownKey = 0x8001'0000;
  return lid != Lid(0) && lid.value() <= kMaxUnicastLid && queue_pair == 1 &&
         queue_key == kWellKnownKey;
}

Redirection DecodeRedirection(const MadData& data) {
  return {Lid(static_cast<uint16_t>(Get(data, 28, 2))), static_cast<uint32_t>(Get(data, 33, 3)),
          static_cast<uint32_t>(Get(data, 36, 4))};
}

PortNum DecodePortSelect(const MadData& data) { return PortNum(data[1]); }

void DecodePortErrors(const MadData& data, const CounterAbilities& abilities,
                      PortCounters& counters) {
  counters.symbol_errors = Get(data, 4, 2);
  counters.link_recoveries = data[6];
  counters.link_downed = data[7];
  counters.receive_errors = Get(data, 8, 2);
  counters.remote_physical_errors = Get(data, 10, 2);
  counters.relay_errors = Get(data, 12, 2);
  counters.send_discards = Get(data, 14, 2);
  counters.send_constraint_errors = data[16];
  counters.receive_constraint_errors = data[17];
  counters.integrity_errors = data[19] >> 4;
  counters.buffer_overruns = data[19] & 15;
  counters.vl15_dropped = Get(data, 22, 2);
  counters.sent_wait_ticks = abilities.wait ? Get(data, 40, 4) : 0;
}

void DecodePortData(const MadData& data, PortCounters& counters) {
  DecodeData(data, 24, 4, counters);
}

void DecodePortCountersExtended(const MadData& data, const CounterAbilities& abilities,
                                PortCounters& counters) {
  DecodeData(data, 8, 8, counters);
  if (!abilities.extended_errors) return;
  size_t at = 72;
  for (size_t i = kFirstErrorCounter; i < std::size(kPortCounterFields); ++i, at += 8) {
    counters.*kPortCounterFields[i].count = Get(data, at, 8);  // in this order, IBA's, too
  }
  counters.sent_wait_ticks = Get(data, at, 8);
}

}  // namespace coppice
