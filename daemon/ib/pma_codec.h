// Attributes of performance management between bytes and values. As in mad_codec.h, what is decoded
// came from another machine and may be anything: every value of every field is taken.
//
// What a port counts lies in two attributes, and newer nodes tell everything in the second:
//
//                             data      errors      wait
//    PortCounters            32 bits    4-16 bits   32 bits    all stop at their greatest value
//    PortCountersExtended    64 bits                           nodes that have extended_data
//    PortCountersExtended    64 bits    64 bits     64 bits    nodes that have extended_errors
#ifndef COPPICE_DAEMON_IB_PMA_CODEC_H_
#define COPPICE_DAEMON_IB_PMA_CODEC_H_

#include <cstdint>

#include "daemon/base/strong_id.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/ib/mad_codec.h"

namespace coppice {

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

#endif  // COPPICE_DAEMON_IB_PMA_CODEC_H_
