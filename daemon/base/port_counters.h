// What a port counts, and the one list of it.
#ifndef COPPICE_DAEMON_BASE_PORT_COUNTERS_H_
#define COPPICE_DAEMON_BASE_PORT_COUNTERS_H_

#include <cstddef>
#include <cstdint>

namespace coppice {

// Since it was last reset (IBA vol. 1, 16.1.3.5 and 16.1.4). Counts stop at their greatest value,
// or go around, or start again from 0: who compares two readings decides.
struct PortCounters {
  uint64_t sent_bytes = 0, received_bytes = 0;
  uint64_t sent_packets = 0, received_packets = 0;
  uint64_t sent_wait_ticks = 0;  // with data to send and no credit
  uint64_t symbol_errors = 0, link_recoveries = 0, link_downed = 0;
  uint64_t receive_errors = 0, remote_physical_errors = 0, relay_errors = 0;
  uint64_t send_discards = 0, send_constraint_errors = 0, receive_constraint_errors = 0;
  uint64_t integrity_errors = 0, buffer_overruns = 0, vl15_dropped = 0;
  friend bool operator==(const PortCounters&, const PortCounters&) = default;
};

struct PortCounterField {
  const char* name;  // on the wire and in the database
  uint64_t PortCounters::*count;
};
// In the order of the struct: data first, then errors.
inline constexpr PortCounterField kPortCounterFields[] = {
    {"sent_bytes", &PortCounters::sent_bytes},
    {"received_bytes", &PortCounters::received_bytes},
    {"sent_packets", &PortCounters::sent_packets},
    {"received_packets", &PortCounters::received_packets},
    {"sent_wait_ticks", &PortCounters::sent_wait_ticks},
    {"symbol_errors", &PortCounters::symbol_errors},
    {"link_recoveries", &PortCounters::link_recoveries},
    {"link_downed", &PortCounters::link_downed},
    {"receive_errors", &PortCounters::receive_errors},
    {"remote_physical_errors", &PortCounters::remote_physical_errors},
    {"relay_errors", &PortCounters::relay_errors},
    {"send_discards", &PortCounters::send_discards},
    {"send_constraint_errors", &PortCounters::send_constraint_errors},
    {"receive_constraint_errors", &PortCounters::receive_constraint_errors},
    {"integrity_errors", &PortCounters::integrity_errors},
    {"buffer_overruns", &PortCounters::buffer_overruns},
    {"vl15_dropped", &PortCounters::vl15_dropped},
};
// The first of them that counts errors.
inline constexpr size_t kFirstErrorCounter = 5;

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_PORT_COUNTERS_H_
