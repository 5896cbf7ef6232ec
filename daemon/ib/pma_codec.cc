#include "daemon/ib/pma_codec.h"

namespace coppice {
namespace {

constexpr uint64_t kOctetsPerUnit = 4;

uint64_t Get(const MadData& data, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | data[at + i];
  return value;
}

// Two readings' difference stays right modulo 2^64 where the product overflows.
uint64_t GetBytes(const MadData& data, size_t at, int bytes) {
  return Get(data, at, bytes) * kOctetsPerUnit;
}

}  // namespace

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
  return lid != Lid(0) && lid.value() <= kTopUnicastLid && queue_pair == 1 &&
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
  counters.sent_bytes = GetBytes(data, 24, 4);
  counters.received_bytes = GetBytes(data, 28, 4);
  counters.sent_packets = Get(data, 32, 4);
  counters.received_packets = Get(data, 36, 4);
}

void DecodePortCountersExtended(const MadData& data, const CounterAbilities& abilities,
                                PortCounters& counters) {
  counters.sent_bytes = GetBytes(data, 8, 8);
  counters.received_bytes = GetBytes(data, 16, 8);
  counters.sent_packets = Get(data, 24, 8);
  counters.received_packets = Get(data, 32, 8);
  if (!abilities.extended_errors) return;
  uint64_t* const fields[] = {&counters.symbol_errors,
                              &counters.link_recoveries,
                              &counters.link_downed,
                              &counters.receive_errors,
                              &counters.remote_physical_errors,
                              &counters.relay_errors,
                              &counters.send_discards,
                              &counters.send_constraint_errors,
                              &counters.receive_constraint_errors,
                              &counters.integrity_errors,
                              &counters.buffer_overruns,
                              &counters.vl15_dropped,
                              &counters.sent_wait_ticks};
  size_t at = 72;
  for (uint64_t* field : fields) {
    *field = Get(data, at, 8);
    at += 8;
  }
}

}  // namespace coppice
